//! What receive descriptors say of a frame: split headers, VLAN tags, checksums and hashes. Left out: what the
//! header parser and the hash find, which is tested beside them (`offload`).

use super::{at, bench, frame, srrctl};
use crate::common::{POOL, SIZE, mac, tagged, tcp, udp};
use i82576::bits::{ctrl, dctl, mrqc, vmolr};
use i82576::descriptor::rx::{packet_type, rss_type, status};
use i82576::register::{self as r, rx, vf};
use pcie::Function::Vf;

#[test]
fn headers_that_are_understood_are_split_off() {
    let mut bench = bench();
    bench.vf(0).write(at(rx::SRRCTL), srrctl(2, 128, 2));
    let segment = tcp(mac(0), mac(9), &[7; 3000]);
    bench.wire_sends(&segment);
    let received = bench.vf(0).expect_frame();
    assert_eq!(received.bytes, segment);
    assert_eq!((received.parts[0].split, received.parts[0].header_length), (true, 54));
    let lengths: Vec<_> = received.parts.iter().map(|part| part.length).collect();
    assert_eq!(lengths, [2048, 952], "the packet buffers begin with the payload");
    assert!(!received.parts[1].split);
}

#[test]
fn headers_longer_than_their_buffer_are_not_split_off() {
    let mut bench = bench();
    bench.vf(0).write(at(rx::SRRCTL), srrctl(2, 64, 2));
    let mut segment = tagged(5, &tagged(6, &tcp(mac(0), mac(9), &[7; 100])));
    segment.truncate(160);
    bench.pf().write(r::vmolr(0), POOL);
    bench.wire_sends(&segment);
    let received = bench.vf(0).expect_frame();
    assert!(received.last().split);
    bench.vf(0).write(at(rx::SRRCTL), srrctl(2, 0, 2));
    bench.wire_sends(&segment);
    assert!(!bench.vf(0).expect_frame().last().split);
}

#[test]
fn with_split_always_the_header_buffer_comes_first_whatever_the_frame_is() {
    let mut bench = bench();
    bench.vf(0).write(at(rx::SRRCTL), srrctl(2, 64, 5));
    bench.world.bus.log.clear();
    bench.wire_sends(&frame(60));
    let received = bench.vf(0).expect_frame();
    assert_eq!(received.bytes, frame(60));
    let last = received.last();
    assert_eq!((last.split, last.length), (true, 60 - last.header_length));
    bench.wire_sends(&frame(300));
    let received = bench.vf(0).expect_frame();
    assert!(received.last().split);
    assert_eq!(received.bytes, frame(300));
    let segment = tcp(mac(0), mac(9), &[7; 300]);
    bench.wire_sends(&segment);
    let received = bench.vf(0).expect_frame();
    assert_eq!((received.last().header_length, received.last().length), (54, 300));
    assert_eq!(received.bytes, segment);
}

#[test]
fn a_header_length_never_outgrows_its_field() {
    let mut bench = bench();
    // IPv6 with a hop-by-hop header of 131 * 8 bytes: 1102 bytes of headers, where HDRLEN ends at 1023.
    let mut bytes = frame(3000);
    bytes[12..22].copy_from_slice(&[0x86, 0xdd, 0x60, 0, 0, 0, 0x0b, 0x82, 0, 64]);
    bytes[54..56].copy_from_slice(&[59, 130]);
    for (kind, split) in [(2, None), (5, Some(1023))] {
        bench.vf(0).write(at(rx::SRRCTL), srrctl(2, 63 * 64, kind));
        bench.wire_sends(&bytes);
        let received = bench.vf(0).expect_frame();
        assert_eq!(received.bytes, bytes);
        let first = received.parts[0];
        assert_eq!(first.split.then_some(first.header_length), split);
    }
}

#[test]
fn a_tag_is_left_in_the_frame_or_moved_to_the_descriptor() {
    let mut bench = bench();
    let untagged = frame(100);
    bench.wire_sends(&tagged(0x6064, &untagged));
    let received = bench.vf(0).expect_frame();
    assert_eq!(received.bytes, tagged(0x6064, &untagged));
    assert_eq!((received.last().status & status::VP, received.last().vlan_tag), (0, 0));
    bench.pf().write(r::vmolr(0), POOL | vmolr::STRVLAN);
    bench.wire_sends(&tagged(0x6064, &untagged));
    let received = bench.vf(0).expect_frame();
    assert_eq!(received.bytes, untagged);
    assert_ne!(received.last().status & status::VP, 0);
    assert_eq!(received.last().vlan_tag, 0x6064);
    bench.wire_sends(&untagged);
    let received = bench.vf(0).expect_frame();
    assert_eq!((received.last().status & status::VP, received.bytes), (0, untagged));
}

#[test]
fn ctrl_vme_does_not_strip_while_pools_are_in_use() {
    let mut bench = bench();
    bench.pf().set(r::CTRL, ctrl::VME);
    bench.wire_sends(&tagged(100, &frame(100)));
    assert_eq!(bench.vf(0).expect_frame().bytes.len(), 104);
}

