//! The vhost-user protocol for network devices: encoding of messages, and sessions of both sides as state machines.
//!
//! A descriptor is a type parameter `F` that closes on drop (`OwnedFd` in the host, a number in tests).
#![doc = include_str!("../README.md")]
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod backend;
pub mod decoder;
pub mod features;
pub mod frontend;
pub mod inflight;
pub mod message;
pub mod outbox;
