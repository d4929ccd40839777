//! A packet of which some segments have left, and the others wait for the VF's rate: the card keeps its bytes, so that its
//! descriptors can go back. Left out: when the rest leaves (`forward`).

use crate::staging::Staging;
use crate::transmit::{MOST_BYTES, Packet};
use avf::ids::MAX_PAIRS;
use core::mem;
use plane::frame::HEADROOM;
use serde::{Deserialize, Serialize};

/// A packet of which some segments have left, and the others wait for the VF's rate.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Held {
    packet: Option<Packet>,
    queue: u8,
    /// Its bytes, behind the headroom; empty without a packet.
    bytes: Staging,
}

impl Held {
    pub(crate) fn is_of(&self, queue: u8) -> bool {
        self.packet.is_some() && self.queue == queue
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.packet.is_none()
    }

    pub(crate) fn clear(&mut self) {
        self.packet = None;
        self.bytes.set_length(0);
    }

    /// Whether it is nothing, or a packet of which some segments have left and others have not.
    pub(crate) fn is_sound(&self) -> bool {
        let Some(packet) = &self.packet else { return self.bytes.is_empty() };
        let segmenter = self.bytes.get(HEADROOM..).and_then(|bytes| packet.segmenter(bytes));
        packet.context.is_some_and(|context| context.segment)
            && self.bytes.len() <= HEADROOM + MOST_BYTES
            && usize::from(self.queue) < MAX_PAIRS
            && segmenter.is_some_and(|segmenter| (1..segmenter.count()).contains(&packet.sent))
    }

    /// Keeps a packet and its bytes, by taking the staging buffer and leaving another.
    pub(crate) fn keep(&mut self, packet: Packet, queue: u8, staging: &mut Staging) {
        (self.packet, self.queue) = (Some(packet), queue);
        mem::swap(&mut self.bytes, staging);
    }

    /// Puts the bytes of the packet that is kept into the staging buffer. Answers the packet and its queue.
    pub(crate) fn resume(&mut self, staging: &mut Staging) -> Option<(Packet, u8)> {
        let packet = self.packet.take()?;
        mem::swap(&mut self.bytes, staging);
        self.bytes.set_length(0);
        Some((packet, self.queue))
    }
}
