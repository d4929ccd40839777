//! Tests checksums and segmentation by the card against an independent parser.

use crate::support::DrivenCardFixture;
use backplane::vf_mac;
use driver::vf::{ChecksumStatus, TxError, TxOffload};
use etherparse::{Ipv4HeaderSlice, NetSlice, PacketBuilder, SlicedPacket, TransportSlice};

fn tcp_ipv4(payload: &[u8]) -> Vec<u8> {
    let builder = PacketBuilder::ethernet2(vf_mac(0).0, vf_mac(1).0)
        .ipv4([10, 0, 0, 1], [10, 0, 0, 2], 64)
        .tcp(1000, 2000, 0xffff_ff00, 8192)
        .psh()
        .fin()
        .ack(77);
    let mut frame = Vec::new();
    builder.write(&mut frame, payload).unwrap();
    frame
}

fn tcp_ipv6(payload: &[u8]) -> Vec<u8> {
    let builder = PacketBuilder::ethernet2(vf_mac(0).0, vf_mac(1).0)
        .ipv6([0xfd; 16], [0xfe; 16], 64)
        .tcp(1000, 2000, 5, 8192);
    let mut frame = Vec::new();
    builder.write(&mut frame, payload).unwrap();
    frame
}

fn udp_ipv4(payload: &[u8]) -> Vec<u8> {
    let builder = PacketBuilder::ethernet2(vf_mac(0).0, vf_mac(1).0)
        .ipv4([10, 0, 0, 1], [10, 0, 0, 2], 64)
        .udp(1000, 2000);
    let mut frame = Vec::new();
    builder.write(&mut frame, payload).unwrap();
    frame
}

/// Asserts that the frame has the checksums that the parser computes.
fn assert_checksums(frame: &[u8]) {
    let sliced = SlicedPacket::from_ethernet(frame).unwrap();
    let Some(TransportSlice::Tcp(tcp)) = &sliced.transport else { panic!("not TCP") };
    let wanted = match sliced.net.as_ref().unwrap() {
        NetSlice::Ipv4(ip) => {
            let ip = Ipv4HeaderSlice::from_slice(ip.header().slice()).unwrap().to_header();
            assert_eq!(ip.calc_header_checksum(), ip.header_checksum);
            tcp.to_header().calc_checksum_ipv4(&ip, tcp.payload()).unwrap()
        }
        NetSlice::Ipv6(ip) => {
            tcp.to_header().calc_checksum_ipv6(&ip.header().to_header(), tcp.payload()).unwrap()
        }
        _ => panic!("not IP"),
    };
    assert_eq!(tcp.checksum(), wanted);
}

const BOTH: TxOffload = TxOffload { ip_checksum: true, l4_checksum: true, tso: None, vlan: None };

#[test]
fn card_completes_checksums_seeded_with_the_pseudo_header() {
    let mut bench = DrivenCardFixture::new(2);
    for (complete, checksum_at) in
        [(tcp_ipv4(b"payload"), 50), (udp_ipv4(b"odd size!"), 40), (tcp_ipv6(b"six"), 70)]
    {
        let mut frame = complete.clone();
        frame[checksum_at..checksum_at + 2].fill(0xee);
        bench.send_with(0, &frame, &BOTH);
        let (got, received) = bench.receive(1).unwrap();
        assert_eq!(got[..complete.len()], complete);
        assert_eq!(received.l4_checksum, ChecksumStatus::Good);
    }
}

#[test]
fn received_frames_with_wrong_checksums_are_not_dropped() {
    let mut bench = DrivenCardFixture::new(2);
    let mut frame = tcp_ipv4(b"a payload that is long enough");
    frame[50] ^= 1;
    bench.send(0, &frame);
    let (_, received) = bench.receive(1).unwrap();
    assert_eq!((received.ip_checksum, received.l4_checksum), (ChecksumStatus::Good, ChecksumStatus::Bad));
    frame[50] ^= 1;
    frame[24] ^= 1;
    bench.send(0, &frame);
    let (_, received) = bench.receive(1).unwrap();
    assert_eq!(received.ip_checksum, ChecksumStatus::Bad);
    assert_eq!(bench.vfs[1].rx_counters().bad_checksums, 2);
}

#[test]
fn tcp_segmentation_makes_segments_that_a_parser_accepts() {
    for (make, headers) in [(tcp_ipv4 as fn(&[u8]) -> Vec<u8>, 54), (tcp_ipv6, 74)] {
        let mut bench = DrivenCardFixture::new(2);
        let payload: Vec<u8> = (0..20_000u32).map(|i| (i % 251) as u8).collect();
        let big = make(&payload);
        bench.send_with(0, &big, &TxOffload { tso: Some(1400), ..BOTH });
        let frames = bench.receive_all(1);
        assert_eq!(frames.len(), 15);
        let first_sequence = u32::from_be_bytes(big[headers - 16..headers - 12].try_into().unwrap());
        let mut joined = Vec::new();
        for (i, frame) in frames.iter().enumerate() {
            assert_checksums(frame);
            let sliced = SlicedPacket::from_ethernet(frame).unwrap();
            let Some(TransportSlice::Tcp(tcp)) = sliced.transport else { panic!("not TCP") };
            let last = i == frames.len() - 1;
            assert_eq!(tcp.sequence_number(), first_sequence.wrapping_add(joined.len() as u32));
            assert_eq!((tcp.fin(), tcp.psh()), (last && headers == 54, last && headers == 54));
            if let Some(NetSlice::Ipv4(ip)) = &sliced.net {
                let id = u16::from_be_bytes([big[18], big[19]]);
                assert_eq!(ip.header().identification(), id.wrapping_add(i as u16));
            }
            joined.extend_from_slice(tcp.payload());
        }
        assert!(joined == payload);
    }
}

#[test]
fn ip_packet_of_the_maximum_size_is_segmented() {
    let mut bench = DrivenCardFixture::new(2);
    let payload = vec![0x5a; 65_535 - 40];
    let big = tcp_ipv4(&payload);
    bench.send_with(0, &big, &TxOffload { tso: Some(1460), ..BOTH });
    let frames = bench.receive_all(1);
    assert_eq!(frames.len(), payload.len().div_ceil(1460));
    assert_eq!(frames.iter().map(|f| f.len() - 54).sum::<usize>(), payload.len());
    frames.iter().for_each(|frame| assert_checksums(frame));
}

#[test]
fn segmentation_request_without_frame_headers_is_refused() {
    let mut bench = DrivenCardFixture::new(2);
    let mut frame = udp_ipv4(b"x");
    let tso = TxOffload { tso: Some(1000), ..BOTH };
    let refused = bench.on(0, |vf, hal| vf.transmit(hal, &frame, &tso));
    assert_eq!(refused, Err(TxError::Headers));
    frame[12] = 0x99;
    let refused = bench.on(0, |vf, hal| vf.transmit(hal, &frame, &BOTH));
    assert_eq!(refused, Err(TxError::Headers));
}
