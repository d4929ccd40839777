//! Bit fields of the switch between pools.

/// Bits of the control of pools (VT_CTL).
pub mod vt_ctl {
    /// VT_CTL: position of the default pool's number.
    pub const DEF_PL_SHIFT: u32 = 7;
    /// VT_CTL: mask of the default pool.
    pub const DEF_PL_MASK: u32 = 7 << DEF_PL_SHIFT;
    /// VT_CTL: only the VLAN selects the pools of a frame.
    pub const IGNORE_MAC: u32 = 1 << 28;
    /// VT_CTL: frames without a matching pool have no default pool.
    pub const DIS_DEF_PL: u32 = 1 << 29;
    /// VT_CTL: replicate a frame to every matching pool.
    pub const REPL_EN: u32 = 1 << 30;
}

/// Bits of a pool's receive options (VMOLR).
pub mod vmolr {
    /// VMOLR: mask of the length of the longest packet that the pool accepts (RLPML).
    pub const RLPML_MASK: u32 = 0x3fff;
    /// VMOLR: the pool accepts long packets.
    pub const LPE: u32 = 1 << 16;
    /// VMOLR: the pool's queues use receive-side scaling.
    pub const RSSE: u32 = 1 << 17;
    /// VMOLR: the pool accepts untagged packets.
    pub const AUPE: u32 = 1 << 24;
    /// VMOLR: the pool accepts packets that hit the multicast table.
    pub const ROMPE: u32 = 1 << 25;
    /// VMOLR: the pool accepts packets that hit the unicast table.
    pub const ROPE: u32 = 1 << 26;
    /// VMOLR: the pool accepts broadcasts.
    pub const BAM: u32 = 1 << 27;
    /// VMOLR: the pool accepts every multicast packet.
    pub const MPME: u32 = 1 << 28;
    /// VMOLR: strip the VLAN tag of the pool's received packets.
    pub const STRVLAN: u32 = 1 << 30;
    /// VMOLR: strip the frame check sequence; must be one.
    pub const STRCRC: u32 = 1 << 31;
}

/// Bits of a pool's default VLAN tag (VMVIR).
pub mod vmvir {
    /// VMVIR: mask of the default VLAN tag.
    pub const TAG_MASK: u32 = 0xffff;
    /// VMVIR: position of the VLAN insertion mode.
    pub const VLANA_SHIFT: u32 = 30;
    /// VMVIR mode: always insert the pool's default VLAN tag.
    pub const DEFAULT: u32 = 1 << VLANA_SHIFT;
    /// VMVIR mode: never insert a VLAN tag.
    pub const NEVER: u32 = 2 << VLANA_SHIFT;
}

/// Bits of a VLAN pool filter (VLVF).
pub mod vlvf {
    /// VLVF: mask of the VLAN id.
    pub const VLANID_MASK: u32 = 0xfff;
    /// VLVF: position of the pools that are members of the VLAN, a bit each.
    pub const POOLSEL_SHIFT: u32 = 12;
    /// VLVF: mask of the pools that are members of the VLAN.
    pub const POOLSEL_MASK: u32 = 0xff << POOLSEL_SHIFT;
    /// VLVF: local VLAN, whose frames never go to the wire.
    pub const LVLAN: u32 = 1 << 20;
    /// VLVF: the VLAN filter entry is valid.
    pub const VLANID_EN: u32 = 1 << 31;
}

/// Bits of the transmit switch control (DTXSWC).
pub mod dtxswc {
    /// DTXSWC: position of the MAC anti-spoofing bits, a bit per pool.
    pub const MAC_SPOOF_SHIFT: u32 = 0;
    /// DTXSWC: position of the VLAN anti-spoofing bits, a bit per pool.
    pub const VLAN_SPOOF_SHIFT: u32 = 8;
    /// DTXSWC: position of the local loopback bits, by which a pool receives its own frames, a bit per pool.
    pub const LLE_SHIFT: u32 = 16;
    /// DTXSWC: switching of frames between pools is enabled.
    pub const LOOPBACK_EN: u32 = 1 << 31;
}

/// Bits of WVBR (wrong VM behaviour) and MDFB (malicious driver free block), a bit per queue. In WVBR the low half has
/// queues that sent forged frames, the high half blocked queues.
pub mod wvbr {
    /// WVBR: position of the bits of blocked queues.
    pub const BLOCKED_SHIFT: u32 = 16;
}

