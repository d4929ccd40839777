//! A packet that had to stop between two of its segments: the card keeps its bytes, so that its descriptors can go back. The place of
//! the bytes is exchanged for the one that packets are read into, so nothing is copied. Left out: when the rest leaves (`send`), and
//! the form in which a family saves the packet.

use crate::packet::Packet;
use crate::staging::Staging;
use alloc::vec;
use core::mem;
use plane::frame::HEADROOM;

/// A place for a packet of which some segments have left.
#[derive(Debug, Clone)]
pub struct Held<O> {
    /// The packet, and its queue.
    packet: Option<(Packet<O>, u8)>,
    bytes: Staging,
}

impl<O> Default for Held<O> {
    fn default() -> Self {
        Self { packet: None, bytes: Staging::default() }
    }
}

impl<O: Copy> Held<O> {
    /// Resumes with a packet of a queue whose bytes, without headroom, were saved.
    #[must_use]
    pub fn restore(packet: Packet<O>, queue: u8, bytes: &[u8]) -> Self {
        let mut place = vec![0; HEADROOM];
        place.extend_from_slice(bytes);
        Self { packet: Some((packet, queue)), bytes: place.into() }
    }

    /// Returns the packet, its queue and its bytes, without headroom.
    #[must_use]
    pub fn kept(&self) -> Option<(Packet<O>, u8, &[u8])> {
        self.packet.map(|(packet, queue)| (packet, queue, self.bytes.get(HEADROOM..).unwrap_or_default()))
    }

    /// Returns true if no packet is kept.
    #[must_use]
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.packet.is_none()
    }

    /// Returns true if a packet of a queue is kept.
    #[must_use]
    #[inline]
    pub fn is_of(&self, queue: u8) -> bool {
        self.packet.is_some_and(|(_, own)| own == queue)
    }

    /// Provides memory for packets of up to `bytes` bytes, so that none is needed when a packet stops.
    pub fn reserve(&mut self, bytes: usize) {
        self.bytes.reserve(bytes);
    }

    /// Drops the packet.
    pub fn clear(&mut self) {
        self.packet = None;
    }

    /// Keeps a packet of a queue and its bytes, and leaves another place for the next packet.
    pub(crate) fn keep(&mut self, packet: Packet<O>, queue: u8, staging: &mut Staging) {
        self.packet = Some((packet, queue));
        mem::swap(&mut self.bytes, staging);
    }

    /// Puts the bytes of the packet into `staging`. Returns the packet and its queue.
    #[inline]
    pub(crate) fn resume(&mut self, staging: &mut Staging) -> Option<(Packet<O>, u8)> {
        // Asked for every packet, and hardly ever there: not to be moved to see.
        let kept = self.packet?;
        self.packet = None;
        mem::swap(&mut self.bytes, staging);
        Some(kept)
    }
}
