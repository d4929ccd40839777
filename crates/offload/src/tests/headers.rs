//! Tests the parsing of a frame's headers: which ones are found, and which are refused as invalid.

use super::frames::{built, ipv4_frame, ipv4_header, ipv6, ipv6_frame, link, tcp4, tcp6, udp4, udp6};
use crate::headers::{FrameHeaders, NetworkHeaderKind, TransportHeaderKind};
use alloc::vec::Vec;
use etherparse::{SlicedPacket, TransportSlice, VlanId};
use proptest::prelude::{any, proptest};

#[test]
fn parser_finds_the_headers_of_tcp_over_ipv4() {
    let found = FrameHeaders::parse(&tcp4(b"payload"));
    assert_eq!(
        (found.l3, found.l3_offset, found.l3_length, found.l3_end),
        (NetworkHeaderKind::Ipv4, 14, 20, Some(61))
    );
    assert_eq!(
        (found.l4, found.l4_offset, found.l4_length, found.header_length),
        (TransportHeaderKind::Tcp, 34, 20, 54)
    );
    assert!(!found.extended && !found.fragment);
}

#[test]
fn parser_finds_the_headers_of_udp_over_ipv6() {
    let found = FrameHeaders::parse(&udp6(b"payload"));
    assert_eq!(
        (found.l3, found.l3_offset, found.l3_length, found.l3_end),
        (NetworkHeaderKind::Ipv6, 14, 40, Some(69))
    );
    assert_eq!((found.l4, found.l4_offset, found.header_length), (TransportHeaderKind::Udp, 54, 62));
}

#[test]
fn header_parser_skips_up_to_two_vlan_tags() {
    let one = built!(link().single_vlan(VlanId::try_new(5).unwrap()).ipv4([1; 4], [2; 4], 9).udp(1, 2), &[]);
    assert_eq!((FrameHeaders::parse(&one).tags, FrameHeaders::parse(&one).l4_offset), (1, 38));
    let two = built!(
        link().double_vlan(5.try_into().unwrap(), 6.try_into().unwrap()).ipv4([1; 4], [2; 4], 9).udp(1, 2),
        &[]
    );
    assert_eq!((FrameHeaders::parse(&two).tags, FrameHeaders::parse(&two).l4_offset), (2, 42));
    let three = [&two[..16], &[0x81, 0, 0, 1], &two[16..]].concat();
    assert_eq!(
        (
            FrameHeaders::parse(&three).tags,
            FrameHeaders::parse(&three).l3,
            FrameHeaders::parse(&three).header_length
        ),
        (2, NetworkHeaderKind::None, 22)
    );
}

#[test]
fn header_parser_skips_an_outer_vlan_tag_of_any_type() {
    let mut frame = udp4(&[]);
    frame.splice(12..12, [0x91, 0x00, 0, 5]);
    assert_eq!(FrameHeaders::parse(&frame).l3, NetworkHeaderKind::None, "0x9100 is no standard tag type");
    let found = FrameHeaders::parse_behind(&frame, true, 0x8100);
    assert_eq!((found.tags, found.l3, found.l3_offset), (1, NetworkHeaderKind::Ipv4, 18));
}

#[test]
fn parsed_ipv4_header_includes_its_options() {
    let found = FrameHeaders::parse(&ipv4_frame(ipv4_header(17, 0), &[1; 12], 0, &[0; 8]));
    assert!(found.extended);
    assert_eq!((found.l3_length, found.l4, found.l4_offset), (32, TransportHeaderKind::Udp, 46));
}

#[test]
fn parser_reports_no_transport_header_for_a_fragment() {
    let mut first = ipv4_header(17, 0);
    first.more_fragments = true;
    for frame in [ipv4_frame(first, &[], 0, &[0; 16]), ipv4_frame(ipv4_header(17, 0), &[], 8, &[0; 16])] {
        let found = FrameHeaders::parse(&frame);
        assert!(found.fragment);
        assert_eq!((found.l4, found.header_length), (TransportHeaderKind::None, 34));
    }
    let found = FrameHeaders::parse(&ipv6_frame(44, &[17, 0, 0, 1, 0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0, 0]));
    assert_eq!((found.fragment, found.extended, found.l4), (true, true, TransportHeaderKind::None));
    assert_eq!((found.l3_length, found.header_length), (40, 54), "before the fragment header");
}

