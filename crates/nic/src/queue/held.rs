//! A packet that had to stop between two of its segments: its bytes stay with the queue, in a buffer that is exchanged
//! for the staging one, so that nothing is copied. Left out: when it may go on (`pacing`).

use super::transmit::Packet;
use alloc::boxed::Box;
use alloc::vec;

/// The place for one packet.
#[derive(Debug, Clone, Default)]
pub struct Held {
    packet: Option<Packet>,
    /// Empty until the queue is prepared.
    bytes: Box<[u8]>,
}

impl Held {
    /// Sets `length` bytes aside, as many as the staging buffer has.
    pub fn prepare(&mut self, length: usize) {
        if self.bytes.len() != length {
            self.bytes = vec![0; length].into_boxed_slice();
        }
    }

    /// Keeps a packet together with the staging buffer that it is in.
    pub fn keep(&mut self, packet: Packet, staging: &mut Box<[u8]>) {
        self.prepare(staging.len());
        core::mem::swap(&mut self.bytes, staging);
        self.packet = Some(packet);
    }

    /// Gives back what is kept.
    #[inline]
    pub fn resume(&mut self, staging: &mut Box<[u8]>) -> Option<Packet> {
        // Asked for every packet, and hardly ever there: not to be moved to see.
        let packet = self.packet?;
        self.packet = None;
        core::mem::swap(&mut self.bytes, staging);
        Some(packet)
    }

    /// Drops what is kept.
    pub fn clear(&mut self) {
        self.packet = None;
    }

    /// Nothing is kept.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.packet.is_none()
    }
}
