//! What a card computes so that its guest need not, whatever the card's registers and descriptors look like. Pure functions
//! over bytes that nobody may be trusted with: no panic, no allocation, work bounded by the length of what is given.
//!
//! | module | what it does |
//! |---|---|
//! | [`headers`] | finds the headers of a frame |
//! | [`plain`] | the same at a glance, for what nearly every frame is |
//! | [`request`] | what a sender says of a packet, and asks for it |
//! | [`insert`] | puts checksums into a frame |
//! | [`segment`] | cuts a packet into frames |
//! | [`uncut`] | packets that somebody else cuts |
//! | [`verify`] | says whether checksums are right |
//! | [`toeplitz`] | the hash that spreads frames over queues |
//! | [`checksum`], [`crc`] | the sums themselves |
//!
//! Left out: descriptors and registers, which differ from family to family of cards; where the bytes come from and go to;
//! VLAN tags, which are the forwarding plane's.
#![no_std]
#![forbid(unsafe_code)]

#[cfg(test)]
extern crate alloc;
#[cfg(test)]
extern crate std;

pub mod checksum;
pub mod crc;
pub mod headers;
pub mod insert;
pub mod plain;
pub mod request;
pub mod segment;
pub mod toeplitz;
pub mod uncut;
pub mod verify;

pub use headers::Headers;
pub use request::Request;

#[cfg(test)]
mod tests;
