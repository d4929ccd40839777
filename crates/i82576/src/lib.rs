//! Registers, bit fields, descriptors, mailbox words and ids of the Intel 82576 (its datasheet in code). The card
//! (`nic`) and its drivers (`driver`) are both written against this crate and share no other code.
//!
//! The crate has no behaviour: the card implements the registers' side effects.
#![no_std]
#![forbid(unsafe_code)]

#[cfg(test)]
extern crate std;

pub mod bits;
pub mod config;
pub mod descriptor;
pub mod ids;
pub mod mailbox;
mod numbers;
pub mod nvm;
pub mod phy;
pub mod register;
pub mod table;
pub mod window;

pub use numbers::{PoolIndex, QueueIndex, VectorIndex, VfIndex};
pub use units::{MacAddress, Time};
