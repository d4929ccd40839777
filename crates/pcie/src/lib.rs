//! What PCI Express says, and nothing of any one device: functions and routing ids, the bus that a device
//! masters, configuration space with its capabilities, MSI-X and SR-IOV.
//!
//! - [`bus`]: who makes a request, and what a device needs of the bus;
//! - [`burst`]: frames of a burst as the bus moves them;
//! - [`config`]: a configuration space as bytes and masks, and how one is laid out;
//! - [`capability`]: the capabilities as data;
//! - [`endpoint`]: a configuration space with side effects;
//! - [`msix`], [`sriov`]: the two capabilities with a life of their own;
//! - [`VfIndex`], [`VfSet`]: which VF, and sets of them, of any device;
//! - [`pages`]: registers that a guest has as memory;
//! - [`ladder`]: by which reset a device is made ready for its next owner;
//! - [`access`], [`walk`]: configuration space from the software's side.
//!
//! Left out: link training, flow control and everything else below the transaction layer.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(test)]
extern crate std;

pub mod access;
pub mod burst;
pub mod bus;
pub mod capability;
pub mod config;
pub mod endpoint;
pub mod ladder;
pub mod msix;
pub mod pages;
pub mod sriov;
mod vf;
pub mod walk;

pub use access::ConfigAccess;
pub use burst::Hint;
pub use bus::{Access, Bus, DmaFault, Function, Iova, Rid, Space};
pub use endpoint::{Effects, Endpoint};
pub use vf::{MAX_VFS, NoSuchVf, VfIndex, VfSet};