/// Bits of LVMMC (cause and queue of the last misbehaviour of a VF). Drivers treat a cause in bits 4:2 as a blocked
/// queue; the assignment of the bits is this model's.
pub mod lvmmc {
    /// LVMMC: the source address or VLAN of a frame was forged.
    pub const SPOOFED: u32 = 1 << 0;
    /// LVMMC: a descriptor had an unknown type, or a type that is not permitted at this position in the packet.
    pub const DESCRIPTOR: u32 = 1 << 2;
    /// LVMMC: the packet cannot have the requested header lengths or segment size.
    pub const CONTEXT: u32 = 1 << 3;
    /// LVMMC: the packet was too long, too short, or of too many descriptors.
    pub const SIZE: u32 = 1 << 4;
    /// LVMMC: position of the queue that was blocked.
    pub const QUEUE_SHIFT: u32 = 16;
}

/// Bits of a mirror rule (VMRCTL).
pub mod vmrctl {
    /// VMRCTL: mirror frames that the pools in VMRVM receive.
    pub const VPME: u32 = 1 << 0;
    /// VMRCTL: mirror frames from the wire.
    pub const UPME: u32 = 1 << 1;
    /// VMRCTL: mirror frames to the wire.
    pub const DPME: u32 = 1 << 2;
    /// VMRCTL: mirror the VLANs in VMRVLAN.
    pub const VLME: u32 = 1 << 3;
    /// VMRCTL: position of the pool that receives the copies.
    pub const POOL_SHIFT: u32 = 8;
}

/// Bits of SCCRL (storm control), and units of the related registers.
pub mod sccrl {
    /// SCCRL: drop multicasts if the previous window exceeded the threshold.
    pub const MDIPW: u32 = 1 << 0;
    /// SCCRL: drop multicasts once this window exceeds the threshold.
    pub const MDICW: u32 = 1 << 1;
    /// SCCRL: drop broadcasts if the previous window exceeded the threshold.
    pub const BDIPW: u32 = 1 << 2;
    /// SCCRL: drop broadcasts once this window exceeds the threshold.
    pub const BDICW: u32 = 1 << 3;
    /// SCCRL: count unicast to unknown addresses as broadcast.
    pub const BIDU: u32 = 1 << 4;
    /// SCCRL: position of the number of basic intervals per window; 0 counts as 1.
    pub const INTERVAL_SHIFT: u32 = 8;
    /// SCCRL: mask of the basic intervals per window.
    pub const INTERVAL_MASK: u32 = 0x3ff << INTERVAL_SHIFT;
    /// Bytes of traffic per unit of a storm control threshold.
    pub const BLOCK: usize = 64;
    /// Nanoseconds per unit of SCBI.
    pub const BASIC_TICK_NS: u64 = 16;
    /// Value of SCBI after reset: 100 ms.
    pub const BASIC_INTERVAL_RESET: u32 = 6_250_000;
}

/// Bits of the storm control status (SCSTS).
pub mod scsts {
    /// SCSTS: the current window exceeds the broadcast threshold.
    pub const BSCA: u32 = 1 << 0;
    /// SCSTS: the previous window exceeded the broadcast threshold.
    pub const BSCAP: u32 = 1 << 1;
    /// SCSTS: the current window exceeds the multicast threshold.
    pub const MSCA: u32 = 1 << 2;
    /// SCSTS: the previous window exceeded the multicast threshold.
    pub const MSCAP: u32 = 1 << 3;
}

/// Bits of the transmit control of pools (DTXCTL).
pub mod dtxctl {
    /// DTXCTL: malicious driver protection: a queue with invalid descriptors is blocked.
    pub const MDP_EN: u32 = 1 << 5;
    /// DTXCTL: interrupt on a frame that anti-spoofing drops.
    pub const SPOOF_INT: u32 = 1 << 6;
    /// DTXCTL: the card inserts the VLAN tags that descriptors request.
    pub const VLAN_ADDED: u32 = 1 << 3;
}

/// Bits of a queue's rate limit (RTTBCNRC).
pub mod rttbcnrc {
    /// RTTBCNRC: the queue's transmit rate is limited.
    pub const RS_ENA: u32 = 1 << 31;
    /// RTTBCNRC: link rate divided by the queue's rate limit: 14 integer bits, 14 fraction bits.
    pub const FACTOR: u32 = 0x0fff_ffff;
    /// RTTBCNRC: position of the rate factor's integer bits.
    pub const INTEGER_SHIFT: u32 = 14;
}

/// Bits of the options of replicated packets (RPLOLR).
pub mod rplolr {
    /// RPLOLR: strip the VLAN tag of replicated packets.
    pub const STRVLAN: u32 = 1 << 30;
    /// RPLOLR: strip the frame check sequence of replicated packets.
    pub const STRCRC: u32 = 1 << 31;
}
