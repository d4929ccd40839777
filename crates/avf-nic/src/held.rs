//! Saved form of a packet that waits between two of its segments. `rings` decides when it waits.

use crate::packet::PacketOrders;
use crate::tx_ring::MOST_BYTES;
use alloc::vec;
use alloc::vec::Vec;
use avf::descriptor::tx::{Context, Data};
use avf::ids::MAX_PAIRS;
use offload::segment::FlagMasks;
use plane::frame::HEADROOM;
use rings::{Held, Orders, Packet};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Saved form of a waiting packet, or of none.
#[derive(Default, Serialize, Deserialize)]
#[serde(rename = "Held")]
struct Saved {
    packet: Option<SavedPacket>,
    queue: u8,
    /// Bytes of the packet, behind headroom; empty without a packet.
    bytes: Vec<u8>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename = "Packet")]
struct SavedPacket {
    first: Data,
    context: Option<Context>,
    descriptors: u32,
    sent: u32,
}

/// Serializes a packet that waits between two segments.
pub(crate) fn serialize<S: Serializer>(held: &Held<PacketOrders>, to: S) -> Result<S::Ok, S::Error> {
    let saved = held.kept().map_or_else(Saved::default, |(packet, queue, bytes)| {
        let PacketOrders { first, context, descriptors } = packet.orders;
        let packet = SavedPacket { first, context, descriptors, sent: packet.sent };
        let mut place = vec![0; HEADROOM];
        place.extend_from_slice(bytes);
        Saved { packet: Some(packet), queue, bytes: place }
    });
    saved.serialize(to)
}

/// Deserializes a packet that waits between two segments.
pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Held<PacketOrders>, D::Error> {
    let Saved { packet, queue, bytes } = Saved::deserialize(from)?;
    let held = packet.map(|SavedPacket { first, context, descriptors, sent }| {
        let packet = Packet { orders: PacketOrders { first, context, descriptors }, sent };
        Held::restore(packet, queue, bytes.get(HEADROOM..).unwrap_or_default())
    });
    Ok(held.unwrap_or_default())
}

/// Returns true if there is no packet, or a packet of which some segments have left and others have not.
pub(crate) fn is_sound(held: &Held<PacketOrders>) -> bool {
    held.kept().is_none_or(|(packet, queue, bytes)| {
        let cut = packet.orders.cut(bytes, bytes.len(), FlagMasks::DEFAULT);
        bytes.len() <= MOST_BYTES
            && usize::from(queue) < MAX_PAIRS
            && cut.is_some_and(|cut| (1..cut.count()).contains(&packet.sent))
    })
}
