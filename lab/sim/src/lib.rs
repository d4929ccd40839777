//! Virtual time: instants in picoseconds, an event queue with a stable order, named deterministic random
//! generators, and a trace with a rolling hash.
//!
//! The same seed gives the same events in the same order and therefore the same hash. The lab runs every
//! experiment twice to check this.
//!
//! The events themselves belong to the caller: this crate has no machines, cards or drivers.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(test)]
extern crate std;

pub mod frequency;
pub mod queue;
pub mod random;
pub mod time;
pub mod trace;

pub use frequency::Frequency;
pub use queue::{EventKey, EventQueue};
pub use random::RandomStream;
pub use time::{VirtualDuration, VirtualInstant};
pub use trace::{EventTrace, TraceLabel};
