//! Tests the checksum bits of receive descriptors, one rule of the datasheet at a time.

use super::frames::{ipv4_frame, ipv4_header, ipv6_frame, tcp4, tcp6, udp4, udp6};
use super::parsed;
use crate::offload::receive::{FragmentFields, FrameContentFields, classify, fragment, packet_sum};
use alloc::vec::Vec;
use i82576::bits::rxcsum::{CRCOFL, IPOFL, IPPCSE, PCSD, TUOFL};
use i82576::descriptor::rx::packet_type::{IPV4, IPV4_OPTIONS, IPV6, IPV6_EXTENSIONS, SCTP, TCP, UDP};
use i82576::descriptor::rx::status::{IPCS, IPE, L4CS, L4E, UDPCS, UDPV};
use offload::checksum::PartialChecksum;
use offload::crc::crc32c;
use proptest::prelude::proptest;

const ALL: u32 = IPOFL | TUOFL | CRCOFL;

fn received(frame: &[u8]) -> FrameContentFields {
    classify(frame, &parsed(frame), ALL, None)
}

fn status(frame: &[u8]) -> u32 {
    received(frame).status
}

fn spoiled(mut frame: Vec<u8>, at: usize) -> Vec<u8> {
    frame[at] ^= 0x10;
    frame
}

#[test]
fn received_right_checksums_are_reported_as_verified() {
    assert_eq!(received(&tcp4(b"odd")), FrameContentFields { packet_type: IPV4 | TCP, status: IPCS | L4CS });
    assert_eq!(
        received(&udp4(b"even")),
        FrameContentFields { packet_type: IPV4 | UDP, status: IPCS | L4CS | UDPCS }
    );
}

#[test]
fn received_ipv6_packet_reports_only_its_l4_checksum() {
    assert_eq!(received(&tcp6(b"odd")), FrameContentFields { packet_type: IPV6 | TCP, status: L4CS });
    assert_eq!(
        received(&udp6(b"even")),
        FrameContentFields { packet_type: IPV6 | UDP, status: L4CS | UDPCS }
    );
}

#[test]
fn received_wrong_checksums_set_descriptor_errors() {
    assert_eq!(status(&spoiled(tcp4(b"payload"), 54)), IPCS | L4CS | L4E);
    assert_eq!(status(&spoiled(udp6(b"payload"), 62)), L4CS | UDPCS | L4E);
    // The time to live is in the IPv4 sum only.
    assert_eq!(status(&spoiled(tcp4(b"payload"), 22)), IPCS | IPE | L4CS);
}

#[test]
fn verified_checksum_excludes_padding_after_the_ip_packet() {
    let mut frame = udp4(b"x");
    frame.resize(60, 0xee);
    assert_eq!(status(&frame), IPCS | L4CS | UDPCS);
}

#[test]
fn rxcsum_register_disables_each_receive_checksum_offload() {
    let with = |frame: &[u8]| {
        [IPOFL, TUOFL, CRCOFL, 0].map(|rxcsum| classify(frame, &parsed(frame), rxcsum, None).status)
    };
    assert_eq!(with(&tcp4(b"payload")), [IPCS, L4CS, 0, 0]);
    assert_eq!(with(&udp4(b"payload")), [IPCS, L4CS | UDPCS, 0, 0]);
    assert_eq!(with(&sctp()), [IPCS, 0, L4CS, 0]);
}

#[test]
fn udp_without_checksum_is_not_reported_as_checked() {
    let mut frame = udp4(b"payload");
    frame[40..42].fill(0);
    assert_eq!(status(&frame), IPCS);
}

#[test]
fn received_ip_fragment_reports_no_verified_l4_checksum() {
    let mut header = ipv4_header(17, 0);
    header.more_fragments = true;
    let frame = ipv4_frame(header, &[], 0, &udp4(b"payload")[34..]);
    assert_eq!(received(&frame), FrameContentFields { packet_type: IPV4, status: IPCS });
}

#[test]
fn ip_length_beyond_the_frame_reports_no_l4_checksum() {
    let mut frame = udp4(b"payload");
    frame[17] += 1;
    assert_eq!(status(&frame) & (L4CS | UDPCS), 0);
    let mut longer_than_ip = udp4(b"payload");
    longer_than_ip[39] += 1;
    assert_eq!(status(&longer_than_ip), IPCS);
    let mut shorter_than_itself = udp4(b"payload");
    shorter_than_itself[39] = 7;
    assert_eq!(status(&shorter_than_itself), IPCS);
}

#[test]
fn packet_type_includes_ipv4_options_and_ipv6_extensions() {
    let datagram = &udp4(b"payload")[34..];
    let with_options = ipv4_frame(ipv4_header(17, 0), &[1; 4], 0, datagram);
    assert_eq!(received(&with_options).packet_type, IPV4 | IPV4_OPTIONS | UDP);
    assert_eq!(received(&with_options).status, IPCS | L4CS | UDPCS);
    let datagram = &udp6(b"payload")[54..];
    let with_extension = ipv6_frame(60, &[&[17, 0, 1, 4, 0, 0, 0, 0], datagram].concat());
    assert_eq!(received(&with_extension).packet_type, IPV6 | IPV6_EXTENSIONS | UDP);
    assert_eq!(received(&with_extension).status, L4CS | UDPCS);
}

