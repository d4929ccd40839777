//! Definition of virtual I/O devices as VIRTIO 1.2 describes them: feature bits, the header of a network packet, and
//! both sides of split and packed rings.
//!
//! | module | contents |
//! |---|---|
//! | [`feature`] | feature bits of rings and network devices, and the rules between them |
//! | [`net`] | the header in front of each packet, and its checked requests |
//! | [`memory`] | the trait by which a queue accesses the guest's memory |
//! | [`layout`] | size and addresses of a ring, checked |
//! | [`descriptor`] | the two formats of descriptors |
//! | [`chain`] | a burst of fetched chains, and the record that returns a chain |
//! | [`split`] | the device's side of a split ring |
//! | [`packed`] | the device's side of a packed ring |
//! | [`driver`] | the driver's side of a ring of either format |
//!
//! Queues work in bursts: one call fetches up to 32 chains, and one call returns any number of them with a single
//! publication. The driver may write its memory at any time, so each number is read once and checked. A malformed chain is
//! returned with an error; a malformed ring fails with [`RingError`] and has to be stopped.
//!
//! Sources: VIRTIO 1.2 (committee specification 01); the section numbers in comments are its. Not included:
//! transports, the control queue, the header with a hash report (20 bytes), big-endian legacy guests.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(test)]
extern crate std;

pub mod chain;
pub mod descriptor;
pub mod driver;
mod error;
pub mod feature;
pub mod layout;
pub mod memory;
pub mod net;
pub mod packed;
mod signal;
pub mod split;

pub use chain::{Chain, ChainBurst, ChainError, UsedChain};
pub use error::RingError;
pub use feature::VirtioFeatures;
pub use memory::{MemoryFault, RingMemory};

/// Examples of the page `README.md`, which the documentation tests compile and run.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ReadmeExamples;
