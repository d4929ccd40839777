//! Offsets within a receive queue's block ([`super::rx_block`]).

offsets! {
    /// Receive ring's base address, low half; 128-byte aligned.
    RDBAL = 0x00;
    /// Receive ring's base address, high half.
    RDBAH = 0x04;
    /// Receive ring's length in bytes, a multiple of 128.
    RDLEN = 0x08;
    /// SRRCTL: buffer sizes and descriptor format of the receive queue (split and replication receive
    /// control).
    SRRCTL = 0x0c;
    /// Receive ring's head: next descriptor that the card fills.
    RDH = 0x10;
    /// RXCTL: direct cache access control of the receive queue.
    RXCTL = 0x14;
    /// Receive ring's tail: first descriptor that the driver owns.
    RDT = 0x18;
    /// Receive descriptor control: enable bit and thresholds.
    RXDCTL = 0x28;
    /// RQDPC: number of packets that the receive queue dropped, cleared on read.
    RQDPC = 0x30;
}
