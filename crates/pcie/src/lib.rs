#![doc = include_str!("../README.md")]
//!
//! # Modules
//!
//! - `bus`: functions, and a device's interface to the bus;
//! - [`burst`]: bursts of frames on the bus;
//! - [`config`]: a configuration space as bytes and masks, and its builder;
//! - [`capability`]: the capabilities as data;
//! - `endpoint`: a configuration space with side effects;
//! - [`msix`], [`sriov`]: the state machines of these capabilities;
//! - [`VfIndex`], [`VfSet`]: indices and sets of VFs, of any device;
//! - [`low`]: low bits of a register's value;
//! - [`pages`]: registers that a guest accesses as memory;
//! - [`ladder`]: the reset of a device before its next owner;
//! - `access`, [`walk`]: configuration space from the software's side.
#![no_std]
#![forbid(unsafe_code)]
#![cfg_attr(not(test), warn(clippy::cast_lossless, clippy::cast_possible_truncation, clippy::cast_sign_loss))]

extern crate alloc;
#[cfg(test)]
extern crate std;

mod access;
pub mod burst;
mod bus;
pub mod capability;
pub mod config;
mod endpoint;
pub mod ladder;
pub mod low;
pub mod msix;
pub mod pages;
pub mod sriov;
mod vf;
pub mod walk;

pub use access::ConfigAccess;
pub use burst::MemoryHint;
pub use bus::{AnnouncedAccess, Bus, DmaFault, Function, HintedMemory, Iova, Rid};
pub use endpoint::{ConfigWriteEffects, Endpoint};
pub use vf::{MAX_VFS, NoSuchVf, VfIndex, VfSet};
