//! What PCI Express says, and nothing of any one device: functions and routing ids, and the bus that a
//! device masters. Configuration space, capabilities, BARs and MSI-X join it here.
//!
//! Left out: link training, flow control and everything else below the transaction layer.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod bus;

pub use bus::{Bus, DmaFault, Function, Iova, Rid};
