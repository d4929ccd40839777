//! Takes frames from the uplink: they pass the MAC, and go to the plane. The plane decides who gets a frame, and
//! `deliver` puts it into receive queues.

use crate::frames::{LONGEST_FRAME, SHORTEST, pad};
use crate::packets::FrameReceiver;
use crate::visit::lend;
use offload::crc::frame_check_sequence;
use offload::uncut;
use plane::frame::{Frame, HEADER, HEADROOM};
use plane::tag::TAG;
use plane::uplink::UplinkMode;
use plane::{ForwardingPlane, FrameOrigin, UplinkWire};
use units::FCS;

/// Number of segments of an unsegmented packet that use as much of the budget as one frame.
const SEGMENTS_PER_COST: u64 = 4;

/// Takes up to `budget` frames from the uplink and hands them to the plane. Returns `false` if the uplink has no more
/// frames.
pub fn arrive<C: FrameReceiver, W: UplinkWire, const N: usize>(
    card: &mut C,
    plane: &mut ForwardingPlane<N>,
    budget: usize,
    wire: &mut W,
) -> bool {
    let mut places = lend(card);
    let (mut left, mut more) = (budget, true);
    while left > 0 && more {
        let segments = if C::RECEIVES_UNCUT { arrive_uncut(card, plane, wire) } else { None };
        let cost = 1 + segments.unwrap_or(0) / SEGMENTS_PER_COST;
        more = segments.is_some() || arrive_one(card, &mut places.frames.staging, plane, wire);
        left = left.saturating_sub(usize::try_from(cost).unwrap_or(usize::MAX));
    }
    *card.places() = Some(places);
    more
}

/// Takes an unsegmented packet from the uplink, if it is next and one port takes it whole. Returns the number of its segments.
fn arrive_uncut<C: FrameReceiver, W: UplinkWire, const N: usize>(
    card: &mut C,
    plane: &mut ForwardingPlane<N>,
    wire: &mut W,
) -> Option<u64> {
    if wire.is_watched() || card.keeps_check_sequence() || card.is_careful() {
        return None;
    }
    let (packet, layout) = wire.uncut()?;
    if !uncut::may_pass(&layout, packet.get(HEADROOM..)?) {
        return None;
    }
    let mut frame = Frame::new(packet)?;
    frame.look_behind(plane.tables().inner, plane.tables().outer);
    frame.take_tag();
    let layout = if frame.tag.is_some() { layout.before(TAG) } else { layout };
    let counted = (&layout, SHORTEST as usize);
    let segments = plane.arrive_uncut(&mut frame, counted, |bytes| uncut::complete(&layout, bytes), card);
    // Its segments are cut, or it is recorded, with the tag that it came with.
    frame.tagged();
    if segments.is_some() {
        wire.pass_uncut();
    }
    segments
}

/// Takes one frame from the uplink. Returns `false` if there is none.
fn arrive_one<C: FrameReceiver, W: UplinkWire, const N: usize>(
    card: &mut C,
    place: &mut [u8],
    plane: &mut ForwardingPlane<N>,
    wire: &mut W,
) -> bool {
    let Some(length) = wire.receive(&mut place[HEADROOM..]) else { return false };
    let UplinkMode { link, receives, loops_back, .. } = plane.uplink;
    // A port that has no link, or does not receive, knows of no frame: nothing is counted.
    if link && receives && !loops_back {
        pass_mac(card, place, length, plane, wire);
    }
    true
}

/// Hands a frame of `length` bytes from the uplink to the plane, unless the frame is for the MAC alone or has
/// an invalid length.
fn pass_mac<C: FrameReceiver, W: UplinkWire, const N: usize>(
    card: &mut C,
    place: &mut [u8],
    length: usize,
    plane: &mut ForwardingPlane<N>,
    wire: &mut W,
) {
    // An uplink that is no Ethernet brings frames that are too short for one.
    let bytes = &mut place[HEADROOM..];
    let end = pad(bytes, length);
    if card.ends_in_mac(&bytes[..end]) {
        return;
    }
    plane.tally.arrived(end);
    if !(HEADER..=LONGEST_FRAME).contains(&length) {
        return card.wrong_length(length);
    }
    let trailer = if card.keeps_check_sequence() { append_check_sequence(bytes, end) } else { 0 };
    if let Some(mut frame) = Frame::new(&mut place[..HEADROOM + end + trailer]) {
        frame.set_trailer(trailer);
        frame.set_seal(wire.sealed());
        let tables = plane.tables();
        frame.look_behind(tables.inner, tables.outer);
        frame.take_tag();
        plane.forward(FrameOrigin::Uplink, &mut frame, card, wire);
    }
}

/// Appends the frame check sequence to a frame. Returns the number of bytes with it.
#[cold]
fn append_check_sequence(bytes: &mut [u8], length: usize) -> usize {
    let check = frame_check_sequence(&bytes[..length]).to_le_bytes();
    bytes[length..length + FCS].copy_from_slice(&check);
    FCS
}
