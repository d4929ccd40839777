//! Offsets within a VF's statistics and control block in the PF's BAR ([`super::vf_block`]).

offsets! {
    /// Reset control of the VF, written by the PF.
    VTCTRL = 0x00;
    /// Interrupt cause set of the VF.
    VTEICS = 0x20;
    /// Interrupt mask set and read of the VF.
    VTEIMS = 0x24;
    /// Interrupt mask clear of the VF.
    VTEIMC = 0x28;
    /// Interrupt auto-clear of the VF.
    VTEIAC = 0x2c;
    /// Interrupt auto-mask of the VF.
    VTEIAM = 0x30;
    /// Interrupt cause of the VF.
    VTEICR = 0x80;
    /// Good packets received.
    VFGPRC = 0x10;
    /// Good packets transmitted.
    VFGPTC = 0x14;
    /// Good octets received.
    VFGORC = 0x18;
    /// Good octets transmitted.
    VFGOTC = 0x34;
    /// Multicast packets received.
    VFMPRC = 0x3c;
    /// Good loopback packets received.
    VFGPRLBC = 0x40;
    /// Good loopback packets transmitted.
    VFGPTLBC = 0x44;
    /// Good loopback octets received.
    VFGORLBC = 0x48;
    /// Good loopback octets transmitted.
    VFGOTLBC = 0x50;
}
