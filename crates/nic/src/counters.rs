//! Counters of each pool for the card's owner, which the plane keeps. Left out: statistics registers (`statistics`).

use i82576::ids::MAX_VFS;

pub use plane::PortCounters as PoolCounters;

/// RQDPC has 12 bits and stops at its end.
pub(crate) const RQDPC_END: u32 = 0xfff;

/// The counters of all pools.
pub type Counters = [PoolCounters; MAX_VFS];
