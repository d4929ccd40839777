//! Traits of a card whose frames pass in bursts: its next transmit descriptors, a port's receive queue, and its
//! descriptor formats. `burst` and `deliver` move the frames; `packets` has the traits for frames that are sent alone.

use crate::places::FrameMemory;
use crate::posted::PostedDescriptors;
use crate::ring::Ring;
use alloc::boxed::Box;
use core::ops::RangeInclusive;
use offload::plain::{InsertedChecksums, PlainFrame, PlainFrameKind};
use pcie::{Bus, Function, MemoryHint};
use plane::frame::TrustedChecksum;
use plane::switch::SwitchDropReason;
use plane::{FrameSink, FrameTrunk, PortIndex, TransmitQueueId};

/// Number of bytes in a transmit descriptor of every card.
pub(crate) const DESCRIPTOR: usize = 16;

/// Format of a card's transmit descriptors. The first word is the address of the buffer.
pub trait TxFormat {
    /// Allowed lengths of a plain frame in bytes, check sequence excluded.
    const LENGTHS: RangeInclusive<u32>;

    /// Returns the length in bytes of a frame that one descriptor describes completely, without a requested offload.
    /// Returns `None` for every other descriptor. `second` is the descriptor's second word.
    fn plain(second: u64) -> Option<u32>;

    /// Returns the length in bytes of a frame that one descriptor describes completely, and that may request checksums
    /// ([`BurstCard::insertion`]).
    #[inline]
    fn summed(second: u64) -> Option<u32> {
        Self::plain(second)
    }
}

/// Format of the receive descriptors for a run of frames.
pub trait RxFormat: Copy {
    /// Returns the words of the receive descriptor of a plain frame. Words beyond the size of the ring's descriptors
    /// are ignored.
    fn words(self, found: PlainFrameKind, hash: Option<u32>, length: u32) -> [u64; 4];
}

/// Properties shared by all frames of a run: consecutive frames of a burst for the same port.
#[derive(Debug, Clone, Copy)]
pub struct FrameRunProperties {
    /// VLAN tag that was taken out of the frames of the run.
    pub tag: Option<u16>,
    /// True if no exact address filter has the destination of the run's frames.
    pub inexact: bool,
    /// True if the frames of the run come from the uplink.
    pub from_uplink: bool,
}

/// Receive queue of a frame in a burst, and the frame's RSS hash if the port hashes its type.
pub type QueueAndHash = (u8, Option<u32>);

/// Receive queue of a port for plain frames of bursts, each of which goes into one buffer.
#[derive(Debug)]
pub struct PlainReceiver<'a, B, S> {
    /// Posted descriptors of the receive queue.
    pub posted: &'a mut PostedDescriptors,
    /// Descriptor ring of the receive queue.
    pub ring: Ring,
    /// Maximum number of descriptors that a run of frames may fill, posted or not.
    pub room: usize,
    /// Number of bytes in the longest frame that one receive buffer takes.
    pub longest: usize,
    /// Function that owns the receive ring and its buffers.
    pub function: Function,
    /// Bus to the memory of the receive ring and its buffers.
    pub bus: &'a mut B,
    /// Format of the queue's receive descriptors.
    pub format: S,
}

/// Card whose rings send and receive frames in bursts.
pub trait BurstCard: FrameSink {
    /// Bus to the guests' memory.
    type Bus: Bus;
    /// Format of the card's transmit descriptors.
    type TxFormat: TxFormat;
    /// Format of the card's receive descriptors.
    type RxFormat: RxFormat;

    /// True if the next packet takes the descriptors that the last burst has read and not used, instead of reading them
    /// again.
    const KEEPS_DESCRIPTORS: bool = false;

    /// Returns the field in which the card keeps its private frame memory. The field is empty while frames pass, and
    /// may be empty before.
    fn places(&mut self) -> &mut Option<Box<FrameMemory>>;

    /// Returns true if every frame is sent alone, not in a burst. Tests compare frames in bursts with frames that are
    /// sent alone.
    fn is_careful(&self) -> bool {
        false
    }

    /// Returns true if plain frames may be received after a check of their first bytes only. Otherwise every frame is
    /// sent alone.
    fn judges(&self) -> bool;

    /// Returns up to `most` pending descriptors of a transmit queue, from the next one on; none while a packet is
    /// unfinished.
    fn next(&mut self, sender: TransmitQueueId, most: usize) -> &[[u8; DESCRIPTOR]];

    /// Writes back the descriptors of the first `count` frames from [`BurstCard::next`], which have left. Descriptors
    /// that request a report are reported as done.
    fn pass(&mut self, sender: TransmitQueueId, count: usize);

    /// Returns the function that owns a transmit queue's buffers, a hint to the memory of these buffers, and the bus.
    fn source(&mut self, sender: TransmitQueueId) -> (Function, &mut MemoryHint, &mut Self::Bus);

    /// Returns the checksums that the descriptor at index `at` of [`BurstCard::next`] requests, or `None` if they are
    /// not those of a plain frame.
    fn insertion(&self, sender: TransmitQueueId, at: usize) -> Option<InsertedChecksums> {
        let _ = (sender, at);
        None
    }

    /// Inserts the checksums, of any kind, that the descriptor at index `at` of [`BurstCard::next`] requests.
    ///
    /// # Errors
    /// The frame does not fit the request. It is unchanged, and the family takes its descriptor in its own way.
    fn insert(
        &self,
        sender: TransmitQueueId,
        at: usize,
        frame: &mut [u8],
    ) -> Result<Option<TrustedChecksum>, InvalidChecksumRequest> {
        let _ = (sender, at, frame);
        Ok(None)
    }

    /// Counts a frame that the plane has refused to forward.
    fn refused(&mut self, sender: TransmitQueueId, reason: SwitchDropReason);

    /// Returns true if a port spreads frames over several receive queues.
    #[inline]
    fn spreads(&self, port: PortIndex) -> bool {
        let _ = port;
        false
    }

    /// Returns the receive queue that a port chooses for a frame, and the frame's RSS hash.
    #[inline]
    fn spread(&mut self, port: PortIndex, frame: &PlainFrame<'_>) -> QueueAndHash {
        let _ = (port, frame);
        (0, None)
    }

    /// Returns true if another part of the card has a port: frames for the port go to the trunk.
    #[inline]
    fn is_away(&self, port: PortIndex) -> bool {
        let _ = port;
        false
    }

    /// Returns the trunk to other parts of the card, and the bus to the guests' memory.
    fn trunk(&mut self) -> Option<(&mut dyn FrameTrunk, &mut Self::Bus)> {
        None
    }

    /// Returns true if runs of plain frames from a trunk are received together. Otherwise each frame is received alone.
    fn receives_runs(&self) -> bool {
        self.judges()
    }

    /// Returns a port's receive queue, or `None` if the queue does not run, or needs every frame parsed as a whole.
    fn receiver(
        &mut self,
        port: PortIndex,
        queue: u8,
        terms: FrameRunProperties,
    ) -> Option<PlainReceiver<'_, Self::Bus, Self::RxFormat>>;

    /// Counts the frames that a receive queue has got, and the sum of their bytes.
    #[inline]
    fn received(&mut self, port: PortIndex, queue: u8, frames: usize, bytes: u64) {
        let _ = (port, queue, frames, bytes);
    }
}

/// Error: a frame does not fit the checksums that its descriptor requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InvalidChecksumRequest;
