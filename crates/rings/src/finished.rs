//! Hands a frame that is ready to be sent to the plane with its VLAN tag. Counts a packet that yields no frame.

use crate::card::InvalidChecksumRequest;
use crate::frames::pad;
use crate::packet::PacketDropReason;
use crate::packets::PacketTransmitter;
use plane::frame::{Frame, HEADROOM, OuterTag, TransportProtocol, TrustedChecksum};
use plane::{FrameForwarder, TransmitQueueId};
use units::WorkCost;

/// Hands a frame that is ready to be sent to the plane. A tag that the descriptor requests goes before a tag in the
/// frame. The port's own tag replaces the requested one.
#[inline(always)]
pub(crate) fn send<C: PacketTransmitter, L: FrameForwarder>(
    card: &mut C,
    sender: TransmitQueueId,
    orders: &C::Orders,
    frame: &mut Frame<'_>,
    lane: &mut L,
) {
    let (inner, outer) = lane.tag_types();
    frame.look_behind(inner, outer);
    let asked = card.asked_tag(sender, orders);
    let inserted = lane.tag(asked);
    // The outer tag is the sender's to bring. Without one there is nothing to put an inner one behind (82576 datasheet 7.4.5.1).
    if inserted.is_some() && frame.outer == OuterTag::Missing {
        return spoil(card, sender, PacketDropReason::Offload, lane);
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

/// Sends a segment of a packet; `place` holds the headroom and then the segment's `length` bytes.
#[inline(never)]
pub(crate) fn send_segment<C: PacketTransmitter, L: FrameForwarder>(
    card: &mut C,
    sender: TransmitQueueId,
    orders: &C::Orders,
    (place, length, sealed): (&mut [u8], usize, Option<TrustedChecksum>),
    lane: &mut L,
) {
    let end = HEADROOM + pad(&mut place[HEADROOM..], length);
    if let Some(mut frame) = Frame::new(&mut place[..end]) {
        frame.set_seal(sealed);
        send(card, sender, orders, &mut frame, lane);
    }
}

/// Charges a sender for the checksum that was inserted into a frame of `bytes` bytes, if it is SCTP's. The cost of a frame
/// includes every other checksum.
#[inline(always)]
pub(crate) fn charge_sum<L: FrameForwarder>(
    sealed: &Result<Option<TrustedChecksum>, InvalidChecksumRequest>,
    bytes: usize,
    lane: &mut L,
) {
    if let Ok(Some(TrustedChecksum { transport: TransportProtocol::Sctp, .. })) = sealed {
        lane.charge(WorkCost::of_sctp(bytes));
    }
}

/// Counts a packet that cannot be read, or is malformed.
#[cold]
pub(crate) fn spoil<C: PacketTransmitter, L: FrameForwarder>(
    card: &mut C,
    sender: TransmitQueueId,
    flaw: PacketDropReason,
    lane: &mut L,
) {
    if flaw == PacketDropReason::Fault {
        lane.counters().dma_faults += 1;
        return;
    }
    lane.counters().tx_invalid += 1;
    card.spoiled(sender, flaw);
}
