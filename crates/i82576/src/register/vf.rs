//! Byte offsets of a VF's registers in its 16 KiB BAR0. `window` has the location of their bits in the PF's file.

offsets! {
    /// Device control: only the reset bit exists.
    CTRL = 0x0000;
    /// STATUS of a VF: shows the port's link.
    STATUS = 0x0008;
    /// Mailbox memory, 16 dwords.
    VMBMEM = 0x0800;
    /// V2PMAILBOX: the VF's control of its mailbox.
    V2PMAILBOX = 0x0c40;
    /// VTPBACL: clears pending bits of the VF's MSI-X vectors.
    VTPBACL = 0x0f04;
    /// Packet split receive type.
    PSRTYPE = 0x0f0c;
    /// Start of the VF's statistics, at the offsets of `vf_stats`.
    STATISTICS = 0x0f00;
    /// Good packets received.
    VFGPRC = 0x0f10;
    /// Good packets transmitted.
    VFGPTC = 0x0f14;
    /// Good octets received.
    VFGORC = 0x0f18;
    /// Good octets transmitted.
    VFGOTC = 0x0f34;
    /// Multicast packets received.
    VFMPRC = 0x0f3c;
    /// Good loopback packets received.
    VFGPRLBC = 0x0f40;
    /// Good loopback packets transmitted.
    VFGPTLBC = 0x0f44;
    /// Good loopback octets received.
    VFGORLBC = 0x0f48;
    /// Good loopback octets transmitted.
    VFGOTLBC = 0x0f50;
    /// Free-running timer.
    FRTIMER = 0x1048;
    /// Receive packet buffer wrap-around counter, always zero.
    PBRWAC = 0x24e8;
    /// Transmit packet buffer wrap-around counter, always zero.
    PBTWAC = 0x34e8;
    /// Interrupt cause set.
    VTEICS = 0x1520;
    /// Interrupt mask set and read.
    VTEIMS = 0x1524;
    /// Interrupt mask clear.
    VTEIMC = 0x1528;
    /// Interrupt auto-clear.
    VTEIAC = 0x152c;
    /// Interrupt auto-mask.
    VTEIAM = 0x1530;
    /// Interrupt cause.
    VTEICR = 0x1580;
    /// Interrupt throttle of vector 0; the others follow at a stride of 4.
    VTEITR = 0x1680;
    /// Vector allocation of both queue pairs.
    VTIVAR = 0x1700;
    /// Vector allocation of the mailbox.
    VTIVAR_MISC = 0x1740;
    /// Block of receive queue 0; queue 1 follows at [`QUEUE_STRIDE`].
    RX_BLOCK = 0x2800;
    /// Block of transmit queue 0; queue 1 follows at [`QUEUE_STRIDE`].
    TX_BLOCK = 0x3800;
    /// Distance between a VF's two queue blocks.
    QUEUE_STRIDE = 0x100;
}
