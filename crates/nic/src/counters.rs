//! What the card counts for its owner beyond the registers: 64-bit, never cleared, one set a pool. Left out:
//! what a driver reads, which is in the register file.

use i82576::ids::MAX_VFS;

/// A pool's traffic and losses since power-on.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PoolCounters {
    /// Frames received into the pool.
    pub rx_packets: u64,
    /// Their bytes, frame check sequence excluded.
    pub rx_bytes: u64,
    /// Of these frames, multicast ones.
    pub rx_multicast: u64,
    /// Of these frames, broadcast ones.
    pub rx_broadcast: u64,
    /// Frames for the pool that found too few descriptors.
    pub rx_no_descriptors: u64,
    /// Frames for the pool while its queue was not set up.
    pub rx_disabled: u64,
    /// Frames sent by the pool that the card switched or put on the wire.
    pub tx_packets: u64,
    /// Their bytes, frame check sequence excluded.
    pub tx_bytes: u64,
    /// Packets that made no sense: descriptors, lengths, offload requests.
    pub tx_invalid: u64,
    /// Frames with an address or VLAN that is not the pool's, and link-control frames.
    pub tx_blocked: u64,
    /// Frames that nobody took: no destination, or the wire refused.
    pub tx_unclaimed: u64,
    /// Memory requests that the bus refused.
    pub dma_faults: u64,
}

/// The counters of all pools.
pub type Counters = [PoolCounters; MAX_VFS];
