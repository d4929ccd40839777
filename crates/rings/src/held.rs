//! Keeps the bytes of a packet that is paused between two of its segments, so that its descriptors can be returned to
//! the driver. The memory is exchanged for the memory that packets are read into, so nothing is copied. `send` decides
//! when the rest leaves.

use crate::packet::CopiedPacket;
use crate::staging::StagedPacket;
use alloc::vec;
use core::mem;
use plane::frame::HEADROOM;

/// Memory for a packet that is paused after some of its segments have left.
#[derive(Debug, Clone)]
pub struct PausedPacketMemory<O> {
    /// Packet that is paused between segments, and the number of its queue.
    packet: Option<(CopiedPacket<O>, u8)>,
    bytes: StagedPacket,
}

impl<O> Default for PausedPacketMemory<O> {
    fn default() -> Self {
        Self { packet: None, bytes: StagedPacket::default() }
    }
}

impl<O: Copy> PausedPacketMemory<O> {
    /// Restores a paused packet of a queue. `bytes` are the packet's saved bytes, without headroom.
    #[must_use]
    pub fn restore(packet: CopiedPacket<O>, queue: u8, bytes: &[u8]) -> Self {
        let mut place = vec![0; HEADROOM];
        place.extend_from_slice(bytes);
        Self { packet: Some((packet, queue)), bytes: place.into() }
    }

    /// Returns the paused packet, its queue and its bytes, without headroom.
    #[must_use]
    pub fn kept(&self) -> Option<(CopiedPacket<O>, u8, &[u8])> {
        self.packet.map(|(packet, queue)| (packet, queue, self.bytes.get(HEADROOM..).unwrap_or_default()))
    }

    /// Returns true if no packet is paused between segments.
    #[must_use]
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.packet.is_none()
    }

    /// Returns true if a paused packet belongs to a queue.
    #[must_use]
    #[inline]
    pub fn is_of(&self, queue: u8) -> bool {
        self.packet.is_some_and(|(_, own)| own == queue)
    }

    /// Allocates memory for packets of up to `bytes` bytes, so that pausing a packet needs no allocation.
    pub fn reserve(&mut self, bytes: usize) {
        self.bytes.reserve(bytes);
    }

    /// Drops the paused packet with its unsent segments.
    pub fn clear(&mut self) {
        self.packet = None;
    }

    /// Keeps a packet of a queue that pauses, with its bytes. `staging` gets other memory for the next packet.
    pub(crate) fn keep(&mut self, packet: CopiedPacket<O>, queue: u8, staging: &mut StagedPacket) {
        self.packet = Some((packet, queue));
        mem::swap(&mut self.bytes, staging);
    }

    /// Moves the bytes of the paused packet into `staging`. Returns the packet and its queue.
    #[inline]
    pub(crate) fn resume(&mut self, staging: &mut StagedPacket) -> Option<(CopiedPacket<O>, u8)> {
        // Asked for every packet, and hardly ever there: not to be moved to see.
        let kept = self.packet?;
        self.packet = None;
        mem::swap(&mut self.bytes, staging);
        Some(kept)
    }
}