#[test]
fn tag_and_split_in_several_buffers_all_at_once() {
    let mut bench = bench();
    bench.vf(0).write(at(rx::SRRCTL), srrctl(1, 128, 2));
    let segment = tcp(mac(0), mac(9), &[7; 3000]);
    for (options, header, bytes) in
        [(POOL, 58, tagged(5, &segment)), (POOL | vmolr::STRVLAN, 54, segment.clone())]
    {
        bench.pf().write(r::vmolr(0), options);
        bench.wire_sends(&tagged(5, &segment));
        let received = bench.vf(0).expect_frame();
        assert_eq!(received.parts[0].header_length, header);
        assert_eq!(received.bytes, bytes);
        assert_eq!(received.parts.len(), 3);
        assert!(received.parts[..2].iter().all(|part| part.vlan_tag == 0));
    }
}

#[test]
fn checksums_are_looked_at_as_rxcsum_asks() {
    let mut bench = bench();
    let good = tcp(mac(0), mac(9), &[7; 100]);
    let mut bad = good.clone();
    bad[60] ^= 1;
    let checks = status::L4CS | status::IPCS | status::UDPCS | status::L4E | status::IPE;
    let mut check = |frame: &[u8]| {
        bench.wire_sends(frame);
        let received = bench.vf(0).expect_frame();
        (received.last().packet_type, received.last().status & checks)
    };
    let kind = packet_type::IPV4 | packet_type::TCP;
    assert_eq!(check(&good), (kind, status::L4CS | status::IPCS));
    assert_eq!(check(&bad), (kind, status::L4CS | status::IPCS | status::L4E));
    bad[14 + 8] ^= 1;
    assert_eq!(check(&bad), (kind, status::L4CS | status::IPCS | status::L4E | status::IPE));
    let datagram = udp(mac(0), mac(9), &[1, 2, 3]);
    assert_eq!(check(&datagram).1, status::L4CS | status::IPCS | status::UDPCS);
    bench.pf().write(r::RXCSUM, 0);
    bench.wire_sends(&bad);
    assert_eq!(bench.vf(0).expect_frame().last().status & checks, 0);
}

#[test]
fn the_hash_is_in_the_descriptor_and_chooses_between_a_pools_queues() {
    let mut bench = bench();
    bench.pf().write(r::MRQC, mrqc::VMDQ_RSS | 1 << 16);
    bench.pf().set(r::RXCSUM, i82576::bits::rxcsum::PCSD);
    bench.pf().write(r::rssrk(0), 0x0102_0304);
    (0..32).for_each(|word| bench.pf().write(r::reta(word), 0x0101_0101));
    let segment = tcp(mac(0), mac(9), &[7; 100]);
    bench.wire_sends(&segment);
    let first = bench.vf(0).expect_frame();
    assert_eq!(first.last().rss_type, rss_type::TCP_IPV4);
    assert_ne!(first.last().hash, 0);
    bench.wire_sends(&frame(60));
    let plain = bench.vf(0).expect_frame();
    assert_eq!((plain.last().rss_type, plain.last().hash), (rss_type::NONE, 0));
    bench.pf().write(r::vmolr(0), POOL | vmolr::RSSE);
    bench.wire_sends(&segment);
    bench.vf(0).expect_no_frame();
    assert_eq!(bench.nic.counters()[0].rx_disabled, 1, "queue 8 is not set up");
}

#[test]
fn without_pcsd_the_hash_is_not_reported() {
    let mut bench = bench();
    bench.pf().write(r::MRQC, mrqc::VMDQ_RSS | 1 << 16);
    bench.pf().write(r::rssrk(0), 0x0102_0304);
    bench.wire_sends(&tcp(mac(0), mac(9), &[7; 100]));
    let received = bench.vf(0).expect_frame();
    assert_eq!((received.last().rss_type, received.last().hash), (0, 0));
}

#[test]
fn the_second_queue_of_a_vf_receives_by_hash() {
    let mut bench = bench();
    let second = at(vf::QUEUE_STRIDE);
    let ring = crate::common::BASE + 0x800;
    let posted =
        i82576::descriptor::rx::Posted { packet: crate::common::BASE + SIZE as u64 - 4096, header: 0 };
    bench.vf(0).poke(ring, &posted.emit());
    for (register, value) in [
        (rx::RDBAL, ring as u32),
        (rx::RDLEN, 128),
        (rx::SRRCTL, srrctl(2, 0, 1)),
        (rx::RXDCTL, dctl::ENABLE),
        (rx::RDT, 1),
    ] {
        bench.vf(0).write(second + register, value);
    }
    bench.pf().write(r::MRQC, mrqc::VMDQ_RSS | 1 << 16);
    (0..32).for_each(|word| bench.pf().write(r::reta(word), 0x0101_0101));
    bench.pf().write(r::vmolr(0), POOL | vmolr::RSSE);
    bench.vf(0).write(vf::VTIVAR, 0x0080_0000);
    bench.wire_sends(&tcp(mac(0), mac(9), &[7; 100]));
    assert_eq!(bench.vf(0).read(second + rx::RDH), 1);
    bench.expect_msix(Vf(0), 0);
}
