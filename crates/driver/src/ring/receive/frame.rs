//! Received frame of a burst, which stays in the ring's buffers until the function that takes it returns. Its
//! descriptor is parsed on demand.

use super::layout::{RawRxDescriptor, RxDescriptorLayout, RxError};
use crate::hal::DmaHal;
use crate::ring::BUFFER;

/// Part of a received frame in the buffer of one slot.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct RxFramePart {
    /// Device address of the frame's receive buffer.
    pub(super) address: u64,
    /// Bytes of the frame in the receive buffer.
    pub(super) bytes: usize,
}

/// Received frame in the buffers of its ring.
#[derive(Debug)]
pub struct RxFrame<'a, H, L> {
    hal: &'a H,
    layout: L,
    /// Bytes of the frame's last descriptor, as the card has completed it.
    raw: &'a RawRxDescriptor,
    /// Device address of the frame's first byte.
    address: u64,
    length: usize,
    /// Pieces of a frame that fills several receive buffers; empty for a frame in one buffer.
    pieces: &'a [RxFramePart],
    /// True if the card reported more bytes than a buffer holds, or did not mark the frame's end.
    malformed: bool,
    /// True if the received frame is malformed, or did not fit the buffer of the function that took it.
    lost: bool,
}

impl<'a, H: DmaHal, L: RxDescriptorLayout> RxFrame<'a, H, L> {
    /// Creates a received frame of one ring slot.
    #[inline(always)]
    pub(super) fn new(
        hal: &'a H,
        (layout, raw): (L, &'a RawRxDescriptor),
        address: u64,
        length: usize,
    ) -> Self {
        let malformed = length > BUFFER;
        Self { hal, layout, raw, address, length, pieces: &[], malformed, lost: malformed }
    }

    /// Creates a frame of several slots; `ended` is false if the card did not end the frame.
    pub(super) fn of_pieces(
        hal: &'a H,
        (layout, raw): (L, &'a RawRxDescriptor),
        pieces: &'a [RxFramePart],
        ended: bool,
    ) -> Self {
        let malformed = !ended || pieces.iter().any(|piece| piece.bytes > BUFFER);
        let length = pieces.iter().map(|piece| piece.bytes).sum();
        Self { hal, layout, raw, address: 0, length, pieces, malformed, lost: malformed }
    }

    /// Returns the card's description of the frame.
    #[must_use]
    #[inline(always)]
    pub fn received(&self) -> L::Received {
        self.layout.received(self.raw, self.length)
    }

    /// Returns the frame's length in bytes, as the card reports it.
    #[must_use]
    #[inline(always)]
    pub fn length(&self) -> usize {
        self.length
    }

    /// Copies the frame to the front of `into`. Returns the frame's length.
    ///
    /// # Errors
    /// [`RxError`]: the frame is lost, and counted.
    #[inline(always)]
    pub fn copy_to(&mut self, into: &mut [u8]) -> Result<usize, RxError> {
        if self.malformed {
            return Err(RxError::Malformed);
        }
        let Some(into) = into.get_mut(..self.length) else {
            self.lost = true;
            return Err(RxError::TooLong(self.length));
        };
        if self.pieces.is_empty() {
            self.hal.dma_read(self.address, into);
        } else {
            self.copy_pieces(into);
        }
        self.lost = false;
        Ok(self.length)
    }

    #[cold]
    fn copy_pieces(&self, mut into: &mut [u8]) {
        for piece in self.pieces {
            let Some((now, later)) = into.split_at_mut_checked(piece.bytes) else { return };
            self.hal.dma_read(piece.address, now);
            into = later;
        }
    }

    /// Returns true if the received frame is malformed, or did not fit the buffer of the function that took
    /// it.
    #[inline(always)]
    pub(super) fn is_lost(&self) -> bool {
        self.lost
    }
}
