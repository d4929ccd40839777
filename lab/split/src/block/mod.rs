//! The split block driver: a guest's requests to read and write a disk of the service domain. A request is a
//! header and up to [`SEGMENTS`] segments, each in a slot of the same ring as for network interfaces.
//!
//! - here: the messages on the ring;
//! - [`BlockFrontend`]: the guest's half, which grants pages and describes them;
//! - [`BlockBackend`]: the service domain's half, which checks requests, maps their pages and answers them.
//!
//! Flushes, discards and persistent grants are not supported. The disk belongs to the caller.

mod back;
mod front;
#[cfg(test)]
mod tests;

pub use back::{
    BlockBackend, BlockBackendHal, BlockCommand, BlockRequestCounters, BlockRequestOutcome, REQUESTS,
};
pub use front::{BlockFrontend, BlockFrontendHal, BlockSubmitError, CompletedBlockRequest};

use crate::PAGE;
use crate::message::status;
use crate::ring::{RingSlot, SLOT};

/// Bytes of a sector of the split disk.
pub const SECTOR: u64 = 512;
/// Number of disk sectors in a page.
pub const PER_PAGE: u8 = (PAGE as u64 / SECTOR) as u8;
/// Maximum number of segments of a block request, each in its own page (`xen/io/blkif.h`).
pub const SEGMENTS: u8 = 11;

/// Operation code of a block request that reads the disk (`xen/io/blkif.h`).
const READ: u8 = 0;
/// Operation code of a block request that writes the disk.
const WRITE: u8 = 1;

/// Header in the first slot of a block request; the segments are in the slots behind it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct BlockRequestHeader {
    operation: u8,
    segments: u8,
    /// Id of the block request, returned in the response.
    id: u16,
    sector: u64,
}

/// Segment of a block request: sectors within a granted page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct BlockRequestSegment {
    /// Grant reference of the page that the segment is in.
    reference: u32,
    /// First sector of the segment within the page.
    first: u8,
    /// Last sector of the segment within the page.
    last: u8,
}

/// Response to a disk request; the slots of the request's segments have [`status::NULL`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct BlockResponse {
    id: u16,
    status: i16,
}

impl BlockRequestHeader {
    fn emit(self) -> RingSlot {
        let mut slot = [0; SLOT];
        (slot[0], slot[1]) = (self.operation, self.segments);
        slot[2..4].copy_from_slice(&self.id.to_le_bytes());
        slot[4..12].copy_from_slice(&self.sector.to_le_bytes());
        slot
    }

    fn parse(slot: &RingSlot) -> Self {
        let [operation, segments, id @ .., _, _, _, _, _, _, _, _] = *slot;
        let [_, _, _, _, sector @ ..] = *slot;
        Self { operation, segments, id: u16::from_le_bytes(id), sector: u64::from_le_bytes(sector) }
    }
}

impl BlockRequestSegment {
    fn emit(self) -> RingSlot {
        let mut slot = [0; SLOT];
        slot[0..4].copy_from_slice(&self.reference.to_le_bytes());
        (slot[4], slot[5]) = (self.first, self.last);
        slot
    }

    fn parse(slot: &RingSlot) -> Self {
        let [reference @ .., first, last, _, _, _, _, _, _] = *slot;
        Self { reference: u32::from_le_bytes(reference), first, last }
    }

    /// Returns the number of sectors of the segment, or `None` if they exceed the page.
    fn sectors(self) -> Option<u64> {
        (self.first <= self.last && self.last < PER_PAGE).then(|| u64::from(self.last - self.first) + 1)
    }
}

impl BlockResponse {
    /// Response that fills the ring slot of a segment of an answered block request.
    const PIECE: Self = Self { id: 0, status: status::NULL };

    fn emit(self) -> RingSlot {
        let mut slot = [0; SLOT];
        slot[0..2].copy_from_slice(&self.id.to_le_bytes());
        slot[2..4].copy_from_slice(&self.status.to_le_bytes());
        slot
    }

    fn parse(slot: &RingSlot) -> Self {
        let [id0, id1, status0, status1, ..] = *slot;
        Self { id: u16::from_le_bytes([id0, id1]), status: i16::from_le_bytes([status0, status1]) }
    }
}
