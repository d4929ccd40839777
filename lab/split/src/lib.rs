//! Split paravirtual drivers for network and disk as in Xen: a front end in the guest and a back end in the
//! service domain, joined by granted pages.
//!
//! - [`ring`]: the shared ring with its indices and events;
//! - [`message`]: the messages on the rings;
//! - [`front`]: the guest's half, a network device to the guest's kernel;
//! - [`back`]: the service domain's half, with one or more workers that each have their own queues;
//! - [`bridge`]: the software switch between interfaces and cards;
//! - [`dispatch`]: the assignment of events to virtual CPUs and of interfaces to workers;
//! - [`block`]: both halves for a disk.
//!
//! A frame to a guest: the card's driver receives it, the bridge chooses the interface, and the back end
//! queues it at the interface's worker. The worker copies it into a page the guest has posted and puts the
//! response. A frame from a guest: the guest grants pages and describes them, the worker maps them and copies
//! the headers, and the bridge forwards by that copy. Once the frame is sent, the worker that mapped the
//! pages unmaps them and responds.
//!
//! Costs are the caller's: every hypercall is a call of [`front::NetworkFrontendHal`] or
//! [`back::NetworkBackendHal`], and every packet passes through the caller.
//!
//! The xenbus handshake, page flipping, multicast filters and credit limits are not supported.
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

pub use back::NetworkBackend;
pub use bridge::LearningBridge;
pub use front::NetworkFrontend;

use alloc::boxed::Box;

/// Bytes of a page that the guest grants.
pub const PAGE: usize = 4096;
/// Maximum number of pieces of a frame, each within a page: enough for 64 KB that start anywhere in a page.
pub const PIECES: usize = 18;
/// Maximum length of a frame in bytes: the first transmit request states the length in 16 bits.
pub const MAX_FRAME: usize = 0xffff;

/// Transmit and receive ring of a network interface, in pages that front end and back end share.
#[derive(Debug, Clone, Default)]
pub struct InterfaceRings {
    /// Ring for frames that the guest sends, in a page that it shares with the back end.
    pub transmit: Box<ring::RingPage>,
    /// Ring for frames that the guest receives and for the pages it posts, shared with the back end.
    pub receive: Box<ring::RingPage>,
}

/// Offloads that must be applied to a frame before it leaves the machine. A frame to another guest of the
/// machine needs none.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PendingOffloads {
    /// True if the TCP or UDP checksum of the frame is not filled in.
    pub csum_blank: bool,
    /// Payload bytes per segment, if the frame is to be segmented before it leaves the machine.
    pub segment: Option<u16>,
}

/// Computes the checksum of an IPv4 header whose checksum field is zero (RFC 1071).
fn checksum(header: &[u8]) -> u16 {
    let words =
        header.chunks(2).map(|pair| u32::from(pair[0]) << 8 | pair.get(1).map_or(0, |low| u32::from(*low)));
    let sum: u32 = words.sum();
    let folded = (sum & 0xffff) + (sum >> 16);
    !((folded & 0xffff) + (folded >> 16)) as u16
}

/// Returns the number of receive-ring slots that a frame needs: one for each page, and one for segmentation
/// information if the frame is to be segmented.
#[must_use]
pub fn slots(length: usize, offload: PendingOffloads) -> u32 {
    length.div_ceil(PAGE).max(1) as u32 + u32::from(offload.segment.is_some())
}
