//! Bit fields of the filters that choose a queue within the pool, ask for an interrupt at once, or for a time
//! stamp. Addresses and ports are in a register as they are in a frame: the first byte of the frame is the lowest.

/// ETQF.
pub mod etqf {
    /// The ether type, as a number.
    pub const TYPE: u32 = 0xffff;
    /// Position of the queue, 4 bits. Drivers that know three of them leave the fourth zero.
    pub const QUEUE_SHIFT: u32 = 16;
    /// The filter counts.
    pub const ENABLE: u32 = 1 << 26;
    /// A hit interrupts at once.
    pub const IMMEDIATE: u32 = 1 << 29;
    /// A hit may be a packet of the precision time protocol.
    pub const TIMED: u32 = 1 << 30;
    /// A hit goes to the queue.
    pub const QUEUE_ENABLE: u32 = 1 << 31;
    /// What is kept.
    pub const KEPT: u32 = TYPE | 0xf << QUEUE_SHIFT | ENABLE | IMMEDIATE | TIMED | QUEUE_ENABLE;
}

/// SYNQF.
pub mod synqf {
    /// Segments that open a TCP connection go to the queue.
    pub const QUEUE_ENABLE: u32 = 1 << 0;
    /// Position of the queue, 4 bits.
    pub const QUEUE_SHIFT: u32 = 1;
    /// What is kept.
    pub const KEPT: u32 = QUEUE_ENABLE | 0xf << QUEUE_SHIFT;
}

/// FTQF. With it go SAQF, DAQF and SPQF, and IMIR and IMIREXT of the same number.
pub mod ftqf {
    /// The IP protocol.
    pub const PROTOCOL: u32 = 0xff;
    /// A hit goes to the queue.
    pub const QUEUE_ENABLE: u32 = 1 << 8;
    /// Position of the pool, 3 bits.
    pub const POOL_SHIFT: u32 = 12;
    /// Any pool will do.
    pub const ANY_POOL: u32 = 1 << 15;
    /// Position of the queue, 4 bits.
    pub const QUEUE_SHIFT: u32 = 16;
    /// A hit may be a packet of the precision time protocol.
    pub const TIMED: u32 = 1 << 27;
    /// Any protocol will do.
    pub const ANY_PROTOCOL: u32 = 1 << 28;
    /// Any source address will do.
    pub const ANY_SOURCE: u32 = 1 << 29;
    /// Any destination address will do.
    pub const ANY_DESTINATION: u32 = 1 << 30;
    /// Any source port will do.
    pub const ANY_SOURCE_PORT: u32 = 1 << 31;
    /// What is kept.
    pub const KEPT: u32 = 0xf80f_f1ff;
}

/// IMIR.
pub mod imir {
    /// The destination port.
    pub const PORT: u32 = 0xffff;
    /// A hit interrupts at once.
    pub const IMMEDIATE: u32 = 1 << 16;
    /// Any destination port will do.
    pub const ANY_PORT: u32 = 1 << 17;
    /// Position of the priority, 3 bits: of several hits the highest counts.
    pub const PRIORITY_SHIFT: u32 = 29;
    /// What is kept.
    pub const KEPT: u32 = 0xe003_ffff;
}

/// IMIREXT.
pub mod imirext {
    /// Only frames shorter than this are hits.
    pub const SIZE: u32 = 0xfff;
    /// Any size will do.
    pub const ANY_SIZE: u32 = 1 << 12;
    /// Position of six TCP flags, of which one is enough: URG, ACK, PSH, RST, SYN, FIN from the lowest bit on.
    pub const FLAGS_SHIFT: u32 = 13;
    /// Any flags will do.
    pub const ANY_FLAGS: u32 = 1 << 19;
    /// What is kept.
    pub const KEPT: u32 = 0x000f_ffff;
}

/// IMIRVP.
pub mod imirvp {
    /// The lowest priority of a VLAN tag that interrupts at once.
    pub const PRIORITY: u32 = 7;
    /// Priorities count.
    pub const ENABLE: u32 = 1 << 3;
    /// What is kept.
    pub const KEPT: u32 = PRIORITY | ENABLE;
}

/// RFCTL.
pub mod rfctl {
    /// Frames whose length field says more than there is are passed on.
    pub const LEF: u32 = 1 << 18;
    /// The SYN filter comes before the five-tuple filters.
    pub const SYNQFP: u32 = 1 << 19;
}

/// PSRTYPE: a bit a kind of frame whose headers are split off.
pub mod psrtype {
    /// Whatever has an Ethernet header: split behind it, where no other kind says more.
    pub const ETHERNET: u32 = 1 << 0;
    /// A fragment of an IPv4 packet.
    pub const IPV4: u32 = 1 << 1;
    /// TCP over IPv4.
    pub const IPV4_TCP: u32 = 1 << 2;
    /// UDP over IPv4.
    pub const IPV4_UDP: u32 = 1 << 3;
    /// A fragment of an IPv6 packet.
    pub const IPV6: u32 = 1 << 7;
    /// TCP over IPv6.
    pub const IPV6_TCP: u32 = 1 << 8;
    /// UDP over IPv6.
    pub const IPV6_UDP: u32 = 1 << 9;
}
