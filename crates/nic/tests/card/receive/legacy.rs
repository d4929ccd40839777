//! Tests receive queues of descriptor type 0 (legacy), which small drivers such as iPXE's use: status, errors, length
//! and tag are in the second half of the descriptor.

use super::{at, bench, frame};
use crate::common::{BASE, CardFixture, POOL, buffer, mac, tagged, tcp};
use i82576::PoolIndex;
use i82576::bits::{rctl, rxcsum, vmolr};
use i82576::descriptor::legacy::LegacyRxWriteBack;
use i82576::descriptor::rx::status;
use i82576::register::{self as r, rx};

fn legacy() -> CardFixture {
    let mut bench = bench();
    bench.vf(0).write(at(rx::SRRCTL), 0);
    bench
}

/// Reads receive descriptor `i` of VF 0 from memory, in the legacy format.
fn descriptor(bench: &mut CardFixture, i: u32) -> LegacyRxWriteBack {
    let raw = bench.vf(0).peek(BASE + 16 * u64::from(i), 16);
    LegacyRxWriteBack::parse(&raw.try_into().unwrap()).expect("the descriptor is written back")
}

#[test]
fn legacy_receive_write_back_keeps_the_buffer_address() {
    let mut bench = legacy();
    bench.wire_sends(&frame(60));
    let back = descriptor(&mut bench, 0);
    assert_eq!((back.address, back.length, back.status), (buffer(0), 60, 1 | status::EOP));
    assert_eq!(bench.vf(0).expect_frame().bytes, frame(60));
}

#[test]
fn legacy_received_frame_has_eop_in_its_last_descriptor() {
    let mut bench = legacy();
    bench.wire_sends(&frame(5000));
    let backs = [0, 1, 2].map(|i| descriptor(&mut bench, i));
    assert_eq!(backs.map(|back| back.length), [2048, 2048, 904]);
    assert_eq!(backs.map(|back| back.status), [1, 1, 1 | status::EOP]);
    assert_eq!(backs.map(|back| back.address), [0, 1, 2].map(buffer));
}

#[test]
fn legacy_receive_descriptor_reports_the_stripped_vlan_tag() {
    let mut bench = legacy();
    bench.pf().write(r::vmolr(PoolIndex::FIRST), POOL | vmolr::STRVLAN);
    bench.wire_sends(&tagged(0x6064, &frame(60)));
    let back = descriptor(&mut bench, 0);
    assert_eq!((back.vlan_tag, back.status), (0x6064, 1 | status::EOP | status::VP));
}

#[test]
fn legacy_receive_reports_checksum_status_and_errors() {
    let mut bench = legacy();
    let good = tcp(mac(0), mac(9), &[7; 100]);
    let mut bad = good.clone();
    bad[60] ^= 1;
    bad[14 + 8] ^= 1;
    bench.wire_sends(&good);
    let sums = status::L4CS | status::IPCS;
    assert_eq!(descriptor(&mut bench, 0).status, 1 | status::EOP | sums);
    bench.wire_sends(&bad);
    assert_eq!(descriptor(&mut bench, 1).status, 1 | status::EOP | sums | status::L4E | status::IPE);
}

#[test]
fn legacy_packet_checksum_starts_at_the_configured_offset() {
    let mut bench = legacy();
    let mut bytes = frame(64);
    bytes[14..].fill(0);
    bytes[20..24].copy_from_slice(&[0x12, 0x34, 0xff, 0xff]);
    bench.pf().write(r::RXCSUM, 14);
    bench.wire_sends(&bytes);
    assert_eq!(descriptor(&mut bench, 0).checksum, 0x1234);
    bench.pf().write(r::RXCSUM, 22);
    bench.wire_sends(&bytes);
    assert_eq!(descriptor(&mut bench, 1).checksum, 0xffff);
    bench.pf().write(r::RXCSUM, 14 | rxcsum::PCSD);
    bench.wire_sends(&bytes);
    assert_eq!(descriptor(&mut bench, 2).checksum, 0);
}

#[test]
fn legacy_receive_buffer_size_comes_from_rctl() {
    let mut bench = legacy();
    bench.pf().set(r::RCTL, 2 << 16);
    bench.wire_sends(&frame(600));
    assert_eq!([0, 1].map(|i| descriptor(&mut bench, i).length), [512, 88]);
    bench.pf().set(r::RCTL, rctl::BSEX);
    bench.wire_sends(&frame(600));
    assert_eq!(descriptor(&mut bench, 2).length, 600);
}

#[test]
fn unmapped_legacy_receive_buffer_sets_error_rxe() {
    let mut bench = legacy();
    bench.vf(0).poke(BASE, &[0; 16]);
    bench.wire_sends(&frame(60));
    assert_eq!(descriptor(&mut bench, 0).status, 1 | status::EOP | status::RXE);
}