fn sctp() -> Vec<u8> {
    let mut packet = [0, 1, 0, 2, 0, 0, 0, 3, 0, 0, 0, 0, 9, 9, 9];
    let crc = crc32c(&[&packet]).to_le_bytes();
    packet[8..12].copy_from_slice(&crc);
    ipv4_frame(ipv4_header(132, 0), &[], 0, &packet)
}

#[test]
fn received_sctp_is_verified_by_its_crc() {
    assert_eq!(received(&sctp()), FrameContentFields { packet_type: IPV4 | SCTP, status: IPCS | L4CS });
    assert_eq!(status(&spoiled(sctp(), 46)), IPCS | L4CS | L4E);
}

/// Cuts a datagram into a fragment of 16 bytes and one of the rest. Returns the descriptor fields of both fragments
/// under RXCSUM.IPPCSE.
fn fragments(datagram: &[u8]) -> [FragmentFields; 2] {
    let mut header = ipv4_header(17, 0);
    header.identification = 0x1234;
    let rest = ipv4_frame(header.clone(), &[], 2, &datagram[16..]);
    header.more_fragments = true;
    let first = ipv4_frame(header, &[], 0, &datagram[..16]);
    [first, rest].map(|frame| fragment(&frame, &parsed(&frame), IPPCSE))
}

#[test]
fn udp_fragment_sums_and_pseudo_header_add_up_to_all_ones() {
    let whole = udp4(b"some thirty-odd bytes of payload");
    let [first, rest] = fragments(&whole[34..]);
    assert_eq!((first.identification, rest.identification), (0x1234, 0x1234));
    assert_eq!((first.status, rest.status), (UDPCS | UDPV, UDPCS));
    let pseudo = PartialChecksum::of(&whole[26..34]).number(17).number(whole.len() as u32 - 34);
    assert_eq!(pseudo.number(first.sum.into()).number(rest.sum.into()).value(), 0xffff);
}

#[test]
fn first_fragment_of_udp_without_checksum_reports_no_valid_sum() {
    let mut whole = udp4(b"some thirty-odd bytes of payload");
    whole[40..42].fill(0);
    assert_eq!(fragments(&whole[34..])[0].status, UDPCS);
}

#[test]
fn fragment_sum_is_reported_for_udp_over_ipv4_if_enabled() {
    let mut tcp = ipv4_header(6, 0);
    tcp.more_fragments = true;
    let other = [
        tcp4(b"payload"),
        udp4(b"payload"),
        ipv4_frame(tcp, &[], 0, &[1; 16]),
        ipv6_frame(44, &[17, 0, 0, 1, 0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0, 0]),
    ];
    for frame in other {
        let found = fragment(&frame, &parsed(&frame), IPPCSE);
        assert_eq!((found.sum, found.status), (0, 0));
    }
    let udp = ipv4_frame(ipv4_header(17, 0), &[], 8, &[1; 16]);
    assert_eq!(fragment(&udp, &parsed(&udp), 0).sum, 0);
    assert_eq!(fragment(&udp, &parsed(&udp), IPPCSE).sum, 0x0808);
}

#[test]
fn packet_checksum_is_absent_if_pcsd_or_ippcse_is_set() {
    let frame = [0x11; 20];
    assert_eq!(
        [0, 4, 19, 20, 255].map(|pcss| packet_sum(&frame, pcss)),
        [0xaaaa, 0x8888, 0x1100, 0, 0].map(Some)
    );
    assert_eq!((packet_sum(&frame, PCSD), packet_sum(&frame, IPPCSE)), (None, None));
}

#[test]
fn udp_checksum_with_ipv6_home_address_is_not_verified() {
    let datagram = [0, 1, 0, 2, 0, 8, 0xab, 0xcd];
    let option = [&[17, 2, 1, 2, 0, 0, 0xc9, 16][..], &[7; 16], &datagram].concat();
    let routing = [&[17, 2, 2, 1, 0, 0, 0, 0][..], &[7; 16], &datagram].concat();
    for frame in [ipv6_frame(60, &option), ipv6_frame(43, &routing)] {
        let found = received(&frame);
        assert_eq!(found.packet_type, IPV6 | IPV6_EXTENSIONS | UDP);
        assert_eq!(found.status, 0);
    }
}

proptest! {
    #[test]
    fn checksum_check_of_arbitrary_bytes_does_not_panic(frame: Vec<u8>, rxcsum: u32) {
        let _ = classify(&frame, &parsed(&frame), rxcsum, None);
        let _ = fragment(&frame, &parsed(&frame), rxcsum);
        let _ = packet_sum(&frame, rxcsum);
    }

    #[test]
    fn flipped_payload_bit_makes_a_right_checksum_wrong(
        payload in proptest::collection::vec(0u8.., 1..1500),
        six: bool,
        tcp: bool,
        bit in 0..8u8,
    ) {
        let mut frame = match (six, tcp) {
            (false, false) => udp4(&payload),
            (false, true) => tcp4(&payload),
            (true, false) => udp6(&payload),
            (true, true) => tcp6(&payload),
        };
        assert_eq!(status(&frame) & (L4CS | L4E | IPE), L4CS);
        *frame.last_mut().unwrap() ^= 1 << bit;
        assert_eq!(status(&frame) & (L4CS | L4E), L4CS | L4E);
    }
}
