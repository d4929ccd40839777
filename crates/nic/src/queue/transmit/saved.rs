//! The saved state of a transmit queue. Its registers are saved with all others.

use super::TransmitQueue;
use crate::damaged::Damaged;
use crate::queue::packet::PacketOrders;
use crate::queue::write_back::{Batch, burst};
use crate::sizes::PACKET;
use alloc::vec::Vec;
use i82576::Queue;
use i82576::descriptor::SIZE;
use i82576::descriptor::legacy::Checksum;
use i82576::descriptor::orders::Orders;
use i82576::descriptor::tx::{Context, Data};
use plane::frame::HEADROOM;
use rings::{Held, Packet};
use serde::{Deserialize, Serialize};

/// Saved queue: the fetched descriptors, without the room for more.
#[derive(Serialize, Deserialize)]
pub(super) struct SavedTransmit {
    queue: Queue,
    contexts: [Context; 2],
    burst: Vec<[u8; SIZE]>,
    fetched_at: u32,
    done: Batch,
    skipping: bool,
    effort: (usize, usize),
    held: Option<SavedPacket>,
}

/// A packet of which segments wait: its own bytes and no others.
#[derive(Serialize, Deserialize)]
struct SavedPacket {
    first: Data,
    context: Context,
    checksum: Option<Checksum>,
    sent: u32,
    bytes: Vec<u8>,
}

impl SavedPacket {
    fn of(held: &Held<PacketOrders>) -> Option<Self> {
        let (packet, _, bytes) = held.kept()?;
        let PacketOrders { first, context, checksum } = packet.orders;
        Some(Self { first: first.into(), context, checksum, sent: packet.sent, bytes: bytes.to_vec() })
    }

    fn resume(self, queue: Queue) -> Result<Held<PacketOrders>, Damaged> {
        let Self { first, context, checksum, sent, bytes } = self;
        if bytes.len() > PACKET - HEADROOM {
            return Err(Damaged("an unfinished packet of a transmit queue exceeds the longest packet"));
        }
        let orders = PacketOrders { first: Orders::from(&first), context, checksum };
        Ok(Held::restore(Packet { orders, sent }, queue.in_pool(), &bytes))
    }
}

impl From<TransmitQueue> for SavedTransmit {
    fn from(from: TransmitQueue) -> Self {
        let TransmitQueue {
            queue, contexts, burst, fetched_at, fetched, done, skipping, effort, held, ..
        } = from;
        let (burst, held) = (burst[..fetched as usize].to_vec(), SavedPacket::of(&held));
        Self { queue, contexts, burst, fetched_at, done, skipping, effort, held }
    }
}

impl TryFrom<SavedTransmit> for TransmitQueue {
    type Error = Damaged;

    fn try_from(saved: SavedTransmit) -> Result<Self, Damaged> {
        let (burst, fetched) = burst(&saved.burst, [0; SIZE])?;
        let SavedTransmit { queue, contexts, fetched_at, done, skipping, effort, held, .. } = saved;
        let held = held.map(|packet| packet.resume(queue)).transpose()?.unwrap_or_default();
        let empty = Self::new(queue);
        let fetched = fetched as u32;
        Ok(Self { contexts, burst, fetched_at, fetched, done, skipping, effort, held, ..empty })
    }
}
