#![doc = include_str!("../README.md")]
//!
//! # Modules
//!
//! | module | contents |
//! |---|---|
//! | `supervisor` | the keeper process: starts hosts, and holds their descriptors |
//! | `starter` | the process that forks hosts for the keeper process |
//! | `heritage` | a host's start: the descriptors that were kept for it |
//! | `connection` | a host's connection to its keeper, or to systemd |
//! | `channel` | the messages between a host and its successor |
//! | `message` | messages with a descriptor, and descriptors by name |
//! | `backing` | the copy of the keeper's descriptors in systemd's store |
//! | `process` | a child process by its pidfd |
//! | `log` | lines on standard error |
#![forbid(unsafe_code)]

mod backing;
mod channel;
mod connection;
mod deaths;
mod heritage;
mod log;
mod message;
mod process;
mod starter;
mod supervisor;
#[cfg(any(test, feature = "test-support"))]
pub mod test_support;
#[cfg(test)]
mod tests;

pub use channel::{HandOverChannel, STARTED};
pub use connection::KeeperConnection;
pub use heritage::{FileDescriptorSender, InheritedFileDescriptors, InheritedFileDescriptorsError};
pub use host::confine::SeccompMode;
pub use message::{KeptFileDescriptors, number};
pub use supervisor::{KeeperConfig, RESTART, keep};
