//! Sends a packet that does not fit into a burst: inserts checksums, or segments the packet. Frames are handed to the
//! plane until the port's rate stops them. The card reads descriptors; `burst` sends plain frames.

use crate::cut::send_through;
use crate::finished::{charge_sum, send, send_segment, spoil};
use crate::frames::SHORTEST;
use crate::packet::{CopiedPacket, NextPacketResult, PacketDropReason, PacketOffloads};
use crate::packets::PacketTransmitter;
use crate::places::FrameMemory;
use crate::staging::StagedPacket;
use offload::uncut;
use plane::frame::{Frame, HEADER, HEADROOM};
use plane::{FrameForwarder, TransmitQueueId, UncutOutcome};
use units::WorkCost;

/// Sends the next packet of a queue, or the remaining segments of a paused packet. Returns the packet's cost in frames
/// of the budget, at least 1, or `None` if there is no packet, or none may follow.
#[inline(never)]
pub(crate) fn send_next<C: PacketTransmitter, L: FrameForwarder>(
    card: &mut C,
    sender: TransmitQueueId,
    places: &mut FrameMemory,
    lane: &mut L,
) -> Option<usize> {
    let cost = match card.held(sender).and_then(|held| held.resume(&mut places.packet)) {
        // What is left of a packet is not read again, so it costs its frames alone.
        Some((packet, queue)) => {
            send_packet(card, TransmitQueueId { queue, ..sender }, &packet, places, lane)
        }
        None => {
            let (taken, cost) = card.take(sender, &mut places.buffers);
            lane.charge(WorkCost::of_descriptors(cost, matches!(taken, NextPacketResult::Packet(_))));
            match taken {
                NextPacketResult::Nothing => return None,
                NextPacketResult::Packet(orders) => {
                    send_taken(card, sender, &orders, places, lane)?.max(cost)
                }
                NextPacketResult::Empty => cost,
                NextPacketResult::Dropped(flaw) => {
                    spoil(card, sender, flaw, lane);
                    cost
                }
            }
        }
    };
    card.may_follow(sender).then_some(cost.max(1))
}

/// Sends a packet whose descriptors are in the ring, and returns the descriptors to the driver. Returns the packet's
/// number of frames, or `None` if the queue has stopped.
#[inline(always)]
fn send_taken<C: PacketTransmitter, L: FrameForwarder>(
    card: &mut C,
    sender: TransmitQueueId,
    orders: &C::Orders,
    places: &mut FrameMemory,
    lane: &mut L,
) -> Option<usize> {
    if orders.mss().is_some()
        && let Some((sent, left)) = send_through(card, sender, orders, places, lane)
    {
        // Its port's rate makes the rest wait. Its buffers are the sender's again from now on, so it is copied.
        let read = left == 0 || read_packet(card, sender, places, lane);
        if !card.end_take(sender, read)? {
            spoil(card, sender, PacketDropReason::Fault, lane);
        } else if left > 0 {
            keep(card, sender, CopiedPacket { orders: *orders, sent }, &mut places.packet, lane);
        }
        return Some(sent as usize);
    }
    let read = read_packet(card, sender, places, lane);
    if !card.end_take(sender, read)? {
        spoil(card, sender, PacketDropReason::Fault, lane);
        return Some(0);
    }
    Some(send_packet(card, sender, &CopiedPacket { orders: *orders, sent: 0 }, places, lane))
}

/// Sends a packet that is in private memory, or its remaining segments. Returns the packet's number of frames.
#[inline(always)]
fn send_packet<C: PacketTransmitter, L: FrameForwarder>(
    card: &mut C,
    sender: TransmitQueueId,
    packet: &CopiedPacket<C::Orders>,
    places: &mut FrameMemory,
    lane: &mut L,
) -> usize {
    if packet.orders.mss().is_some() {
        return send_cut(card, sender, *packet, places, lane);
    }
    send_whole(card, sender, &packet.orders, &mut places.packet, lane);
    1
}

/// Copies the bytes of a packet to private memory, behind headroom. Returns `false` if the bytes cannot be read.
#[inline(always)]
fn read_packet<C: PacketTransmitter, L: FrameForwarder>(
    card: &mut C,
    sender: TransmitQueueId,
    places: &mut FrameMemory,
    lane: &mut L,
) -> bool {
    let FrameMemory { packet, buffers, .. } = places;
    lane.charge(WorkCost::of_packet(buffers.bytes()));
    packet.set_length(HEADROOM);
    let (function, _, bus) = card.source(sender);
    buffers.read(function, bus, packet.extend(buffers.bytes())).is_ok()
}

