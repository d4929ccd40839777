//! Stop 2: who gets a frame. A frame from the wire or from a pool is matched against the filters, and the
//! answer is a set of pools and whether it goes to the wire (datasheet 7.10.3, packet switching).
//!
//! Left out: rate limiting.

mod addresses;
mod decide;
mod mirror;
mod storm;
mod tables;
mod vlans;

#[cfg(test)]
mod tests;

pub use decide::{Decision, Frame, Reason, Source};
pub use storm::Storm;
pub use tables::{PoolOptions, Tables};
