//! Bit fields of the filters that select a queue within the pool, an immediate interrupt, or a time stamp.
//! Addresses and ports in registers have the byte order of the frame: the first byte is the lowest.

/// Bits of an EtherType filter (ETQF).
pub mod etqf {
    /// ETQF: mask of the EtherType to match.
    pub const TYPE: u32 = 0xffff;
    /// ETQF: position of the filter's queue, 4 bits. Drivers that use three of these bits leave the fourth
    /// zero.
    pub const QUEUE_SHIFT: u32 = 16;
    /// ETQF: the EtherType filter is enabled.
    pub const ENABLE: u32 = 1 << 26;
    /// ETQF: a matching frame interrupts immediately.
    pub const IMMEDIATE: u32 = 1 << 29;
    /// ETQF: a matching frame may be a packet of the precision time protocol.
    pub const TIMED: u32 = 1 << 30;
    /// ETQF: a matching frame goes to the filter's queue.
    pub const QUEUE_ENABLE: u32 = 1 << 31;
    /// ETQF: writable bits of an EtherType filter.
    pub const KEPT: u32 = TYPE | 0xf << QUEUE_SHIFT | ENABLE | IMMEDIATE | TIMED | QUEUE_ENABLE;
}

/// Bits of the filter of TCP SYN segments (SYNQF).
pub mod synqf {
    /// SYNQF: TCP SYN segments go to the filter's queue.
    pub const QUEUE_ENABLE: u32 = 1 << 0;
    /// SYNQF: position of the filter's queue, 4 bits.
    pub const QUEUE_SHIFT: u32 = 1;
    /// SYNQF: writable bits of the filter of TCP SYN segments.
    pub const KEPT: u32 = QUEUE_ENABLE | 0xf << QUEUE_SHIFT;
}

/// Bits of a five-tuple filter (FTQF). SAQF, DAQF, SPQF, IMIR and IMIREXT of the same index belong to it.
pub mod ftqf {
    /// FTQF: mask of the IP protocol number to match.
    pub const PROTOCOL: u32 = 0xff;
    /// FTQF: a matching packet goes to the filter's queue.
    pub const QUEUE_ENABLE: u32 = 1 << 8;
    /// FTQF: position of the pool to match, 3 bits.
    pub const POOL_SHIFT: u32 = 12;
    /// FTQF: the filter does not compare the pool.
    pub const ANY_POOL: u32 = 1 << 15;
    /// FTQF: position of the filter's queue, 4 bits.
    pub const QUEUE_SHIFT: u32 = 16;
    /// FTQF: a matching packet may be one of the precision time protocol.
    pub const TIMED: u32 = 1 << 27;
    /// FTQF: the filter does not compare the IP protocol.
    pub const ANY_PROTOCOL: u32 = 1 << 28;
    /// FTQF: the filter does not compare the source address.
    pub const ANY_SOURCE: u32 = 1 << 29;
    /// FTQF: the filter does not compare the destination address.
    pub const ANY_DESTINATION: u32 = 1 << 30;
    /// FTQF: the filter does not compare the source port.
    pub const ANY_SOURCE_PORT: u32 = 1 << 31;
    /// FTQF: writable bits of a five-tuple filter.
    pub const KEPT: u32 = 0xf80f_f1ff;
}

/// Bits of a five-tuple filter's port and interrupt (IMIR).
pub mod imir {
    /// IMIR: mask of the destination port to match.
    pub const PORT: u32 = 0xffff;
    /// IMIR: a matching packet interrupts immediately.
    pub const IMMEDIATE: u32 = 1 << 16;
    /// IMIR: the filter does not compare the destination port.
    pub const ANY_PORT: u32 = 1 << 17;
    /// IMIR: position of the filter's priority, 3 bits: the matching filter with the highest priority
    /// applies.
    pub const PRIORITY_SHIFT: u32 = 29;
    /// IMIR: writable bits of a five-tuple filter's port and interrupt.
    pub const KEPT: u32 = 0xe003_ffff;
}

/// Bits of a five-tuple filter's size and TCP flags (IMIREXT).
pub mod imirext {
    /// IMIREXT: size in bytes below which a frame matches.
    pub const SIZE: u32 = 0xfff;
    /// IMIREXT: the filter does not compare the packet's size.
    pub const ANY_SIZE: u32 = 1 << 12;
    /// IMIREXT: position of six TCP flags, any of which matches: URG, ACK, PSH, RST, SYN, FIN from the lowest
    /// bit on.
    pub const FLAGS_SHIFT: u32 = 13;
    /// IMIREXT: the filter does not compare the TCP flags.
    pub const ANY_FLAGS: u32 = 1 << 19;
    /// IMIREXT: writable bits of a five-tuple filter's size and TCP flags.
    pub const KEPT: u32 = 0x000f_ffff;
}

/// Bits of the immediate interrupt by VLAN priority (IMIRVP).
pub mod imirvp {
    /// IMIRVP: lowest priority of a VLAN tag that interrupts immediately.
    pub const PRIORITY: u32 = 7;
    /// IMIRVP: the filter compares VLAN priorities.
    pub const ENABLE: u32 = 1 << 3;
    /// IMIRVP: writable bits of the immediate interrupt by VLAN priority.
    pub const KEPT: u32 = PRIORITY | ENABLE;
}

/// Bits of the receive filter control (RFCTL).
pub mod rfctl {
    /// RFCTL: frames shorter than their length field are accepted.
    pub const LEF: u32 = 1 << 18;
    /// RFCTL: the SYN filter precedes the five-tuple filters.
    pub const SYNQFP: u32 = 1 << 19;
}

/// PSRTYPE: header types that are split off, a bit each.
pub mod psrtype {
    /// PSRTYPE: split after the Ethernet header of any frame, unless another type matches.
    pub const ETHERNET: u32 = 1 << 0;
    /// PSRTYPE: split after the header of IPv4 fragments.
    pub const IPV4: u32 = 1 << 1;
    /// PSRTYPE: split after the headers of TCP over IPv4.
    pub const IPV4_TCP: u32 = 1 << 2;
    /// PSRTYPE: split after the headers of UDP over IPv4.
    pub const IPV4_UDP: u32 = 1 << 3;
    /// PSRTYPE: split after the header of IPv6 fragments.
    pub const IPV6: u32 = 1 << 7;
    /// PSRTYPE: split after the headers of TCP over IPv6.
    pub const IPV6_TCP: u32 = 1 << 8;
    /// PSRTYPE: split after the headers of UDP over IPv6.
    pub const IPV6_UDP: u32 = 1 << 9;
}
