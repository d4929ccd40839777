//! Offsets within a VF's statistics and control block in the PF's BAR ([`super::vf_block`]).

offsets! {
    /// Reset control of the VF, written by the PF.
    VTCTRL = 0x00;
    /// VTEICS: sets interrupt causes of the VF's vectors.
    VTEICS = 0x20;
    /// VTEIMS: interrupt mask of the VF's vectors. Reads return the mask; a write unmasks the vectors whose
    /// bits are 1.
    VTEIMS = 0x24;
    /// VTEIMC: masks interrupts of the VF's vectors.
    VTEIMC = 0x28;
    /// VTEIAC: interrupt causes of the VF that a sent message clears (auto-clear).
    VTEIAC = 0x2c;
    /// VTEIAM: interrupt vectors of the VF that the card masks once they have interrupted (auto-mask).
    VTEIAM = 0x30;
    /// VTEICR: interrupt causes of the VF's vectors.
    VTEICR = 0x80;
    /// VFGPRC: number of good packets that the VF received.
    VFGPRC = 0x10;
    /// VFGPTC: number of good packets that the VF transmitted.
    VFGPTC = 0x14;
    /// VFGORC: number of good octets that the VF received.
    VFGORC = 0x18;
    /// VFGOTC: number of good octets that the VF transmitted.
    VFGOTC = 0x34;
    /// VFMPRC: number of multicast packets that the VF received.
    VFMPRC = 0x3c;
    /// VFGPRLBC: number of good packets that the VF received from other VFs (loopback).
    VFGPRLBC = 0x40;
    /// VFGPTLBC: number of good packets that the VF transmitted to other VFs (loopback).
    VFGPTLBC = 0x44;
    /// VFGORLBC: number of good octets that the VF received from other VFs (loopback).
    VFGORLBC = 0x48;
    /// VFGOTLBC: number of good octets that the VF transmitted to other VFs (loopback).
    VFGOTLBC = 0x50;
}
