//! Segmentation: what comes out is valid frames that reassemble to what went in.

use super::{parsed, tcp4, tcp6, transmit::pseudo, udp4};
use crate::offload::receive::classify;
use crate::offload::segment::{Error, FlagMasks, Segmenter};
use alloc::vec::Vec;
use etherparse::{SlicedPacket, TcpSlice, TransportSlice};
use i82576::descriptor::rx::status::{IPE, L4CS, L4E};
use i82576::descriptor::tx::{Context, Data, L4};
use proptest::prelude::{any, proptest};

const FIN_PSH_CWR: u8 = 0x01 | 0x08 | 0x80;

fn asked() -> Data {
    Data { segment: true, insert_ip_checksum: true, insert_l4_checksum: true, ..Data::default() }
}

fn context(ip_length: u16, l4: L4, l4_length: u8, mss: u16) -> Context {
    Context { mac_length: 14, ip_length, ipv4: ip_length == 20, l4, l4_length, mss, ..Context::default() }
}

/// A TCP packet as Linux hands it over: pseudo sum without length, IPv4 length and checksum zero.
fn tcp_packet(payload: &[u8], six: bool, flags: u8) -> (Vec<u8>, Context) {
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
    (packet, context(at as u16 - 14, L4::Tcp, 20, 1000))
}

fn cut(packet: &[u8], context: &Context) -> Vec<Vec<u8>> {
    let mut segmenter = Segmenter::new(packet, &asked(), context, FlagMasks::DEFAULT).unwrap();
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
        other => panic!("{other:?}"),
    }
}

fn assert_good(segment: &[u8]) {
    assert_eq!(classify(segment, &parsed(segment), u32::MAX, None).status & (L4CS | L4E | IPE), L4CS);
}

#[test]
fn sequence_numbers_advance_by_the_segment_size() {
    let (packet, context) = tcp_packet(&[7; 2500], false, 0);
    let segments = cut(&packet, &context);
    let sequence: Vec<u32> = segments.iter().map(|s| tcp_of(s).sequence_number()).collect();
    assert_eq!(sequence, [1, 1001, 2001]);
    let lengths: Vec<usize> = segments.iter().map(|s| tcp_of(s).payload().len()).collect();
    assert_eq!(lengths, [1000, 1000, 500]);
}

#[test]
fn fin_and_psh_are_in_the_last_segment_only_and_cwr_in_the_first() {
    let (packet, context) = tcp_packet(&[7; 2500], false, FIN_PSH_CWR);
    let flags: Vec<u8> = cut(&packet, &context).iter().map(|s| s[47] & FIN_PSH_CWR).collect();
    assert_eq!(flags, [0x80, 0, 0x09]);
}

#[test]
fn a_single_segment_keeps_all_its_flags() {
    let (packet, context) = tcp_packet(&[7; 10], false, FIN_PSH_CWR);
    let segments = cut(&packet, &context);
    assert_eq!((segments.len(), segments[0][47] & FIN_PSH_CWR), (1, FIN_PSH_CWR));
}

#[test]
fn flag_masks_are_those_of_the_registers() {
    assert_eq!(FlagMasks::from_registers(0x0f76_0ff6, 0x0f7f), FlagMasks::DEFAULT);
    let (packet, context) = tcp_packet(&[7; 2500], false, FIN_PSH_CWR);
    let all = FlagMasks { first: 0xfff, middle: 0xfff, last: 0xfff };
    let mut segmenter = Segmenter::new(&packet, &asked(), &context, all).unwrap();
    let mut buffer = [0; 2000];
    while segmenter.write_next(&mut buffer).is_some() {
        assert_eq!(buffer[47] & FIN_PSH_CWR, FIN_PSH_CWR);
    }
}

#[test]
fn the_ipv4_identification_counts_and_wraps() {
    let (packet, context) = tcp_packet(&[7; 2500], false, 0);
    let ids: Vec<[u8; 2]> = cut(&packet, &context).iter().map(|s| [s[18], s[19]]).collect();
    assert_eq!(ids, [[0xff, 0xff], [0, 0], [0, 1]]);
}

