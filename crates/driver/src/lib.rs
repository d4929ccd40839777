//! PF and VF drivers, portable over any bus: every implementation of [`Hal`] can carry them, be it the card in the
//! same process, a vfio-user socket, or silicon.
//!
//! A driver is state without a bus: every call receives the Hal, so that several drivers can share one.
//!
//! The owner delivers interrupts as calls, and the Hal returns the time.
//!
//! Modules [`pf`] and [`vf`] are the 82576's; [`avf`] has both drivers of an Adaptive Virtual Function, and [`any_vf`]
//! a VF driver for either family.
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
