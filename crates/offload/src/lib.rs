#![doc = include_str!("../README.md")]
//!
//! # Modules
//!
//! | module | task |
//! |---|---|
//! | [`headers`] | finds the headers of a frame |
//! | [`plain`] | the fast path of [`headers`] and [`verify`] for plain TCP and UDP frames |
//! | [`request`] | a sender's description of a packet, and its requests |
//! | [`insert`] | puts checksums into a frame |
//! | [`segment`] | cuts a packet into frames |
//! | [`template`] | the fast path of [`segment`] for the headers of plain packets |
//! | [`coalesce`] | joins TCP segments into a packet |
//! | [`uncut`] | packets that the kernel at the uplink cuts |
//! | [`verify`] | checks checksums |
//! | [`toeplitz`] | the hash that spreads frames over queues |
//! | [`checksum`], [`crc`] | the sums themselves |
#![no_std]
#![forbid(unsafe_code)]
#![cfg_attr(not(test), warn(clippy::cast_lossless, clippy::cast_possible_truncation, clippy::cast_sign_loss))]

extern crate alloc;
#[cfg(test)]
extern crate std;

pub mod checksum;
pub mod coalesce;
pub mod crc;
pub mod headers;
pub mod insert;
mod narrow;
pub mod plain;
pub mod request;
pub mod segment;
pub mod template;
pub mod toeplitz;
pub mod uncut;
pub mod verify;

pub use headers::FrameHeaders;
pub use request::OffloadRequest;

#[cfg(test)]
mod tests;
