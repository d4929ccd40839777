//! Tests the time stamps of packets (IEEE 1588), as igb's `hwtstamp` sets them up: the packets that are stamped, the
//! time of a stamp, and how long it stays. `board` tests the clock.

use crate::common::{CardFixture, PORT, TestPciFunction, mac, packet, plain};
use etherparse::PacketBuilder;
use i82576::bits::{etqf, ftqf, imir, imirext, rctl, tctl, tsync};
use i82576::descriptor::rx::status;
use i82576::descriptor::tx::AdvancedDataDescriptor;
use i82576::register as r;

const PTP: u32 = 0x88f7;
/// Message type Sync of precision time version 2 (IEEE 1588-2008).
const SYNC: u8 = 0;
/// Message type Delay_Req of precision time version 2 (IEEE 1588-2008).
const DELAY_REQUEST: u8 = 1;
/// Message type Announce of precision time version 2 (IEEE 1588-2008).
const ANNOUNCE: u8 = 11;

/// Returns a card that stamps packets of a kind (TSYNCRXCTL, TSYNCRXCFG). Its clock counts nanoseconds, and igb's two
/// filters are set.
fn bench(kind: u32, which: u32) -> CardFixture {
    let mut bench = CardFixture::bare();
    bench.pf().write(r::RCTL, rctl::EN | rctl::BAM | rctl::SECRC);
    bench.pf().write(r::TCTL, tctl::EN | tctl::PSP);
    bench.pf().write(r::TIMINCA, 1 << 24 | 16);
    bench.pf().write(r::etqf(3), PTP | etqf::ENABLE | etqf::TIMED);
    let compared = ftqf::ANY_PROTOCOL | ftqf::ANY_SOURCE_PORT;
    bench.pf().write(r::ftqf(3), 17 | ftqf::ANY_POOL | ftqf::TIMED | (0xf000_0000 & !compared));
    bench.pf().write(r::imir(3), u32::from(319u16.to_be()));
    bench.pf().write(r::imirext(3), imirext::ANY_SIZE | imirext::ANY_FLAGS);
    bench.pf().write(r::spqf(3), u32::from(319u16.to_be()));
    bench.pf().write(r::TSYNCRXCTL, tsync::ENABLE | kind << tsync::KIND_SHIFT);
    bench.pf().write(r::TSYNCRXCFG, which);
    bench.pf().write(r::TSYNCTXCTL, tsync::ENABLE);
    bench.pf().start();
    bench
}

/// Returns a precision time message of version 2, with a message type.
fn version_2(kind: u8) -> [u8; 44] {
    let mut message = [0; 44];
    (message[0], message[1]) = (kind, 2);
    message
}

/// Returns a precision time message of version 1, with a control field.
fn version_1(control: u8) -> [u8; 44] {
    let mut message = [0; 44];
    (message[1], message[32]) = (1, control);
    message
}

fn over_ethernet(message: &[u8]) -> Vec<u8> {
    [&PORT.0, &mac(9).0, [0x88, 0xf7].as_slice(), message].concat()
}

fn over_udp(port: u16, message: &[u8]) -> Vec<u8> {
    let builder = PacketBuilder::ethernet2(mac(9).0, PORT.0).ipv4([10, 0, 0, 1], [10, 0, 0, 2], 64);
    let mut frame = Vec::new();
    builder.udp(port, port).write(&mut frame, message).unwrap();
    frame
}

/// Reads the time stamp in `low` and the register behind it, which frees the stamp. Returns `None` if `control` reports
/// no stamp.
fn stamp(bench: &mut CardFixture, control: u32, low: u32) -> Option<u64> {
    let valid = bench.pf().read(control) & tsync::VALID != 0;
    let value = u64::from(bench.pf().read(low)) | u64::from(bench.pf().read(low + 4)) << 32;
    assert_eq!(bench.pf().read(control) & tsync::VALID, 0);
    valid.then_some(value)
}

/// Delivers a frame from the wire. Returns true if its arrival is stamped, which descriptor and registers must agree
/// on.
fn is_stamped(bench: &mut CardFixture, frame: &[u8]) -> bool {
    bench.wire_sends(frame);
    let told = bench.pf().expect_frame().last().status & status::TS != 0;
    assert_eq!(stamp(bench, r::TSYNCRXCTL, r::RXSTMPL).is_some(), told);
    told
}

#[test]
fn ptp_time_stamp_register_holds_the_packets_arrival_time() {
    let mut bench = bench(tsync::EVENT_V2, 0);
    bench.wait_us(5_000_000);
    bench.wire_sends(&over_ethernet(&version_2(SYNC)));
    bench.wait_us(3);
    let received = bench.pf().expect_frame();
    assert_eq!(received.last().status & status::TS, status::TS);
    assert_eq!(stamp(&mut bench, r::TSYNCRXCTL, r::RXSTMPL), Some(5_000_000_000));
}

