//! Tests the contents of receive descriptors: VLAN tags, checksums and hashes. The header parser and the hash have
//! tests beside their code (`offload`).

use super::{at, bench, frame, srrctl};
use crate::common::{CardFixture, POOL, SIZE, mac, plain, tagged, tcp, udp};
use i82576::PoolIndex;
use i82576::bits::{ctrl, dctl, mrqc, psrtype, vmolr};
use i82576::descriptor::rx::{packet_type, rss_type, status};
use i82576::register::{self as r, rx, vf};
use pcie::Function::Vf;

#[test]
fn vmolr_strvlan_moves_the_vlan_tag_to_the_descriptor() {
    let mut bench = bench();
    let untagged = frame(100);
    bench.wire_sends(&tagged(0x6064, &untagged));
    let received = bench.vf(0).expect_frame();
    assert_eq!(received.bytes, tagged(0x6064, &untagged));
    assert_eq!((received.last().status & status::VP, received.last().vlan_tag), (0, 0));
    bench.pf().write(r::vmolr(PoolIndex::FIRST), POOL | vmolr::STRVLAN);
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
fn ctrl_vme_strips_no_vlan_tags_with_pools() {
    let mut bench = bench();
    bench.pf().set(r::CTRL, ctrl::VME);
    bench.wire_sends(&tagged(100, &frame(100)));
    assert_eq!(bench.vf(0).expect_frame().bytes.len(), 104);
}

#[test]
fn stripped_and_split_frame_uses_several_buffers() {
    let mut bench = bench();
    bench.vf(0).write(at(rx::SRRCTL), srrctl(1, 128, 2));
    bench.vf(0).write(vf::PSRTYPE, psrtype::IPV4_TCP);
    let segment = tcp(mac(0), mac(9), &[7; 3000]);
    for (options, header, bytes) in
        [(POOL, 58, tagged(5, &segment)), (POOL | vmolr::STRVLAN, 54, segment.clone())]
    {
        bench.pf().write(r::vmolr(PoolIndex::FIRST), options);
        bench.wire_sends(&tagged(5, &segment));
        let received = bench.vf(0).expect_frame();
        assert_eq!(received.parts[0].header_length, header);
        assert_eq!(received.bytes, bytes);
        assert_eq!(received.parts.len(), 3);
        assert!(received.parts[..2].iter().all(|part| part.vlan_tag == 0));
    }
}

#[test]
fn rxcsum_register_selects_the_verified_checksums() {
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
fn rss_hash_is_reported_and_selects_the_pools_queue() {
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
    bench.pf().write(r::vmolr(PoolIndex::FIRST), POOL | vmolr::RSSE);
    bench.wire_sends(&segment);
    bench.vf(0).expect_no_frame();
    assert_eq!(bench.nic.counters()[0].rx_disabled, 1, "queue 8 is not set up");
}

#[test]
fn packet_checksum_and_ip_id_replace_the_hash_without_pcsd() {
    let mut bench = bench();
    bench.pf().write(r::MRQC, mrqc::VMDQ_RSS | 1 << 16);
    bench.pf().write(r::rssrk(0), 0x0102_0304);
    bench.pf().write(r::RXCSUM, 14);
    let mut segment = tcp(mac(0), mac(9), &[7; 100]);
    segment[18..20].copy_from_slice(&[0xab, 0xcd]);
    bench.wire_sends(&segment);
    let received = bench.vf(0).expect_frame();
    let sum =
        segment[14..].chunks(2).fold(0, |sum: u32, word| sum + u32::from(word[0]) * 256 + u32::from(word[1]));
    let sum = (sum & 0xffff) + (sum >> 16);
    let sum = (sum & 0xffff) + (sum >> 16);
    assert_eq!((received.last().rss_type, received.last().hash), (0, sum << 16 | 0xabcd));
}

#[test]
fn second_queue_of_a_vf_receives_by_rss_hash() {
    let mut bench = bench();
    let second = at(vf::QUEUE_STRIDE);
    let ring = crate::common::BASE + 0x800;
    let posted = i82576::descriptor::rx::PostedRxDescriptor {
        packet: crate::common::BASE + SIZE as u64 - 4096,
        header: 0,
    };
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
    bench.pf().write(r::vmolr(PoolIndex::FIRST), POOL | vmolr::RSSE);
    bench.vf(0).write(vf::VTIVAR, 0x0080_0000);
    bench.wire_sends(&tcp(mac(0), mac(9), &[7; 100]));
    assert_eq!(bench.vf(0).read(second + rx::RDH), 1);
    bench.expect_msix(Vf(0), 0);
}

/// Tests the descriptor bit PIF, which tells software to compare the address itself.
#[test]
fn frame_without_an_exact_address_match_is_marked_inexact() {
    let mut bench = CardFixture::new(3);
    bench.vf(0).start();
    bench.pf().write(r::vmolr(PoolIndex::FIRST), POOL | vmolr::MPME);
    let group = i82576::MacAddress([0x01, 0, 0x5e, 0, 0, 0xfb]);
    for (to, mark) in [(mac(0), 0), (i82576::MacAddress::BROADCAST, 0), (group, status::PIF)] {
        bench.wire_sends(&plain(to, mac(9), 60));
        assert_eq!(bench.vf(0).expect_frame().last().status & status::PIF, mark, "{to}");
    }
}
