#![doc = include_str!("../README.md")]
#![no_std]
#![forbid(unsafe_code)]
#![cfg_attr(not(test), warn(clippy::cast_lossless, clippy::cast_possible_truncation, clippy::cast_sign_loss))]

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
pub use units::{MacAddress, Time, WorkCost};
