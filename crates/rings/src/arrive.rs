//! Takes frames from the uplink: they pass the MAC, and go to the plane. The plane decides who gets a frame, and
//! `deliver` puts it into receive queues.

use crate::frames::{LONGEST_FRAME, pad};
use crate::packets::FrameReceiver;
use crate::visit::lend;
use offload::crc::frame_check_sequence;
use plane::frame::{Frame, HEADER, HEADROOM};
use plane::uplink::UplinkMode;
use plane::{FrameOrigin, Plane, UplinkWire};
use units::FCS;

/// Takes up to `budget` frames from the uplink and hands them to the plane. Returns `false` if the uplink has no more
/// frames.
pub fn arrive<C: FrameReceiver, W: UplinkWire, const N: usize>(
    card: &mut C,
    plane: &mut Plane<N>,
    budget: usize,
    wire: &mut W,
) -> bool {
    let mut places = lend(card);
    let more = (0..budget).all(|_| arrive_one(card, &mut places.frames.staging, plane, wire));
    *card.places() = Some(places);
    more
}

/// Takes one frame from the uplink. Returns `false` if there is none.
fn arrive_one<C: FrameReceiver, W: UplinkWire, const N: usize>(
    card: &mut C,
    place: &mut [u8],
    plane: &mut Plane<N>,
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
    plane: &mut Plane<N>,
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
