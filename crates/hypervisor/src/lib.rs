//! The modelled machine: processors with sibling threads, domains, virtual processors, what an operation costs
//! and who paid for it.
//!
//! Everything runs in virtual time ([`sim`]) and nothing here has a clock. Work is run to completion by whoever
//! assembles a world; this crate says for how long it kept a thread busy and accounts for every cycle.
//!
//! Left out: guests (what runs on the processors), the card, and the experiments.
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
