#![doc = include_str!("../README.md")]
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(test)]
extern crate std;

pub mod any_vf;
pub mod avf;
pub mod conduct;
#[cfg(test)]
mod desk;
pub mod hal;
pub mod moderation;
mod offload;
pub mod pf;
mod ring;
pub mod vf;

pub use any_vf::AnyVf;
pub use hal::{DmaAllocation, DmaHal, Hal, OutOfDmaMemory, PrefetchPurpose};
pub use pf::Pf;
pub use vf::Vf;
