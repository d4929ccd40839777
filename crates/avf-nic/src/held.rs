//! Saved form of a packet that is paused between two of its segments. `rings` decides when a packet pauses.

use crate::packet::DescriptorOffloads;
use crate::tx_ring::MOST_BYTES;
use alloc::vec;
use alloc::vec::Vec;
use avf::descriptor::tx::{TxContextDescriptor, TxDataDescriptor};
use avf::ids::MAX_PAIRS;
use offload::segment::TcpFlagMasks;
use plane::frame::HEADROOM;
use rings::{CopiedPacket, PacketOffloads, PausedPacketMemory};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Saved form of a packet that is paused between two of its segments, or of no packet.
#[derive(Default, Serialize, Deserialize)]
#[serde(rename = "Held")]
struct SavedHeldPacket {
    packet: Option<SavedPacketDescriptors>,
    queue: u8,
    /// Bytes of the paused packet, behind headroom; empty if no packet is paused.
    bytes: Vec<u8>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename = "Packet")]
struct SavedPacketDescriptors {
    first: TxDataDescriptor,
    context: Option<TxContextDescriptor>,
    descriptors: u32,
    sent: u32,
}

/// Serializes a packet that is paused between two segments.
pub(crate) fn serialize<S: Serializer>(
    held: &PausedPacketMemory<DescriptorOffloads>,
    to: S,
) -> Result<S::Ok, S::Error> {
    let saved = held.kept().map_or_else(SavedHeldPacket::default, |(packet, queue, bytes)| {
        let DescriptorOffloads { first, context, descriptors } = packet.orders;
        let packet = SavedPacketDescriptors { first, context, descriptors, sent: packet.sent };
        let mut place = vec![0; HEADROOM];
        place.extend_from_slice(bytes);
        SavedHeldPacket { packet: Some(packet), queue, bytes: place }
    });
    saved.serialize(to)
}

/// Deserializes a packet that is paused between two segments.
pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
    from: D,
) -> Result<PausedPacketMemory<DescriptorOffloads>, D::Error> {
    let SavedHeldPacket { packet, queue, bytes } = SavedHeldPacket::deserialize(from)?;
    let held = packet.map(|SavedPacketDescriptors { first, context, descriptors, sent }| {
        let packet = CopiedPacket { orders: DescriptorOffloads { first, context, descriptors }, sent };
        PausedPacketMemory::restore(packet, queue, bytes.get(HEADROOM..).unwrap_or_default())
    });
    Ok(held.unwrap_or_default())
}

/// Returns true if no packet is paused, or if some segments of the paused packet have been sent and others
/// have not.
pub(crate) fn is_sound(held: &PausedPacketMemory<DescriptorOffloads>) -> bool {
    held.kept().is_none_or(|(packet, queue, bytes)| {
        let cut = packet.orders.cut(bytes, bytes.len(), TcpFlagMasks::DEFAULT);
        bytes.len() <= MOST_BYTES
            && usize::from(queue) < MAX_PAIRS
            && cut.is_some_and(|cut| (1..cut.count()).contains(&packet.sent))
    })
}
