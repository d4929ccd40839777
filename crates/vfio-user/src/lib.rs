#![doc = include_str!("../README.md")]
//!
//! # Modules
//!
//! - [`wire`]: layouts and numbers;
//! - [`decoder`]: bytes to messages with their descriptors;
//! - [`outbox`]: messages to `sendmsg` calls;
//! - [`server`]: a [`ServerSession`](server::ServerSession) turns messages into calls of a
//!   [`ServedDevice`](server::ServedDevice);
//! - [`client`]: requests and their replies, for embedded guests and tests.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod client;
pub mod decoder;
pub mod outbox;
pub mod server;
pub mod types;
pub mod wire;