#[test]
fn parser_follows_ipv6_extensions_to_the_transport_header() {
    let hop_by_hop = [60, 0, 1, 4, 0, 0, 0, 0];
    let destination = [17, 1, 1, 12, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    let datagram = [0, 1, 0, 2, 0, 8, 0, 0];
    let found = FrameHeaders::parse(&ipv6_frame(0, &[&hop_by_hop[..], &destination, &datagram].concat()));
    assert_eq!(
        (found.extended, found.l3_length, found.l4, found.l4_offset),
        (true, 64, TransportHeaderKind::Udp, 78)
    );
}

#[test]
fn ipv6_routing_header_with_hops_left_hides_the_transport() {
    let routing = |left: u8| ipv6_frame(43, &[17, 0, 2, left, 0, 0, 0, 0, 0, 1, 0, 2, 0, 8, 0, 0]);
    assert_eq!(FrameHeaders::parse(&routing(0)).l4, TransportHeaderKind::Udp);
    assert_eq!(FrameHeaders::parse(&routing(1)).l4, TransportHeaderKind::None);
}

/// Builds an IPv6 destination options header with the given options, before a UDP datagram.
fn with_options(options: &[u8]) -> Vec<u8> {
    assert_eq!((options.len() + 2) % 8, 0);
    let header = [&[17, (options.len() + 2) as u8 / 8 - 1], options].concat();
    ipv6_frame(60, &[&header[..], &[0, 1, 0, 2, 0, 8, 0, 0]].concat())
}

#[test]
fn parser_finds_the_ipv6_home_address_option() {
    let home = [&[0xc9, 16][..], &[7; 16]].concat();
    // Padding of one byte, of two bytes, and of two more before the home address.
    let padded = [&[0, 1, 2, 0, 0][..], &home, &[1, 5, 0, 0, 0, 0, 0]].concat();
    for (options, expected) in [
        ([&home[..], &[1, 2, 0, 0]].concat(), 14 + 40 + 4),
        (padded, 14 + 40 + 2 + 5 + 2),
        ([&[0xc9, 15][..], &[7; 15], &[0; 5]].concat(), 0),
        ([&[1, 20][..], &home, &[0, 0]].concat(), 0),
        ([&[0, 0, 0, 0][..], &[0xc9, 16]].concat(), 0),
        (alloc::vec![0, 0, 0, 0, 0, 0xc9], 0),
    ] {
        let found = FrameHeaders::parse(&with_options(&options));
        assert_eq!(
            (found.home, found.l4, found.is_readdressed()),
            (expected, TransportHeaderKind::Udp, expected != 0)
        );
    }
}

#[test]
fn ipv6_type_2_routing_header_gives_the_receivers_address() {
    let routing = |kind: u8, left: u8| {
        let header = [&[17, 2, kind, left, 0, 0, 0, 0][..], &[7; 16]].concat();
        FrameHeaders::parse(&ipv6_frame(43, &[&header[..], &[0, 1, 0, 2, 0, 8, 0, 0]].concat()))
    };
    assert_eq!((routing(2, 1).routed, routing(2, 1).l4), (14 + 40 + 8, TransportHeaderKind::Udp));
    for (kind, left) in [(2, 2), (0, 1)] {
        assert_eq!((routing(kind, left).routed, routing(kind, left).l4), (0, TransportHeaderKind::None));
    }
    assert_eq!((routing(0, 0).routed, routing(0, 0).l4), (0, TransportHeaderKind::Udp));
}

#[test]
fn parser_follows_at_most_eight_ipv6_extension_headers() {
    let chain = |extensions: usize| {
        let mut payload = alloc::vec![];
        for i in 0..extensions {
            payload.extend_from_slice(&[if i + 1 == extensions { 17 } else { 60 }, 0, 1, 4, 0, 0, 0, 0]);
        }
        payload.extend_from_slice(&[0, 1, 0, 2, 0, 8, 0, 0]);
        ipv6_frame(60, &payload)
    };
    assert_eq!(FrameHeaders::parse(&chain(8)).l4, TransportHeaderKind::Udp);
    assert_eq!(FrameHeaders::parse(&chain(9)).l4, TransportHeaderKind::None);
}

#[test]
fn parser_reports_no_ip_length_beyond_the_frame() {
    let mut frame = udp4(b"payload");
    frame[17] += 1;
    assert_eq!(
        (FrameHeaders::parse(&frame).l3, FrameHeaders::parse(&frame).l3_end),
        (NetworkHeaderKind::Ipv4, None)
    );
    let mut frame = tcp6(b"payload");
    frame[18] = 0xff;
    assert_eq!(
        (FrameHeaders::parse(&frame).l3, FrameHeaders::parse(&frame).l3_end),
        (NetworkHeaderKind::Ipv6, None)
    );
}

#[test]
fn parser_reports_no_header_with_contradictory_fields() {
    let mut short_ihl = tcp4(&[]);
    short_ihl[14] = 0x44;
    assert_eq!(FrameHeaders::parse(&short_ihl).l3, NetworkHeaderKind::None);
    let mut not_version_6 = tcp6(&[]);
    not_version_6[14] = 0x45;
    assert_eq!(FrameHeaders::parse(&not_version_6).l3, NetworkHeaderKind::None);
    let mut short_offset = tcp4(&[]);
    short_offset[46] = 0x40;
    assert_eq!(
        (FrameHeaders::parse(&short_offset).l3, FrameHeaders::parse(&short_offset).l4),
        (NetworkHeaderKind::Ipv4, TransportHeaderKind::None)
    );
}

#[test]
fn parsed_end_of_an_ip_packet_excludes_ethernet_padding() {
    let mut frame = udp4(b"x");
    frame.resize(60, 0);
    assert_eq!(FrameHeaders::parse(&frame).l3_end, Some(43));
}

#[test]
fn parser_reports_only_complete_headers_of_a_truncated_frame() {
    let frame = built!(ipv6().tcp(1, 2, 3, 4), b"payload");
    for length in 0..frame.len() {
        let found = FrameHeaders::parse(&frame[..length]);
        assert_eq!(found.l3 == NetworkHeaderKind::Ipv6, length >= 54, "{length} bytes");
        assert_eq!(found.l4 == TransportHeaderKind::Tcp, length >= 74, "{length} bytes");
        assert!(found.header_length <= length && found.l3_end.is_none(), "{length} bytes");
    }
}

#[test]
fn parser_reports_no_truncated_ipv4_header() {
    let frame = ipv4_frame(ipv4_header(17, 0), &[1; 12], 0, &[]);
    for length in 0..=frame.len() {
        let found = FrameHeaders::parse(&frame[..length]).l3;
        assert_eq!(
            found == NetworkHeaderKind::Ipv4,
            length == 46,
            "{length} bytes: its options end with the frame"
        );
    }
}

proptest! {
    #[test]
    fn parser_keeps_headers_of_arbitrary_bytes_inside_the_frame(mut frame: alloc::vec::Vec<u8>, kind in 0..4u8) {
        if frame.len() > 14 {
            let kind = [[0x81, 0], [8, 0], [0x86, 0xdd], [0x88, 0xa8]][usize::from(kind)];
            frame[12..14].copy_from_slice(&kind);
            frame[14] = if kind[0] == 8 { 0x45 } else { 0x60 };
        }
        let found = FrameHeaders::parse(&frame);
        assert!(found.header_length <= frame.len());
        assert!(found.l3 == NetworkHeaderKind::None || found.l3_offset + found.l3_length <= found.header_length);
        assert!(found.l4 == TransportHeaderKind::None || found.l4_offset + found.l4_length == found.header_length);
        assert!(found.l3_end.is_none_or(|end| found.header_length <= end && end <= frame.len()));
    }

    #[test]
    fn header_parser_agrees_with_the_etherparse_crate(
        payload: alloc::vec::Vec<u8>,
        six: bool,
        tcp: bool,
        tag in proptest::option::of(0u16..4096),
    ) {
        let mut frame = match (six, tcp) {
            (false, false) => udp4(&payload),
            (false, true) => tcp4(&payload),
            (true, false) => udp6(&payload),
            (true, true) => tcp6(&payload),
        };
        if let Some(tag) = tag {
            let [high, low] = tag.to_be_bytes();
            frame.splice(12..12, [0x81, 0, high, low]);
        }
        let (found, theirs) = (FrameHeaders::parse(&frame), SlicedPacket::from_ethernet(&frame).unwrap());
        let expected = match theirs.transport {
            Some(TransportSlice::Tcp(tcp)) => (TransportHeaderKind::Tcp, tcp.payload().len()),
            Some(TransportSlice::Udp(udp)) => (TransportHeaderKind::Udp, udp.payload().len()),
            other => panic!("expected TCP or UDP, found {other:?}"),
        };
        assert_eq!((found.l4, frame.len() - found.header_length), expected);
    }

    #[test]
    fn any_ipv6_extension_chain_is_parsed_within_the_frame(next: u8, payload in proptest::collection::vec(any::<u8>(), 0..300)) {
        let frame = ipv6_frame(next, &payload);
        assert!(FrameHeaders::parse(&frame).header_length <= frame.len());
    }
}
