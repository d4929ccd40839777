//! Network device (VIRTIO 1.2 section 5.1): the header in front of each packet, and its checked requests.

mod header;
mod request;
#[cfg(test)]
mod tests;

pub use header::{NetHeader, NetHeaderFormat, flag, gso};
pub use request::{
    NetHeaderError, NetOffloadRequest, PartialChecksum, PartialTransport, SegmentKind, SegmentationRequest,
};

/// Returns the index of the receive queue of a queue pair (section 5.1.2).
#[must_use]
pub const fn receive_queue(pair: u16) -> u32 {
    2 * pair as u32
}

/// Returns the index of the transmit queue of a queue pair (section 5.1.2).
#[must_use]
pub const fn transmit_queue(pair: u16) -> u32 {
    2 * pair as u32 + 1
}
