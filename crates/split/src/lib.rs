//! Split paravirtual drivers for network and disk, as Xen has them: half in the guest, half in the service domain, and
//! granted pages in between.
//!
//! - [`ring`]: the shared ring, its indices and events;
//! - [`message`]: what is said on the rings;
//! - [`front`]: the guest's half, a network device to its kernel;
//! - [`back`]: the service domain's half, with one or more workers, each with queues of its own;
//! - [`bridge`]: the switch in software that ties interfaces and cards together;
//! - [`dispatch`]: which virtual CPU hears what, and which worker has which interface.
//! - [`block`]: both halves for a disk.
//!
//! A frame to a guest: a card's driver receives it, the bridge says for whom it is, the back end queues it with the
//! worker of the guest's interface, the worker copies it into a page that the guest has granted for that and
//! answers the guest's request. A frame from a guest: the guest grants pages and describes them, the worker maps
//! them and copies the headers, the bridge looks at the copy; when the frame has gone where it goes, the worker
//! that mapped the pages unmaps them and answers.
//!
//! Whoever runs it says what things cost: every hypercall is a call of [`front::Hal`] or [`back::Host`], and every
//! packet is handed out.
//!
//! Left out: finding each other (xenbus), page flipping, multicast filters, and credit.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod back;
pub mod block;
pub mod bridge;
pub mod dispatch;
pub mod front;
pub mod message;
pub mod ring;
#[cfg(test)]
mod tests;

pub use back::Backend;
pub use bridge::Bridge;
pub use front::Front;

use alloc::boxed::Box;

/// Bytes of a page.
pub const PAGE: usize = 4096;
/// Pieces that a frame may be in, its first among them: 64 KB in pages, at any offset.
pub const PIECES: usize = 18;
/// Longest frame: its first piece tells its length in 16 bits.
pub const LONGEST: usize = 0xffff;

/// The two rings of an interface: pages that front end and back end share.
#[derive(Debug, Clone, Default)]
pub struct Rings {
    /// Frames from the guest.
    pub transmit: Box<ring::Page>,
    /// Buffers of the guest for frames to it.
    pub receive: Box<ring::Page>,
}

/// What is left to be done to a frame on its way, or need not be done because it stayed in the machine.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Offload {
    /// Its TCP or UDP checksum is not filled in.
    pub blank: bool,
    /// It is to be cut into segments of this many bytes before it leaves the machine.
    pub segment: Option<u16>,
}

/// The checksum of an IPv4 header whose own field is zero (RFC 1071).
fn checksum(header: &[u8]) -> u16 {
    let words =
        header.chunks(2).map(|pair| u32::from(pair[0]) << 8 | pair.get(1).map_or(0, |low| u32::from(*low)));
    let sum: u32 = words.sum();
    let folded = (sum & 0xffff) + (sum >> 16);
    !((folded & 0xffff) + (folded >> 16)) as u16
}

/// Slots of the receive ring that a frame needs: its pages, and a word on segments.
#[must_use]
pub fn slots(length: usize, offload: Offload) -> u32 {
    length.div_ceil(PAGE).max(1) as u32 + u32::from(offload.segment.is_some())
}
