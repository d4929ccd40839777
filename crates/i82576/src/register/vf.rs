//! Byte offsets of a VF's registers in its 16 KiB BAR0. `window` names the PF's register bits that hold each of them.

offsets! {
    /// CTRL of a VF (device control): only the reset bit exists.
    CTRL = 0x0000;
    /// STATUS of a VF: shows the port's link.
    STATUS = 0x0008;
    /// VMBMEM: memory of the VF's mailbox, 16 dwords.
    VMBMEM = 0x0800;
    /// V2PMAILBOX: the VF's control of its mailbox.
    V2PMAILBOX = 0x0c40;
    /// VTPBACL: clears pending bits of the VF's MSI-X vectors.
    VTPBACL = 0x0f04;
    /// PSRTYPE: header types that the VF's queues split from the payload (packet split receive type).
    PSRTYPE = 0x0f0c;
    /// Start of the VF's statistics, at the offsets of `vf_stats`.
    STATISTICS = 0x0f00;
    /// VFGPRC: number of good packets that the VF received.
    VFGPRC = 0x0f10;
    /// VFGPTC: number of good packets that the VF transmitted.
    VFGPTC = 0x0f14;
    /// VFGORC: number of good octets that the VF received.
    VFGORC = 0x0f18;
    /// VFGOTC: number of good octets that the VF transmitted.
    VFGOTC = 0x0f34;
    /// VFMPRC: number of multicast packets that the VF received.
    VFMPRC = 0x0f3c;
    /// VFGPRLBC: number of good packets that the VF received from other VFs (loopback).
    VFGPRLBC = 0x0f40;
    /// VFGPTLBC: number of good packets that the VF transmitted to other VFs (loopback).
    VFGPTLBC = 0x0f44;
    /// VFGORLBC: number of good octets that the VF received from other VFs (loopback).
    VFGORLBC = 0x0f48;
    /// VFGOTLBC: number of good octets that the VF transmitted to other VFs (loopback).
    VFGOTLBC = 0x0f50;
    /// FRTIMER: the port's free-running timer, read by the VF.
    FRTIMER = 0x1048;
    /// Receive packet buffer wrap-around counter, always zero.
    PBRWAC = 0x24e8;
    /// Transmit packet buffer wrap-around counter, always zero.
    PBTWAC = 0x34e8;
    /// VTEICS: sets interrupt causes of the VF's vectors.
    VTEICS = 0x1520;
    /// VTEIMS: interrupt mask of the VF's vectors. Reads return the mask; a write unmasks the vectors whose bits are 1.
    VTEIMS = 0x1524;
    /// VTEIMC: masks interrupts of the VF's vectors.
    VTEIMC = 0x1528;
    /// VTEIAC: interrupt causes of the VF that a sent message clears (auto-clear).
    VTEIAC = 0x152c;
    /// VTEIAM: interrupt vectors of the VF that the card masks once they have interrupted (auto-mask).
    VTEIAM = 0x1530;
    /// VTEICR: interrupt causes of the VF's vectors.
    VTEICR = 0x1580;
    /// VTEITR: interrupt throttle of the VF's vector 0. The throttles of vectors 1 and 2 follow, 4 bytes apart.
    VTEITR = 0x1680;
    /// VTIVAR: vector allocation of the VF's two queue pairs.
    VTIVAR = 0x1700;
    /// VTIVAR_MISC: vector allocation of the VF's mailbox.
    VTIVAR_MISC = 0x1740;
    /// Register block of the VF's receive queue 0; queue 1 follows at [`QUEUE_STRIDE`].
    RX_BLOCK = 0x2800;
    /// Register block of the VF's transmit queue 0; queue 1 follows at [`QUEUE_STRIDE`].
    TX_BLOCK = 0x3800;
    /// Distance between the register blocks of a VF's two queues, in bytes.
    QUEUE_STRIDE = 0x100;
}
