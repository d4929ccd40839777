//! The careful way of a packet from a transmit queue to the plane: checksums are inserted, or it is cut into segments. Its frames
//! are handed over until the port's rate says wait. Left out: how descriptors are read (the family), and plain frames (`forward`).

use crate::frames::{SHORTEST, pad};
use crate::packet::{Flaw, Orders, Packet, Taken};
use crate::packets::Packets;
use crate::places::Places;
use crate::staging::Staging;
use offload::uncut;
use plane::frame::{Frame, HEADER, HEADROOM, Outer};
use plane::{Lane, Sender};

/// Sends the next packet of a queue, or the rest of one that waited; returns its cost in frames of the budget, at least 1. `None` if
/// there is no packet, or none may follow.
#[inline(never)]
pub(crate) fn send_next<C: Packets, L: Lane>(
    card: &mut C,
    sender: Sender,
    places: &mut Places,
    lane: &mut L,
) -> Option<usize> {
    let held = card.held(sender).and_then(|held| held.resume(&mut places.packet));
    // What is left of a packet is not read again, so it costs its frames alone.
    let (packet, queue, cost) = match held {
        Some((packet, queue)) => (packet, queue, 1),
        None => match card.take(sender, &mut places.packet) {
            (Taken::Nothing, _) => return None,
            (Taken::Packet(orders), cost) => (Packet { orders, sent: 0 }, sender.queue, cost),
            (Taken::Empty, cost) => return card.may_follow(sender).then_some(cost.max(1)),
            (Taken::Dropped(flaw), cost) => {
                if flaw == Flaw::Fault {
                    lane.counters().dma_faults += 1;
                } else {
                    spoil(card, sender, flaw, lane);
                }
                return card.may_follow(sender).then_some(cost.max(1));
            }
        },
    };
    let of = Sender { queue, ..sender };
    let frames = if packet.orders.mss().is_some() {
        send_cut(card, of, packet, places, lane)
    } else {
        send_whole(card, of, &packet.orders, &mut places.packet, lane);
        1
    };
    card.may_follow(sender).then_some(frames.max(cost))
}

/// Counts a malformed packet.
#[cold]
fn spoil<C: Packets, L: Lane>(card: &mut C, sender: Sender, flaw: Flaw, lane: &mut L) {
    lane.counters().tx_invalid += 1;
    card.spoiled(sender, flaw);
}

/// Sends a packet that is one frame.
fn send_whole<C: Packets, L: Lane>(
    card: &mut C,
    sender: Sender,
    orders: &C::Orders,
    packet: &mut Staging,
    lane: &mut L,
) {
    let bytes = packet.get_mut(HEADROOM..).unwrap_or_default();
    if bytes.len() < HEADER || !orders.fits(bytes.len()) {
        return spoil(card, sender, Flaw::Size, lane);
    }
    let sealed = card.insert_sums(orders, bytes);
    if sealed.is_err() {
        spoil(card, sender, Flaw::Offload, lane);
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

/// Sends the segments of a packet that are due; returns their number, at least 1. The rest of the packet is kept.
fn send_cut<C: Packets, L: Lane>(
    card: &mut C,
    sender: Sender,
    mut packet: Packet<C::Orders>,
    places: &mut Places,
    lane: &mut L,
) -> usize {
    let (staging, apart) = (&mut places.packet, &mut places.frames.staging);
    let masks = card.flag_masks();
    let Some(segmenter) = packet.orders.segmenter(staging.get(HEADROOM..).unwrap_or_default(), masks) else {
        spoil(card, sender, Flaw::Offload, lane);
        return 1;
    };
    let (mut cut, before) = (segmenter.skip(packet.sent).cut(), packet.sent);
    if before == 0 {
        card.cuts();
        if let Some(segments) = send_uncut(card, sender, &packet.orders, staging, lane) {
            return segments;
        }
    }
    while let Some((place, length)) = cut.next_within(staging, apart, HEADROOM) {
        let end = HEADROOM + pad(&mut place[HEADROOM..], length);
        if let Some(mut frame) = Frame::new(&mut place[..end]) {
            frame.set_seal(cut.sealed());
            send(card, sender, &packet.orders, &mut frame, lane);
        }
        packet.sent += 1;
        if !lane.is_due() {
            break;
        }
    }
    if cut.count() > 0
        && let Some(held) = card.held(sender)
    {
        held.keep(packet, sender.queue, staging);
    }
    (packet.sent - before).max(1) as usize
}

/// Sends a packet as it is to an uplink that takes such packets; returns its number of segments, which something else has to cut.
/// `None` if the card has to cut it; then it is unchanged.
fn send_uncut<C: Packets, L: Lane>(
    card: &mut C,
    sender: Sender,
    orders: &C::Orders,
    packet: &mut [u8],
    lane: &mut L,
) -> Option<usize> {
    if !lane.takes_uncut() || !orders.may_leave_uncut() {
        return None;
    }
    let bytes = packet.get(HEADROOM..)?;
    let whole = uncut::sent(bytes, &orders.request(), orders.mss()?, card.flag_masks())?;
    let segments = whole.frames(bytes.len()) as usize;
    let mut frame = Frame::new(packet)?;
    frame.tag = lane.tag(card.asked_tag(sender, orders));
    lane.send_uncut(&mut frame, &whole, SHORTEST as usize, |bytes| uncut::complete(&whole, bytes))?;
    Some(segments)
}

/// Hands a finished frame to the plane. A tag that the descriptor asks for goes before one in the frame. The port's tag takes its
/// place.
#[inline(always)]
fn send<C: Packets, L: Lane>(
    card: &mut C,
    sender: Sender,
    orders: &C::Orders,
    frame: &mut Frame<'_>,
    lane: &mut L,
) {
    let (inner, outer) = lane.tag_types();
    frame.look_behind(inner, outer);
    let asked = card.asked_tag(sender, orders);
    let inserted = lane.tag(asked);
    // The outer tag is the sender's to bring. Without one there is nothing to put an inner one behind (82576 datasheet 7.4.5.1).
    if inserted.is_some() && frame.outer == Outer::Missing {
        return spoil(card, sender, Flaw::Offload, lane);
    }
    if asked.is_none() || inserted.is_none() {
        frame.take_tag();
    }
    frame.tag = inserted.or(frame.tag);
    let told = lane.send(card, frame);
    if let Some(reason) = told.refused {
        card.refused(sender, reason);
    }
    if told.sent {
        card.left(sender, orders);
    }
}
