#![doc = include_str!("../README.md")]
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
