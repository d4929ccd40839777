//! Tests segmentation: the segments are valid frames, and their payloads together are the packet's payload.

use super::frames::{pseudo, tcp4, tcp6, udp4};
use crate::segment::{SegmentationError, SegmentationState, Segmenter, TcpFlagMasks};
use crate::{FrameHeaders, OffloadRequest, verify};
use alloc::vec::Vec;
use etherparse::{SlicedPacket, TcpSlice, TransportSlice};
use plane::frame::TransportProtocol;
use proptest::prelude::{Just, Strategy, any, prop_oneof, proptest};

const FIN_PSH_CWR: u8 = 0x01 | 0x08 | 0x80;

const MSS: u16 = 1000;

fn request(ip_length: usize, l4: TransportProtocol, l4_length: usize) -> OffloadRequest {
    OffloadRequest {
        mac_length: 14,
        ip_length,
        l4_length,
        ipv4: ip_length == 20,
        l4: Some(l4),
        ip_checksum: true,
        l4_checksum: true,
        seed_has_length: false,
    }
}

/// Builds a TCP packet as Linux passes it to a driver: pseudo sum without length, IPv4 length and checksum zero.
fn tcp_packet(payload: &[u8], six: bool, flags: u8) -> (Vec<u8>, OffloadRequest) {
    let mut packet = if six { tcp6(payload) } else { tcp4(payload) };
    let at = if six { 54 } else { 34 };
    let seed = pseudo(&packet, six, 6, 0);
    packet[at + 13] |= flags;
    packet[at + 16..at + 18].copy_from_slice(&seed.to_be_bytes());
    if six {
        packet[18..20].fill(0);
    } else {
        packet[16..20].copy_from_slice(&[0, 0, 0xff, 0xff]);
        packet[24..26].fill(0);
    }
    (packet, request(at - 14, TransportProtocol::Tcp, 20))
}

fn cut(packet: &[u8], request: &OffloadRequest, mss: u16) -> Vec<Vec<u8>> {
    let mut segmenter = Segmenter::new(packet, request, mss, TcpFlagMasks::DEFAULT).unwrap();
    let mut buffer = alloc::vec![0; segmenter.longest()];
    let mut segments = Vec::new();
    while let Some(length) = segmenter.write_next(&mut buffer) {
        segments.push(buffer[..length].to_vec());
        assert!(segments.len() <= packet.len() + 1);
    }
    assert_eq!(segmenter.count(), 0);
    segments
}

fn tcp_of(segment: &[u8]) -> TcpSlice<'_> {
    match SlicedPacket::from_ethernet(segment).unwrap().transport {
        Some(TransportSlice::Tcp(tcp)) => tcp,
        other => panic!("expected a TCP segment, found {other:?}"),
    }
}

fn assert_good(segment: &[u8]) {
    let headers = FrameHeaders::parse(segment);
    assert_ne!(verify::network(segment, &headers), Some(false));
    assert_eq!(verify::transport(segment, &headers, None), Some(true));
}

#[test]
fn tcp_sequence_numbers_advance_by_the_segment_size() {
    let (packet, request) = tcp_packet(&[7; 2500], false, 0);
    let segments = cut(&packet, &request, MSS);
    let sequence: Vec<u32> = segments.iter().map(|s| tcp_of(s).sequence_number()).collect();
    assert_eq!(sequence, [1, 1001, 2001]);
    let lengths: Vec<usize> = segments.iter().map(|s| tcp_of(s).payload().len()).collect();
    assert_eq!(lengths, [1000, 1000, 500]);
}

#[test]
fn fin_and_psh_stay_in_the_last_segment_and_cwr_in_the_first() {
    let (packet, request) = tcp_packet(&[7; 2500], false, FIN_PSH_CWR);
    let flags: Vec<u8> = cut(&packet, &request, MSS).iter().map(|s| s[47] & FIN_PSH_CWR).collect();
    assert_eq!(flags, [0x80, 0, 0x09]);
}

#[test]
fn single_segment_of_a_packet_keeps_all_tcp_flags() {
    let (packet, request) = tcp_packet(&[7; 10], false, FIN_PSH_CWR);
    let segments = cut(&packet, &request, MSS);
    assert_eq!((segments.len(), segments[0][47] & FIN_PSH_CWR), (1, FIN_PSH_CWR));
}

