//! Tests a PF without VFs: RSS over all 16 queues, tags by CTRL.VME, lengths by RCTL and RLPML, and the check sequence
//! by RCTL.SECRC. Also a small driver that polls legacy descriptors on queue 0.

use super::srrctl;
use crate::common::{CardFixture, PORT, SIZE, mac, plain, tagged, tcp, tcp6, udp};
use i82576::QueueIndex;
use i82576::bits::{ctrl, dctl, icr, mrqc, rctl, rxcsum, tctl};
use i82576::descriptor::legacy;
use i82576::descriptor::rx::{AdvancedRxWriteBack, PostedRxDescriptor, rss_type, status};
use i82576::register::{self as r, rx, rx_block};
use pcie::Function::Pf;

/// Returns a card whose PF has a running queue 0 and RCTL bits `control`.
pub(super) fn bench(control: u32) -> CardFixture {
    let mut bench = CardFixture::bare();
    bench.pf().write(r::RCTL, rctl::EN | rctl::BAM | control);
    bench.pf().write(r::TCTL, tctl::EN | tctl::PSP);
    bench.pf().start();
    bench
}

fn frame(length: usize) -> Vec<u8> {
    plain(PORT, mac(9), length - 14)
}

/// Returns Ethernet's check sequence, computed bit by bit.
fn check_sequence(frame: &[u8]) -> [u8; 4] {
    let crc = frame.iter().fold(!0u32, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| crc >> 1 ^ if crc & 1 == 1 { 0xedb8_8320 } else { 0 })
    });
    (!crc).to_le_bytes()
}

#[test]
fn frame_check_sequence_is_delivered_unless_stripped() {
    let mut bench = bench(0);
    bench.wire_sends(&frame(100));
    assert_eq!(bench.pf().expect_frame().bytes, [&frame(100)[..], &check_sequence(&frame(100))].concat());
    bench.pf().set(r::CTRL, ctrl::VME);
    bench.wire_sends(&tagged(5, &frame(100)));
    let sum = check_sequence(&tagged(5, &frame(100)));
    assert_eq!(
        bench.pf().expect_frame().bytes,
        [&frame(100)[..], &sum].concat(),
        "the check sequence of the wire"
    );
    bench.pf().set(r::RCTL, rctl::SECRC);
    bench.wire_sends(&frame(100));
    assert_eq!(bench.pf().expect_frame().bytes, frame(100));
    assert_eq!(bench.pf().read(r::GORCL), 104 + 108 + 104, "octets count the check sequence");
}

#[test]
fn pools_never_receive_a_frame_check_sequence() {
    let mut bench = CardFixture::new(1);
    bench.vf(0).start();
    bench.pf().clear(r::RCTL, rctl::SECRC);
    bench.wire_sends(&plain(mac(0), mac(9), 86));
    assert_eq!(bench.vf(0).expect_frame().bytes.len(), 100);
}

#[test]
fn ctrl_vme_strips_vlan_tags_without_pools() {
    let mut bench = bench(rctl::SECRC);
    bench.wire_sends(&tagged(0x6064, &frame(100)));
    assert_eq!(bench.pf().expect_frame().bytes, tagged(0x6064, &frame(100)));
    bench.pf().set(r::CTRL, ctrl::VME);
    bench.wire_sends(&tagged(0x6064, &frame(100)));
    let received = bench.pf().expect_frame();
    assert_eq!((received.bytes, received.parts[0].vlan_tag), (frame(100), 0x6064));
}

#[test]
fn long_packet_enable_accepts_frames_up_to_rlpml() {
    let mut bench = bench(rctl::SECRC);
    let longest = |bench: &mut CardFixture| {
        let lengths = [1514, 1515, 1518, 2000, 2001, 9722, 9724];
        lengths.into_iter().rfind(|length| {
            bench.wire_sends(&frame(*length));
            let parts = bench.pf().received().iter().map(|frame| frame.parts.len() as u32).sum();
            bench.pf().post(parts);
            parts > 0
        })
    };
    assert_eq!(longest(&mut bench), Some(1514));
    bench.wire_sends(&tagged(5, &frame(1514)));
    assert_eq!(bench.pf().expect_frame().bytes.len(), 1518, "a tag adds four bytes");
    bench.pf().set(r::RCTL, rctl::LPE);
    bench.pf().write(r::RLPML, 2004);
    assert_eq!(longest(&mut bench), Some(2000));
    bench.pf().write(r::RLPML, 9728);
    assert_eq!(longest(&mut bench), Some(9724));
}

#[test]
fn driver_without_interrupts_polls_legacy_rings_for_frames() {
    let mut bench = bench(rctl::SECRC | rctl::UPE | rctl::MPE);
    bench.pf().start_sized(16, 16);
    let receive = bench.pf().rx(rx::SRRCTL);
    bench.pf().write(receive, 0x400);
    bench.pf().read(r::ICR);
    for round in 0..40u16 {
        bench.wire_sends(&frame(60 + usize::from(round)));
        assert_eq!(bench.pf().read(r::ICR) & icr::RXDW, icr::RXDW);
        let received = bench.pf().expect_frame();
        assert_eq!(received.bytes, frame(60 + usize::from(round)));
        assert_eq!(received.parts[0].status, 1 | status::EOP);
        bench.pf().post(1);
        let answer = plain(mac(9), PORT, 46);
        let address = bench.pf().place(&answer);
        let descriptor = legacy::LegacyTxDescriptor {
            address,
            length: 60,
            end_of_packet: true,
            report_status: true,
            ..legacy::LegacyTxDescriptor::default()
        };
        bench.pf().transmit(&[descriptor.emit()]);
        assert!(bench.pf().is_done(u32::from(round % 16)));
        assert_eq!(bench.pf().read(r::ICR) & icr::TXDW, icr::TXDW);
        assert_eq!(bench.wire_got(), [answer]);
    }
}