/// Pauses a packet: keeps its remaining segments until its port may send again. A port without memory for them drops
/// and counts them.
fn keep<C: PacketTransmitter, L: FrameForwarder>(
    card: &mut C,
    sender: TransmitQueueId,
    packet: CopiedPacket<C::Orders>,
    staging: &mut StagedPacket,
    lane: &mut L,
) {
    match card.held(sender) {
        Some(held) => held.keep(packet, sender.queue, staging),
        None => spoil(card, sender, PacketDropReason::Offload, lane),
    }
}

/// Sends a packet that is one frame.
fn send_whole<C: PacketTransmitter, L: FrameForwarder>(
    card: &mut C,
    sender: TransmitQueueId,
    orders: &C::Orders,
    packet: &mut StagedPacket,
    lane: &mut L,
) {
    let bytes = packet.get_mut(HEADROOM..).unwrap_or_default();
    if bytes.len() < HEADER || !orders.fits(bytes.len()) {
        return spoil(card, sender, PacketDropReason::Size, lane);
    }
    let sealed = card.insert_sums(sender, orders, bytes);
    charge_sum(&sealed, bytes.len(), lane);
    if sealed.is_err() {
        spoil(card, sender, PacketDropReason::Offload, lane);
        if !C::SENDS_MISFITS {
            return;
        }
    }
    packet.pad(HEADROOM + SHORTEST as usize);
    if let Some(mut frame) = Frame::new(packet) {
        frame.set_seal(sealed.ok().flatten());
        send(card, sender, orders, &mut frame, lane);
    }
}

/// Sends the segments of a packet that are due now. Returns the number of segments, at least 1. The remaining segments
/// are kept.
fn send_cut<C: PacketTransmitter, L: FrameForwarder>(
    card: &mut C,
    sender: TransmitQueueId,
    mut packet: CopiedPacket<C::Orders>,
    places: &mut FrameMemory,
    lane: &mut L,
) -> usize {
    let (staging, apart) = (&mut places.packet, &mut places.frames.staging);
    let masks = card.flag_masks();
    let bytes = staging.get(HEADROOM..).unwrap_or_default();
    let Some(mut cut) = packet.orders.cut(bytes, bytes.len(), masks) else {
        spoil(card, sender, PacketDropReason::Offload, lane);
        return 1;
    };
    let before = packet.sent;
    cut.pass(before);
    if before == 0 {
        let passed_on = send_uncut(card, sender, &packet.orders, staging, lane);
        card.count_large(sender, passed_on.map(|(_, outcome)| outcome));
        if let Some((segments, _)) = passed_on {
            return segments;
        }
    }
    while let Some((place, length)) = cut.next_within(staging, apart, HEADROOM) {
        lane.charge(WorkCost::of_segment(length));
        send_segment(card, sender, &packet.orders, (place, length, cut.sealed()), lane);
        packet.sent += 1;
        if !lane.is_due() {
            break;
        }
    }
    if cut.count() > 0 && lane.is_due() {
        // A segment that has no place would wait for ever.
        spoil(card, sender, PacketDropReason::Size, lane);
    } else if cut.count() > 0 {
        keep(card, sender, packet, staging, lane);
    }
    (packet.sent - before).max(1) as usize
}

/// Sends a packet unsegmented to an uplink or a port that accepts such packets. Returns the number of segments that the kernel
/// makes there, and the packet's outcome. `None`, with the packet unchanged, if the card has to segment it.
fn send_uncut<C: PacketTransmitter, L: FrameForwarder>(
    card: &mut C,
    sender: TransmitQueueId,
    orders: &C::Orders,
    packet: &mut [u8],
    lane: &mut L,
) -> Option<(usize, UncutOutcome)> {
    if !(lane.takes_uncut() || C::RECEIVES_UNCUT) || !orders.may_leave_uncut() {
        return None;
    }
    let bytes = packet.get(HEADROOM..)?;
    let whole = uncut::sent(bytes, &orders.request(), orders.mss()?, card.flag_masks())?;
    let segments = usize::try_from(whole.frames(bytes.len())).unwrap_or(usize::MAX);
    let mut frame = Frame::new(packet)?;
    frame.tag = lane.tag(card.asked_tag(sender, orders));
    let complete = |bytes: &mut [u8]| uncut::complete(&whole, bytes);
    let outcome = lane.send_uncut(card, &mut frame, &whole, SHORTEST as usize, complete)?;
    Some((segments, outcome))
}