#[test]
fn ptp_time_stamp_stays_until_the_driver_reads_it() {
    let mut bench = bench(tsync::EVENT_V2, 0);
    for (us, expected) in [(8, true), (9, false)] {
        bench.wait_us(us);
        bench.wire_sends(&over_ethernet(&version_2(SYNC)));
        assert_eq!(bench.pf().expect_frame().last().status & status::TS != 0, expected);
    }
    assert_eq!(stamp(&mut bench, r::TSYNCRXCTL, r::RXSTMPL), Some(8000));
    assert!(is_stamped(&mut bench, &over_ethernet(&version_2(SYNC))));
}

#[test]
fn tsyncrxctl_type_selects_the_time_stamped_packets() {
    let frames = [
        over_ethernet(&version_2(SYNC)),
        over_ethernet(&version_2(DELAY_REQUEST)),
        over_ethernet(&version_2(ANNOUNCE)),
        over_udp(319, &version_2(SYNC)),
        over_udp(319, &version_2(DELAY_REQUEST)),
        over_udp(319, &version_1(0)),
        over_udp(319, &version_1(1)),
        over_udp(320, &version_2(SYNC)),
        plain(PORT, mac(9), 60),
    ];
    for (kind, which, expected) in [
        (tsync::EVENT_V2, 0, [1, 1, 0, 1, 1, 0, 0, 0, 0]),
        (tsync::V2, 0x0000, [1, 0, 0, 1, 0, 0, 0, 0, 0]),
        (tsync::V2, 0x0100, [0, 1, 0, 0, 1, 0, 0, 0, 0]),
        (tsync::L2_V2, 0x0100, [0, 1, 0, 0, 0, 0, 0, 0, 0]),
        (tsync::L4_V1, 0x0001, [0, 0, 0, 0, 0, 0, 1, 0, 0]),
        (7, 0, [0; 9]),
    ] {
        let mut bench = bench(kind, which);
        let stamped = frames.each_ref().map(|frame| u8::from(is_stamped(&mut bench, frame)));
        assert_eq!(stamped, expected, "kind {kind}, {which:#x}");
    }
}

#[test]
fn time_stamps_need_enable_and_a_protocol_filter() {
    let mut bench = bench(tsync::EVENT_V2, 0);
    bench.pf().write(r::TSYNCRXCTL, tsync::EVENT_V2 << tsync::KIND_SHIFT);
    assert!(!is_stamped(&mut bench, &over_ethernet(&version_2(SYNC))));
    bench.pf().write(r::TSYNCRXCTL, tsync::ENABLE | tsync::EVENT_V2 << tsync::KIND_SHIFT);
    bench.pf().write(r::etqf(3), PTP | etqf::ENABLE);
    assert!(!is_stamped(&mut bench, &over_ethernet(&version_2(SYNC))));
    bench.pf().write(r::imir(3), imir::ANY_PORT);
    assert!(is_stamped(&mut bench, &over_udp(319, &version_2(SYNC))));
    bench.pf().write(r::ftqf(3), 0);
    assert!(!is_stamped(&mut bench, &over_udp(319, &version_2(SYNC))));
}

#[test]
fn truncated_ptp_message_is_not_time_stamped() {
    let mut bench = bench(tsync::L4_V1, 0);
    for length in 0..33 {
        assert!(!is_stamped(&mut bench, &over_udp(319, &version_1(0)[..length])), "{length} bytes");
    }
    assert!(is_stamped(&mut bench, &over_udp(319, &version_1(0)[..33])));
}

/// Sends a frame whose descriptor asks for a time stamp.
fn send_timed(mut port: TestPciFunction<'_>) {
    let frame = plain(mac(9), PORT, 60);
    let address = port.place(&frame);
    port.transmit(&[
        AdvancedDataDescriptor { time_stamp: true, ..packet(address, frame.len() as u16) }.emit()
    ]);
}

#[test]
fn sent_packet_is_time_stamped_on_request() {
    let mut bench = bench(0, 0);
    bench.wait_us(16);
    bench.pf().send(&plain(mac(9), PORT, 60));
    assert_eq!(stamp(&mut bench, r::TSYNCTXCTL, r::TXSTMPL), None);
    send_timed(bench.pf());
    bench.wait_us(5);
    send_timed(bench.pf());
    assert_eq!(stamp(&mut bench, r::TSYNCTXCTL, r::TXSTMPL), Some(16_000));
    bench.pf().write(r::TSYNCTXCTL, 0);
    send_timed(bench.pf());
    assert_eq!(stamp(&mut bench, r::TSYNCTXCTL, r::TXSTMPL), None);
    assert_eq!(bench.wire_got().len(), 4);
}

#[test]
fn dropped_packets_and_vf_packets_are_not_time_stamped() {
    let mut bench = bench(0, 0);
    bench.nic.set_link(false);
    send_timed(bench.pf());
    assert_eq!(stamp(&mut bench, r::TSYNCTXCTL, r::TXSTMPL), None);
    let mut bench = CardFixture::new(1);
    bench.pf().write(r::TSYNCTXCTL, tsync::ENABLE);
    bench.vf(0).start();
    send_timed(bench.vf(0));
    assert_eq!(bench.wire_got().len(), 1);
    assert_eq!(stamp(&mut bench, r::TSYNCTXCTL, r::TXSTMPL), None);
}