/// Starts the PF's 16 receive queues with rings of eight descriptors and 1 KiB buffers, at the end of the PF's memory.
pub(super) fn start_all(bench: &mut CardFixture) {
    for queue in QueueIndex::all() {
        let ring = crate::common::BASE + SIZE as u64 - 0x4_0000 + u64::from(queue.get()) * 0x4000;
        for i in 0..8u64 {
            bench.pf().poke(
                ring + 16 * i,
                &PostedRxDescriptor { packet: ring + 0x400 * (i + 1), header: 0 }.emit(),
            );
        }
        for (at, value) in [
            (rx::RDBAL, ring as u32),
            (rx::RDLEN, 128),
            (rx::RDH, 0),
            (rx::SRRCTL, srrctl(1, 0, 1)),
            (rx::RXDCTL, dctl::ENABLE),
            (rx::RDT, 7),
        ] {
            bench.pf().write(rx_block(queue) + at, value);
        }
    }
}

/// Restarts all receive queues and delivers a frame from the wire. Returns the queue that gets it, and its first
/// descriptor.
pub(super) fn queue_of(bench: &mut CardFixture, frame: &[u8]) -> (u8, AdvancedRxWriteBack) {
    start_all(bench);
    bench.wire_sends(frame);
    let mut hit = QueueIndex::all().filter(|queue| bench.pf().read(rx_block(*queue) + rx::RDH) == 1);
    let queue = hit.next().expect("one of the 16 queues received the frame");
    assert_eq!(hit.next(), None);
    let ring = bench.pf().read(rx_block(queue) + rx::RDBAL);
    let raw = bench.pf().peek(ring.into(), 16).try_into().unwrap();
    (queue.get(), AdvancedRxWriteBack::parse(&raw).unwrap())
}

#[test]
fn rss_uses_16_queues_by_the_low_bits_of_reta_entries() {
    let mut bench = bench(rctl::SECRC);
    bench.pf().write(r::MRQC, mrqc::RSS | 0x1ff << mrqc::HASH_TYPES_SHIFT);
    bench.pf().write(r::RXCSUM, rxcsum::PCSD);
    for word in 0..10 {
        bench.pf().write(r::rssrk(word), 0x9e37_79b9u32.wrapping_mul(word + 1));
    }
    let mut seen = 0u16;
    for entry in 0..=255u8 {
        (0..32).for_each(|word| bench.pf().write(r::reta(word), u32::from(entry) * 0x0101_0101));
        let (queue, back) = queue_of(&mut bench, &tcp(PORT, mac(9), &[entry; 10]));
        assert_eq!((queue, back.rss_type), (entry & 0xf, rss_type::TCP_IPV4));
        seen |= 1 << queue;
    }
    assert_eq!(seen, 0xffff);
}

#[test]
fn reported_rss_hash_selects_the_queue_in_the_rss_table() {
    let mut bench = bench(rctl::SECRC);
    bench.pf().write(r::MRQC, mrqc::RSS | 0x1ff << mrqc::HASH_TYPES_SHIFT);
    bench.pf().write(r::RXCSUM, rxcsum::PCSD);
    (0..10).for_each(|word| bench.pf().write(r::rssrk(word), 0x9e37_79b9u32.wrapping_mul(word + 1)));
    let entry = |index: u32| (index * 7 + 3) as u8 & 0xf;
    for word in 0..32 {
        let entries = [0, 1, 2, 3].map(|byte| entry(4 * word + byte));
        bench.pf().write(r::reta(word), u32::from_le_bytes(entries));
    }
    for (frame, kind) in [
        (tcp(PORT, mac(9), &[1; 50]), rss_type::TCP_IPV4),
        (tcp6(PORT, mac(9), &[2; 50]), rss_type::TCP_IPV6),
        (udp(PORT, mac(9), &[3; 50]), rss_type::UDP_IPV4),
    ] {
        let (queue, back) = queue_of(&mut bench, &frame);
        assert_eq!((queue, back.rss_type), (entry(back.hash & 0x7f), kind));
    }
    let (queue, back) = queue_of(&mut bench, &frame(60));
    assert_eq!(
        (queue, back.rss_type, back.hash),
        (0, rss_type::NONE, 0),
        "an unhashed frame goes to MRQC.DEF_Q"
    );
}

#[test]
fn received_frames_go_to_queue_0_without_rss() {
    let mut bench = bench(rctl::SECRC);
    (0..32).for_each(|word| bench.pf().write(r::reta(word), 0x0505_0505));
    assert_eq!(queue_of(&mut bench, &tcp(PORT, mac(9), &[1; 50])).0, 0);
    assert!(bench.world.bus.log.iter().all(|access| access.function == Pf));
}