#[test]
fn udp_datagrams_get_their_own_length() {
    let mut packet = udp4(&[7; 2500]);
    let seed = pseudo(&packet, false, 17, 0);
    packet[40..42].copy_from_slice(&seed.to_be_bytes());
    for (segment, payload) in cut(&packet, &context(20, L4::Udp, 8, 1000)).iter().zip([1000, 1000, 500]) {
        assert_good(segment);
        assert_eq!(segment[38..40], (payload as u16 + 8).to_be_bytes());
    }
}

#[test]
fn checksums_that_are_not_asked_for_are_not_touched() {
    let (packet, context) = tcp_packet(&[7; 2500], false, 0);
    let mut segmenter = Segmenter::new(&packet, &Data::default(), &context, FlagMasks::DEFAULT).unwrap();
    let mut buffer = [0; 2000];
    while segmenter.write_next(&mut buffer).is_some() {
        assert_eq!((&buffer[24..26], &buffer[50..52]), (&packet[24..26], &packet[50..52]));
    }
}

#[test]
fn a_packet_without_payload_is_one_segment() {
    let (packet, context) = tcp_packet(&[], false, 0);
    assert_eq!(cut(&packet, &context).len(), 1);
}

#[test]
fn a_buffer_that_is_too_short_ends_it() {
    let (packet, context) = tcp_packet(&[7; 2500], false, 0);
    let mut segmenter = Segmenter::new(&packet, &asked(), &context, FlagMasks::DEFAULT).unwrap();
    let mut short = alloc::vec![0; segmenter.longest() - 1];
    assert_eq!(segmenter.write_next(&mut short), None);
}

#[test]
fn contexts_that_describe_no_packet_are_refused() {
    let (packet, good) = tcp_packet(&[7; 20_000], false, 0);
    let refused = |change: fn(&mut Context)| {
        let mut context = good;
        change(&mut context);
        Segmenter::new(&packet, &asked(), &context, FlagMasks::DEFAULT).unwrap_err()
    };
    assert_eq!(refused(|c| c.mss = 0), Error::SegmentSize);
    assert_eq!(refused(|c| c.mac_length = 13), Error::HeaderTooShort);
    assert_eq!(refused(|c| c.ip_length = 19), Error::HeaderTooShort);
    assert_eq!(refused(|c| c.ipv4 = false), Error::HeaderTooShort);
    assert_eq!(refused(|c| c.l4_length = 19), Error::HeaderTooShort);
    assert_eq!(refused(|c| c.l4 = L4::Sctp), Error::Transport);
    assert_eq!(refused(|c| c.l4 = L4::Reserved), Error::Transport);
    assert_eq!(refused(|c| c.mss = 9700), Error::FrameTooLong);
    let headers_only = Segmenter::new(&packet[..53], &asked(), &good, FlagMasks::DEFAULT);
    assert_eq!(headers_only.unwrap_err(), Error::HeaderTooLong);
}

proptest! {
    #[test]
    fn segments_are_valid_and_reassemble(
        payload in proptest::collection::vec(any::<u8>(), 1..20_000),
        six: bool,
        mss in 88u16..9000,
    ) {
        let (packet, mut context) = tcp_packet(&payload, six, FIN_PSH_CWR);
        context.mss = mss;
        let segments = cut(&packet, &context);
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

    #[test]
    fn arbitrary_packets_and_contexts_never_panic(
        packet: Vec<u8>,
        raw_data: [u8; 16],
        raw_context: [u8; 16],
        small: bool,
    ) {
        let (data, mut context) = super::descriptors(raw_data, raw_context);
        if small {
            let mss = context.mss % 16;
            context = Context { mac_length: 14, ip_length: 40, l4_length: 20, mss, ..context };
        }
        let segmenter = Segmenter::new(&packet, &data, &context, FlagMasks::DEFAULT);
        let Ok(mut segmenter) = segmenter else { return Ok(()) };
        let mut buffer = alloc::vec![0; segmenter.longest()];
        let expected = segmenter.count();
        let written = core::iter::from_fn(|| segmenter.write_next(&mut buffer)).count();
        assert_eq!(written, expected as usize);
    }
}