#[test]
fn tcp_flags_of_segments_follow_the_flag_masks() {
    let (packet, request) = tcp_packet(&[7; 2500], false, FIN_PSH_CWR);
    let all = TcpFlagMasks { first: 0xfff, middle: 0xfff, last: 0xfff };
    let mut segmenter = Segmenter::new(&packet, &request, MSS, all).unwrap();
    let mut buffer = [0; 2000];
    while segmenter.write_next(&mut buffer).is_some() {
        assert_eq!(buffer[47] & FIN_PSH_CWR, FIN_PSH_CWR);
    }
}

#[test]
fn ipv4_identification_of_segments_counts_up_and_wraps() {
    let (packet, request) = tcp_packet(&[7; 2500], false, 0);
    let ids: Vec<[u8; 2]> = cut(&packet, &request, MSS).iter().map(|s| [s[18], s[19]]).collect();
    assert_eq!(ids, [[0xff, 0xff], [0, 0], [0, 1]]);
}

#[test]
fn each_datagram_of_udp_segmentation_states_its_own_length() {
    let mut packet = udp4(&[7; 2500]);
    let seed = pseudo(&packet, false, 17, 0);
    packet[40..42].copy_from_slice(&seed.to_be_bytes());
    for (segment, payload) in
        cut(&packet, &request(20, TransportProtocol::Udp, 8), MSS).iter().zip([1000, 1000, 500])
    {
        assert_good(segment);
        assert_eq!(segment[38..40], (payload as u16 + 8).to_be_bytes());
    }
}

#[test]
fn segments_copy_checksum_fields_unless_insertion_is_requested() {
    let (packet, request) = tcp_packet(&[7; 2500], false, 0);
    let request = OffloadRequest { ip_checksum: false, l4_checksum: false, ..request };
    let mut segmenter = Segmenter::new(&packet, &request, MSS, TcpFlagMasks::DEFAULT).unwrap();
    let mut buffer = [0; 2000];
    while segmenter.write_next(&mut buffer).is_some() {
        assert_eq!((&buffer[24..26], &buffer[50..52]), (&packet[24..26], &packet[50..52]));
    }
}

#[test]
fn packet_without_payload_is_one_segment() {
    let (packet, request) = tcp_packet(&[], false, 0);
    assert_eq!(cut(&packet, &request, MSS).len(), 1);
}

#[test]
fn buffer_shorter_than_a_segment_gets_no_segment() {
    let (packet, request) = tcp_packet(&[7; 2500], false, 0);
    let mut segmenter = Segmenter::new(&packet, &request, MSS, TcpFlagMasks::DEFAULT).unwrap();
    let mut short = alloc::vec![0; segmenter.longest() - 1];
    assert_eq!(segmenter.write_next(&mut short), None);
}

#[test]
fn segmentation_request_that_does_not_fit_its_packet_is_refused() {
    let (packet, good) = tcp_packet(&[7; 20_000], false, 0);
    let refused = |change: fn(&mut OffloadRequest), mss| {
        let mut request = good;
        change(&mut request);
        Segmenter::new(&packet, &request, mss, TcpFlagMasks::DEFAULT).unwrap_err()
    };
    assert_eq!(refused(|_| {}, 0), SegmentationError::SegmentSize);
    assert_eq!(refused(|r| r.mac_length = 13, MSS), SegmentationError::HeaderTooShort);
    assert_eq!(refused(|r| r.ip_length = 19, MSS), SegmentationError::HeaderTooShort);
    assert_eq!(refused(|r| r.ipv4 = false, MSS), SegmentationError::HeaderTooShort);
    assert_eq!(refused(|r| r.l4_length = 19, MSS), SegmentationError::HeaderTooShort);
    assert_eq!(refused(|r| r.l4 = Some(TransportProtocol::Sctp), MSS), SegmentationError::Transport);
    assert_eq!(refused(|r| r.l4 = None, MSS), SegmentationError::Transport);
    let headers_only = Segmenter::new(&packet[..53], &good, MSS, TcpFlagMasks::DEFAULT);
    assert_eq!(headers_only.unwrap_err(), SegmentationError::HeaderTooLong);
}

#[test]
fn computed_longest_segment_length_matches_the_segments() {
    let (packet, request) = tcp_packet(&[7; 20_000], false, 0);
    let longest = |mss| Segmenter::new(&packet, &request, mss, TcpFlagMasks::DEFAULT).unwrap().longest();
    assert_eq!((longest(9_000), longest(u16::MAX)), (9_054, packet.len()));
}

