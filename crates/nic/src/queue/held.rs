//! A packet that had to stop between two of its segments: its bytes stay with the queue, in a buffer that is exchanged
//! for the staging one, so that nothing is copied. Left out: when it may go on (`pacing`).

use super::packet::Packet;
use crate::damaged::Damaged;
use crate::sizes::PACKET;
use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;
use i82576::descriptor::legacy::Checksum;
use i82576::descriptor::orders::Orders;
use i82576::descriptor::tx::{Context, Data};
use plane::frame::HEADROOM;
use serde::{Deserialize, Serialize};

/// The place for one packet.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(into = "Option<SavedPacket>", try_from = "Option<SavedPacket>")]
pub struct Held {
    packet: Option<Packet>,
    /// Empty until the queue is prepared; of a packet that was saved, no longer than it.
    bytes: Box<[u8]>,
}

/// A packet that is kept, as it is saved: its own bytes and no others.
#[derive(Serialize, Deserialize)]
struct SavedPacket {
    first: Data,
    context: Context,
    checksum: Option<Checksum>,
    sent: u32,
    bytes: Vec<u8>,
}

impl From<Held> for Option<SavedPacket> {
    fn from(held: Held) -> Self {
        let Packet { orders, context, checksum, length, sent } = held.packet?;
        let bytes = held.bytes[HEADROOM..HEADROOM + length].to_vec();
        Some(SavedPacket { first: orders.into(), context, checksum, sent, bytes })
    }
}

impl TryFrom<Option<SavedPacket>> for Held {
    type Error = Damaged;

    fn try_from(saved: Option<SavedPacket>) -> Result<Self, Damaged> {
        let Some(SavedPacket { first, context, checksum, sent, bytes }) = saved else {
            return Ok(Self::default());
        };
        let length = bytes.len();
        if length > PACKET - HEADROOM {
            return Err(Damaged("a packet that waits is longer than any packet"));
        }
        let bytes = [&[0; HEADROOM][..], &bytes].concat().into_boxed_slice();
        let orders = Orders::from(&first);
        Ok(Self { packet: Some(Packet { orders, context, checksum, length, sent }), bytes })
    }
}

impl Held {
    /// Sets `length` bytes aside, as many as the staging buffer has. What is kept stays.
    pub fn prepare(&mut self, length: usize) {
        if self.bytes.len() != length {
            let mut place = vec![0; length];
            let kept = self.bytes.len().min(length);
            place[..kept].copy_from_slice(&self.bytes[..kept]);
            self.bytes = place.into_boxed_slice();
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
