//! Bit fields of the switch between pools.

/// VT_CTL.
pub mod vt_ctl {
    /// Default pool field.
    pub const DEF_PL_SHIFT: u32 = 7;
    /// Default pool mask.
    pub const DEF_PL_MASK: u32 = 7 << DEF_PL_SHIFT;
    /// Pools are chosen by VLAN alone.
    pub const IGNORE_MAC: u32 = 1 << 28;
    /// No default pool.
    pub const DIS_DEF_PL: u32 = 1 << 29;
    /// Replicate to every pool that wants the frame.
    pub const REPL_EN: u32 = 1 << 30;
}

/// VMOLR.
pub mod vmolr {
    /// Longest packet mask.
    pub const RLPML_MASK: u32 = 0x3fff;
    /// Long packets accepted.
    pub const LPE: u32 = 1 << 16;
    /// Receive-side scaling within the pool.
    pub const RSSE: u32 = 1 << 17;
    /// Untagged packets accepted.
    pub const AUPE: u32 = 1 << 24;
    /// Packets that hit the multicast table accepted.
    pub const ROMPE: u32 = 1 << 25;
    /// Packets that hit the unicast table accepted.
    pub const ROPE: u32 = 1 << 26;
    /// Broadcast accepted.
    pub const BAM: u32 = 1 << 27;
    /// Every multicast packet accepted.
    pub const MPME: u32 = 1 << 28;
    /// Strip the VLAN tag.
    pub const STRVLAN: u32 = 1 << 30;
    /// Strip the frame check sequence; must be one.
    pub const STRCRC: u32 = 1 << 31;
}

/// VMVIR.
pub mod vmvir {
    /// The tag.
    pub const TAG_MASK: u32 = 0xffff;
    /// Action field.
    pub const VLANA_SHIFT: u32 = 30;
    /// Always insert the default tag.
    pub const DEFAULT: u32 = 1 << VLANA_SHIFT;
    /// Never insert a tag.
    pub const NEVER: u32 = 2 << VLANA_SHIFT;
}

/// VLVF.
pub mod vlvf {
    /// VLAN id.
    pub const VLANID_MASK: u32 = 0xfff;
    /// One bit a pool.
    pub const POOLSEL_SHIFT: u32 = 12;
    /// All of the pool bits.
    pub const POOLSEL_MASK: u32 = 0xff << POOLSEL_SHIFT;
    /// Local VLAN: never to the wire.
    pub const LVLAN: u32 = 1 << 20;
    /// The entry is valid.
    pub const VLANID_EN: u32 = 1 << 31;
}

/// DTXSWC.
pub mod dtxswc {
    /// MAC anti-spoof, a bit a pool.
    pub const MAC_SPOOF_SHIFT: u32 = 0;
    /// VLAN anti-spoof, a bit a pool.
    pub const VLAN_SPOOF_SHIFT: u32 = 8;
    /// Local loopback to the sender's own pool, a bit a pool.
    pub const LLE_SHIFT: u32 = 16;
    /// Switch between pools.
    pub const LOOPBACK_EN: u32 = 1 << 31;
}

/// WVBR and MDFB: a bit a queue. In WVBR queues that spoofed are below, queues that are blocked above.
pub mod wvbr {
    /// Blocked queues.
    pub const BLOCKED_SHIFT: u32 = 16;
}

/// LVMMC. Drivers know that a cause in bits 4:2 stands for a blocked queue; which is which is our choice.
pub mod lvmmc {
    /// An address or VLAN was not the sender's.
    pub const SPOOFED: u32 = 1 << 0;
    /// A descriptor of a type that does not exist, or one out of place.
    pub const DESCRIPTOR: u32 = 1 << 2;
    /// Header lengths or a segment size that the packet cannot have.
    pub const CONTEXT: u32 = 1 << 3;
    /// A packet that is too long, too short, or of too many descriptors.
    pub const SIZE: u32 = 1 << 4;
    /// The queue.
    pub const QUEUE_SHIFT: u32 = 16;
}

/// VMRCTL.
pub mod vmrctl {
    /// Mirror what the pools in VMRVM receive.
    pub const VPME: u32 = 1 << 0;
    /// Mirror what comes from the wire.
    pub const UPME: u32 = 1 << 1;
    /// Mirror what goes to the wire.
    pub const DPME: u32 = 1 << 2;
    /// Mirror the VLANs in VMRVLAN.
    pub const VLME: u32 = 1 << 3;
    /// The pool that gets the copies.
    pub const POOL_SHIFT: u32 = 8;
}

/// SCCRL, and the registers that go with it.
pub mod sccrl {
    /// Drop multicasts while the window before was over the threshold.
    pub const MDIPW: u32 = 1 << 0;
    /// Drop multicasts once this window is over the threshold.
    pub const MDICW: u32 = 1 << 1;
    /// Drop broadcasts while the window before was over the threshold.
    pub const BDIPW: u32 = 1 << 2;
    /// Drop broadcasts once this window is over the threshold.
    pub const BDICW: u32 = 1 << 3;
    /// Unicast that no filter knows counts as broadcast.
    pub const BIDU: u32 = 1 << 4;
    /// Basic intervals a window has; 0 counts as 1.
    pub const INTERVAL_SHIFT: u32 = 8;
    /// All of the interval's bits.
    pub const INTERVAL_MASK: u32 = 0x3ff << INTERVAL_SHIFT;
    /// Bytes of traffic that count as one towards a threshold.
    pub const BLOCK: usize = 64;
    /// Nanoseconds of one unit of SCBI.
    pub const BASIC_TICK_NS: u64 = 16;
    /// SCBI after reset: 100 ms.
    pub const BASIC_INTERVAL_RESET: u32 = 6_250_000;
}

/// SCSTS.
pub mod scsts {
    /// This window is over the broadcast threshold.
    pub const BSCA: u32 = 1 << 0;
    /// The window before was.
    pub const BSCAP: u32 = 1 << 1;
    /// This window is over the multicast threshold.
    pub const MSCA: u32 = 1 << 2;
    /// The window before was.
    pub const MSCAP: u32 = 1 << 3;
}

/// DTXCTL.
pub mod dtxctl {
    /// Malicious driver protection: a queue that hands over nonsense is blocked.
    pub const MDP_EN: u32 = 1 << 5;
    /// Report spoofing.
    pub const SPOOF_INT: u32 = 1 << 6;
    /// Insert VLAN tags that are given with the descriptor.
    pub const VLAN_ADDED: u32 = 1 << 3;
}

/// RTTBCNRC.
pub mod rttbcnrc {
    /// The rate is limited.
    pub const RS_ENA: u32 = 1 << 31;
    /// Link rate over the limit: 14 bits before the point, 14 after it.
    pub const FACTOR: u32 = 0x0fff_ffff;
    /// Where the bits before the point begin.
    pub const INTEGER_SHIFT: u32 = 14;
}

/// RPLOLR.
pub mod rplolr {
    /// Strip the VLAN tag of replicated packets.
    pub const STRVLAN: u32 = 1 << 30;
    /// Strip the frame check sequence of replicated packets.
    pub const STRCRC: u32 = 1 << 31;
}
