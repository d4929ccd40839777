//! Tests frames whose sender has left the transport checksum for a card to fill in.

use super::frames::{ipv4_frame, ipv4_header, pseudo, tcp4, tcp6, udp4, udp6};
use crate::checksum::PartialChecksum;
use crate::verify::unfinished;
use alloc::vec::Vec;
use core::ops::Range;
use proptest::prelude::*;

/// Returns the offsets of a frame's transport header in the frame, and of the checksum in that header.
fn places(six: bool, udp: bool) -> (usize, usize) {
    (if six { 54 } else { 34 }, if udp { 6 } else { 16 })
}

fn build(six: bool, udp: bool, payload: &[u8]) -> Vec<u8> {
    match (six, udp) {
        (false, false) => tcp4(payload),
        (false, true) => udp4(payload),
        (true, false) => tcp6(payload),
        (true, true) => udp6(payload),
    }
}

/// Returns a frame without its transport checksum, as Linux leaves it for a card that inserts checksums.
fn without_checksum(frame: &[u8], six: bool, udp: bool) -> Vec<u8> {
    let (start, place) = places(six, udp);
    let mut frame = frame.to_vec();
    let seed = pseudo(&frame, six, if udp { 17 } else { 6 }, frame.len() - start);
    frame[start + place..][..2].copy_from_slice(&seed.to_be_bytes());
    frame
}

fn finish(frame: &mut [u8], (segment, place): (Range<usize>, usize)) {
    let sum = match PartialChecksum::of(&frame[segment]).checksum() {
        0 => 0xffff,
        sum => sum,
    };
    frame[place..place + 2].copy_from_slice(&sum.to_be_bytes());
}

proptest! {
    #[test]
    fn missing_l4_checksum_is_completed_and_a_right_one_is_kept(
        six: bool, udp: bool, payload in proptest::collection::vec(any::<u8>(), 0..200), padding in 0_usize..20,
    ) {
        let whole = build(six, udp, &payload);
        let mut frame = without_checksum(&whole, six, udp);
        // A short frame is padded, with arbitrary bytes.
        frame.resize(frame.len() + padding, 0xa5);
        let (start, place) = places(six, udp);
        prop_assert_eq!(unfinished(&frame), Some((start..whole.len(), start + place)));
        finish(&mut frame, (start..whole.len(), start + place));
        prop_assert_eq!(&frame[..whole.len()], &whole[..]);
        let mut again = whole.clone();
        if let Some(found) = unfinished(&whole) {
            finish(&mut again, found);
        }
        prop_assert_eq!(again, whole);
    }

    #[test]
    fn arbitrary_frame_has_no_checksum_field_outside_itself(frame in proptest::collection::vec(any::<u8>(), 0..120)) {
        if let Some((segment, place)) = unfinished(&frame) {
            prop_assert!(segment.end <= frame.len() && segment.contains(&place) && segment.contains(&(place + 1)));
        }
    }
}

#[test]
fn right_l4_checksum_equal_to_its_seed_stays_unchanged() {
    // Two bytes of the payload are chosen such that the segment's sum equals the seed.
    let ambiguous =
        (0..=u16::MAX).map(|word| udp4(&word.to_be_bytes())).find(|frame| unfinished(frame).is_some());
    let whole = ambiguous.expect("a right checksum equals the seed for one of the values");
    let mut frame = whole.clone();
    finish(&mut frame, unfinished(&whole).unwrap());
    assert_eq!(frame, whole);
}

#[test]
fn ip_fragments_and_udp_with_checksum_0_get_no_checksum() {
    let mut without = udp4(b"abc");
    without[40..42].fill(0);
    assert_eq!(unfinished(&without), None);
    let fragment =
        ipv4_frame(ipv4_header(17, 0), &[], 8, &without_checksum(&udp4(b"abcd"), false, true)[34..]);
    assert_eq!(unfinished(&fragment), None);
}
