//! Tests trusted checksums: the card does not verify a checksum that it has inserted itself, and writes the same
//! descriptors as a card that verifies it.

use super::frames::{ipv4_frame, ipv4_header, pseudo, tcp4, tcp6, udp4, udp6};
use super::{parsed, segmenter};
use crate::offload::receive::classify;
use crate::offload::transmit::insert;
use alloc::vec::Vec;
use i82576::descriptor::rx::status::{L4CS, L4E};
use i82576::descriptor::tx::{AdvancedContextDescriptor, AdvancedDataDescriptor, L4PacketType};
use plane::frame::{TransportProtocol, TrustedChecksum};
use proptest::prelude::{Just, Strategy, any, prop_oneof, proptest};
use proptest::sample::Index;

const SUMS: AdvancedDataDescriptor = AdvancedDataDescriptor {
    insert_ip_checksum: true,
    insert_l4_checksum: true,
    address: 0,
    length: 0,
    end_of_packet: true,
    report_status: false,
    insert_vlan: false,
    segment: false,
    time_stamp: false,
    context: 0,
    check_context: false,
    payload_length: 0,
};

/// Returns a frame of transport and IP version `kind`, its context, the seed that a driver leaves in the checksum
/// field, and that field's offset.
fn packet(kind: u8, payload: &[u8]) -> (Vec<u8>, AdvancedContextDescriptor, u16, usize) {
    let (frame, ip_length, l4, protocol, l4_length, field) = match kind {
        0 => (tcp4(payload), 20, L4PacketType::Tcp, 6, 20, 16),
        1 => (udp4(payload), 20, L4PacketType::Udp, 17, 8, 6),
        2 => (tcp6(payload), 40, L4PacketType::Tcp, 6, 20, 16),
        3 => (udp6(payload), 40, L4PacketType::Udp, 17, 8, 6),
        _ => {
            let sctp = [&[0, 1, 0, 2, 0, 0, 0, 3, 0, 0, 0, 0], payload].concat();
            (ipv4_frame(ipv4_header(132, 0), &[], 0, &sctp), 20, L4PacketType::Sctp, 132, 12, 8)
        }
    };
    let start = 14 + usize::from(ip_length);
    let ipv4 = ip_length == 20;
    let context = AdvancedContextDescriptor {
        mac_length: 14,
        ip_length,
        l4_length,
        ipv4,
        l4,
        mss: 100,
        ..AdvancedContextDescriptor::default()
    };
    let seed = pseudo(&frame, !ipv4, protocol, frame.len() - start);
    (frame, context, seed, start + field)
}

/// Returns the descriptor status of a padded frame when the sender's checksum is trusted, and when it is verified.
fn told(frame: &[u8], sealed: Option<TrustedChecksum>) -> (u32, u32) {
    let mut frame = frame.to_vec();
    frame.resize(frame.len().max(60), 0);
    let with = |sealed| classify(&frame, &parsed(&frame), u32::MAX, sealed).status;
    (with(sealed), with(None))
}

#[test]
fn senders_checksum_is_not_summed_again_on_reception() {
    for kind in 0..5 {
        let (mut frame, context, seed, field) = packet(kind, b"some payload of an odd length");
        if kind < 4 {
            frame[field..field + 2].copy_from_slice(&seed.to_be_bytes());
        }
        let sealed = insert(&mut frame, &SUMS, &context).unwrap();
        assert_eq!(told(&frame, sealed).0 & (L4CS | L4E), L4CS);
        *frame.last_mut().unwrap() ^= 1;
        let (with, without) = told(&frame, sealed);
        assert_eq!((with & L4E, without & L4E), (0, L4E), "kind {kind} was summed up again");
    }
}

#[test]
fn senders_checksum_over_a_wrong_seed_is_an_error() {
    for kind in 0..4 {
        let (mut frame, context, seed, field) = packet(kind, b"some payload");
        frame[field..field + 2].copy_from_slice(&(seed ^ 0x100).to_be_bytes());
        let sealed = insert(&mut frame, &SUMS, &context).unwrap();
        assert_eq!(told(&frame, sealed).0 & (L4CS | L4E), L4CS | L4E);
    }
}

#[test]
fn senders_checksum_offsets_move_with_the_frame_start() {
    let seal = TrustedChecksum { start: 34, end: 60, transport: TransportProtocol::Tcp, seed: 7 };
    assert_eq!(seal.before(4), TrustedChecksum { start: 30, end: 56, ..seal });
    assert_eq!(seal.before(4).behind(4), seal);
}

/// Draws the number `right`, a number that differs in one bit, or an arbitrary one.
fn around(right: u16) -> impl Strategy<Value = u16> {
    prop_oneof![6 => Just(right), 1 => any::<u16>(), 1 => Just(0), 1 => Just(0xffff), 1 => Just(right ^ 1)]
}

proptest! {
    #[test]
    fn senders_checksum_leaves_the_descriptor_unchanged(
        kind in 0..5u8,
        payload in proptest::collection::vec(any::<u8>(), 0..200),
        spoil in proptest::option::weighted(0.3, (any::<Index>(), any::<u8>())),
        lengths in (around(14), around(20), around(40)),
        seed in around(0xabcd),
        l4 in proptest::option::weighted(0.2, prop_oneof![Just(L4PacketType::Tcp), Just(L4PacketType::Udp), Just(L4PacketType::Sctp)]),
    ) {
        let (mut frame, mut context, right, field) = packet(kind, &payload);
        let seed = if seed == 0xabcd { right } else { seed };
        frame[field..field + 2].copy_from_slice(&seed.to_be_bytes());
        if let Some((at, value)) = spoil {
            let at = at.index(field);
            frame[at] = value;
        }
        let ip = if context.ipv4 { lengths.1 } else { lengths.2 };
        (context.mac_length, context.ip_length) = (lengths.0 as u8 & 0x7f, ip & 0x1ff);
        context.l4 = l4.unwrap_or(context.l4);
        if let Ok(sealed) = insert(&mut frame, &SUMS, &context) {
            let (with, without) = told(&frame, sealed);
            assert_eq!(with, without, "{context:?}");
        }
    }

    #[test]
    fn senders_segment_checksum_is_not_summed_again(
        kind in 0..4u8,
        payload in proptest::collection::vec(any::<u8>(), 0..400),
        seed in around(0xabcd),
        mss in 1..300u16,
    ) {
        let (mut frame, mut context, _, field) = packet(kind, &payload);
        let protocol = if context.l4 == L4PacketType::Tcp { 6 } else { 17 };
        let right = pseudo(&frame, !context.ipv4, protocol, 0);
        let seed = if seed == 0xabcd { right } else { seed };
        frame[field..field + 2].copy_from_slice(&seed.to_be_bytes());
        context.mss = mss;
        let mut segmenter = segmenter(&frame, &SUMS, &context).unwrap();
        let mut buffer = [0; 2048];
        while let Some(length) = segmenter.write_next(&mut buffer) {
            let (with, without) = told(&buffer[..length], segmenter.sealed());
            assert!(segmenter.sealed().is_some());
            assert_eq!(with, without);
            assert!(seed != right || with & L4E == 0);
        }
    }
}
