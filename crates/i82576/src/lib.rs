//! What the 82576 datasheet says: the register table, bit fields, descriptors, mailbox words and ids.
//! The card (`nic`) and its drivers (`driver`) are both written against this crate and against nothing
//! of each other.
//!
//! Left out: all behaviour. A register's side effects live in the card.
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

pub use numbers::{Pool, Queue, Vector, VfIndex};
pub use units::{MacAddress, Time};