fn any_request() -> impl Strategy<Value = OffloadRequest> {
    let length = prop_oneof![3 => 0..100_usize, 1 => any::<u16>().prop_map(usize::from)];
    let l4 = prop_oneof![Just(None), Just(Some(TransportProtocol::Tcp)), Just(Some(TransportProtocol::Udp))];
    (length.clone(), length.clone(), length, any::<(bool, bool, bool)>(), l4).prop_map(
        |(mac_length, ip_length, l4_length, (ipv4, ip_checksum, l4_checksum), l4)| OffloadRequest {
            mac_length,
            ip_length,
            l4_length,
            ipv4,
            l4,
            ip_checksum,
            l4_checksum,
            seed_has_length: false,
        },
    )
}

proptest! {
    #[test]
    fn segments_are_valid_packets_and_reassemble(
        payload in proptest::collection::vec(any::<u8>(), 1..20_000),
        six: bool,
        mss in 88u16..9000,
    ) {
        let (packet, request) = tcp_packet(&payload, six, FIN_PSH_CWR);
        let segments = cut(&packet, &request, mss);
        assert_eq!(segments.len(), payload.len().div_ceil(mss.into()));
        let mut reassembled = Vec::new();
        for segment in &segments {
            assert_good(segment);
            let tcp = tcp_of(segment);
            assert_eq!(tcp.sequence_number(), 1 + reassembled.len() as u32);
            reassembled.extend_from_slice(tcp.payload());
        }
        assert_eq!(reassembled, payload);
    }

    /// Compares segments that are made inside the packet's buffer with segments that are copied to another buffer. The
    /// test pauses between some segments, and resumes with the packet as changed so far.
    #[test]
    fn segments_made_inside_the_packet_equal_copied_segments(
        packet in proptest::collection::vec(any::<u8>(), 54..3000),
        request in any_request(),
        mss in prop_oneof![1..400_u16, 54..80_u16],
        lead in 0..8usize,
        stops in any::<u64>(),
    ) {
        let Ok(mut apart) = Segmenter::new(&packet, &request, mss, TcpFlagMasks::DEFAULT) else { return Ok(()) };
        let mut buffer = alloc::vec![0; apart.longest()];
        let mut within = [&alloc::vec![0; lead][..], &packet].concat();
        let mut place = alloc::vec![0; lead + apart.longest()];
        let mut cut = apart.clone().cut();
        for sent in 0.. {
            let expected = apart.write_next(&mut buffer).map(|length| (&buffer[..length], apart.sealed()));
            if stops >> (sent % 64) & 1 == 1 {
                let again = Segmenter::new(&within[lead..], &request, mss, TcpFlagMasks::DEFAULT).unwrap();
                cut = again.skip(sent).cut();
            }
            let made = cut.next_within(&mut within, &mut place, lead);
            let made = made.map(|(place, length)| place[lead..][..length].to_vec());
            assert_eq!(made.as_deref().map(|segment| (segment, cut.sealed())), expected);
            if made.is_none() {
                break;
            }
        }
    }

    #[test]
    fn segmentation_of_arbitrary_requests_never_panics(packet: Vec<u8>, request in any_request(), mss in 0..400_u16) {
        let Ok(mut segmenter) = Segmenter::new(&packet, &request, mss, TcpFlagMasks::DEFAULT) else { return Ok(()) };
        let mut buffer = alloc::vec![0; segmenter.longest()];
        let expected = segmenter.count();
        let written = core::iter::from_fn(|| segmenter.write_next(&mut buffer)).count();
        assert_eq!(written, expected as usize);
    }
}

#[test]
fn segments_cover_any_payload_once_in_order() {
    let (packet, request) = tcp_packet(&[], false, 0);
    for (payload, mss) in (0..=700_usize).flat_map(|payload| (1..=700).map(move |mss| (payload, mss))) {
        let Ok(cut) = SegmentationState::new(&packet, payload, &request, mss, TcpFlagMasks::DEFAULT) else {
            panic!("{payload} bytes are refused at an MSS of {mss}");
        };
        let mut end = packet.len();
        for ahead in 0..cut.count() {
            let chunk = cut.chunk(ahead).unwrap();
            assert_eq!(chunk.start, end, "{payload} bytes, MSS {mss}");
            assert!(packet.len() + chunk.len() <= cut.longest() && chunk.len() <= usize::from(mss));
            assert!(payload == 0 || !chunk.is_empty());
            end = chunk.end;
        }
        assert_eq!((end, cut.chunk(cut.count())), (packet.len() + payload, None));
    }
}
