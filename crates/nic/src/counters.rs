//! Counters of each pool, which the forwarding plane keeps for the program that owns the card. Statistics registers are
//! in `statistics`.

use i82576::ids::MAX_VFS;

pub use plane::PortCounters as PoolCounters;

/// Largest value of the counter of dropped packets, RQDPC (12 bits). The counter stops there.
pub(crate) const RQDPC_END: u32 = 0xfff;

/// Counters of all pools, by the pool's number.
pub type PoolCounterArray = [PoolCounters; MAX_VFS];
