//! Models the processors of a machine with sibling threads, its domains, virtual CPUs, cost tables and
//! accounts of cycles.
//!
//! Everything runs in virtual time ([`sim`]) without a clock. The caller runs work to completion; this crate
//! computes how long it occupied a thread and accounts for every cycle.
//!
//! Guests, cards and experiments are in other crates.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(test)]
extern crate std;

pub mod account;
pub mod cost;
pub mod cpu;
pub mod decode;
pub mod domain;
pub mod evtchn;
pub mod exit;
pub mod grant;
pub mod iommu;
pub mod lapic;
pub mod memory;
pub mod msix;
pub mod remap;
