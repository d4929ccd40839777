//! Saved form of a transmit queue. Its registers are saved with the register file.

use super::TransmitQueue;
use crate::damaged::InvalidStateError;
use crate::queue::packet::DescriptorOffloads;
use crate::queue::write_back::{WriteBackBatch, burst};
use crate::sizes::PACKET;
use alloc::vec::Vec;
use i82576::QueueIndex;
use i82576::descriptor::SIZE;
use i82576::descriptor::legacy::LegacyChecksumInsertion;
use i82576::descriptor::orders::RawDataDescriptor;
use i82576::descriptor::tx::{AdvancedContextDescriptor, AdvancedDataDescriptor};
use plane::frame::HEADROOM;
use rings::{CopiedPacket, PausedPacketMemory};
use serde::{Deserialize, Serialize};

/// Saved form of a transmit queue, with its fetched descriptors and its unfinished packet.
#[derive(Serialize, Deserialize)]
#[serde(rename = "SavedTransmit")]
pub(super) struct SavedTransmitQueue {
    queue: QueueIndex,
    contexts: [AdvancedContextDescriptor; 2],
    burst: Vec<[u8; SIZE]>,
    fetched_at: u32,
    done: WriteBackBatch,
    skipping: bool,
    effort: (usize, usize),
    held: Option<SavedHeldPacket>,
}

/// Saved form of a packet that waits between two of its segments.
#[derive(Serialize, Deserialize)]
#[serde(rename = "SavedPacket")]
struct SavedHeldPacket {
    first: AdvancedDataDescriptor,
    context: AdvancedContextDescriptor,
    checksum: Option<LegacyChecksumInsertion>,
    sent: u32,
    bytes: Vec<u8>,
}

impl SavedHeldPacket {
    fn of(held: &PausedPacketMemory<DescriptorOffloads>) -> Option<Self> {
        let (packet, _, bytes) = held.kept()?;
        let DescriptorOffloads { first, context, checksum } = packet.orders;
        Some(Self { first: first.into(), context, checksum, sent: packet.sent, bytes: bytes.to_vec() })
    }

    fn resume(self, queue: QueueIndex) -> Result<PausedPacketMemory<DescriptorOffloads>, InvalidStateError> {
        let Self { first, context, checksum, sent, bytes } = self;
        if bytes.len() > PACKET - HEADROOM {
            return Err(InvalidStateError(
                "an unfinished packet of a transmit queue exceeds the longest packet",
            ));
        }
        let orders = DescriptorOffloads { first: RawDataDescriptor::from(&first), context, checksum };
        Ok(PausedPacketMemory::restore(CopiedPacket { orders, sent }, queue.in_pool(), &bytes))
    }
}

impl From<TransmitQueue> for SavedTransmitQueue {
    fn from(from: TransmitQueue) -> Self {
        let TransmitQueue {
            queue, contexts, burst, fetched_at, fetched, done, skipping, effort, held, ..
        } = from;
        let (burst, held) = (burst[..fetched as usize].to_vec(), SavedHeldPacket::of(&held));
        Self { queue, contexts, burst, fetched_at, done, skipping, effort, held }
    }
}

impl TryFrom<SavedTransmitQueue> for TransmitQueue {
    type Error = InvalidStateError;

    fn try_from(saved: SavedTransmitQueue) -> Result<Self, InvalidStateError> {
        let (burst, fetched) = burst(&saved.burst, [0; SIZE])?;
        let SavedTransmitQueue { queue, contexts, fetched_at, done, skipping, effort, held, .. } = saved;
        let held = held.map(|packet| packet.resume(queue)).transpose()?.unwrap_or_default();
        let empty = Self::new(queue);
        let fetched = fetched as u32;
        Ok(Self { contexts, burst, fetched_at, fetched, done, skipping, effort, held, ..empty })
    }
}
