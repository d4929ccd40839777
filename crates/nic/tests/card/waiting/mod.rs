//! Tests the receive packet buffer: frames for a queue with too few descriptors wait there, unless the queue drops them
//! (QDE, SRRCTL.DROP_EN). RNBC counts frames that find no descriptors, MPC those that find no room in the buffer
//! either, and RQDPC those that their queue drops.

mod bursts;
mod random;
mod stopped;

use crate::common::{CardFixture, mac, plain, tagged, tcp};
use i82576::PoolIndex;
use i82576::bits::{mrqc, srrctl, vlvf, vmolr};
use i82576::descriptor::rx::status;
use i82576::register::{self as r, rx, vf, vf_stats};
use nic::PollBudget;
use pcie::Function::{Pf, Vf};

/// Returns a card whose VFs 0 to 2 have rings of `descriptors` descriptors, one less of them posted. Their queues do not drop.
fn bench(descriptors: u32) -> CardFixture {
    let mut bench = CardFixture::new(3);
    for n in 0..3 {
        bench.vf(n).start_sized(descriptors, 64);
        wait(&mut bench, n);
    }
    bench
}

/// Clears SRRCTL.DROP_EN of a VF's queue, so that its frames wait for descriptors instead of being dropped.
fn wait(bench: &mut CardFixture, n: u8) {
    bench.vf(n).clear(vf::RX_BLOCK + rx::SRRCTL, srrctl::DROP_EN);
}

/// Returns frame `number` for a VF, with the number in its first two bytes of payload.
fn frame(to: u8, number: usize, length: usize) -> Vec<u8> {
    let mut frame = plain(mac(to), mac(9), length - 14);
    frame[14..16].copy_from_slice(&(number as u16).to_be_bytes());
    frame
}

fn number(bytes: &[u8]) -> usize {
    u16::from_be_bytes([bytes[14], bytes[15]]).into()
}

/// Delivers frames with the given numbers from the wire, in one poll.
fn burst(bench: &mut CardFixture, to: u8, numbers: core::ops::Range<usize>, length: usize) {
    bench.world.wire.incoming.extend(numbers.map(|number| frame(to, number, length)));
    bench.poll();
}

/// Returns the numbers of the frames that a VF got since the last call.
fn got(bench: &mut CardFixture, n: u8) -> Vec<usize> {
    bench.vf(n).received().iter().map(|frame| number(&frame.bytes)).collect()
}

/// Reads RNBC, MPC and the VF's RQDPC, which count missed and dropped frames.
fn missed(bench: &mut CardFixture, n: u8) -> [u32; 3] {
    let of_port = [r::RNBC, r::MPC].map(|at| bench.pf().read(at));
    [of_port[0], of_port[1], bench.vf(n).read(vf::RX_BLOCK + rx::RQDPC)]
}

fn waiting(bench: &CardFixture, n: u8) -> (usize, usize) {
    bench.nic.waiting(PoolIndex::EVERY[usize::from(n)])
}

#[test]
fn burst_of_frames_waits_for_descriptors_and_keeps_sequence() {
    let mut bench = bench(8);
    burst(&mut bench, 0, 0..20, 1_000);
    assert_eq!(got(&mut bench, 0), (0..7).collect::<Vec<_>>());
    assert_eq!(waiting(&bench, 0), (13, 13_000));
    assert_eq!(missed(&mut bench, 0), [13, 0, 0], "all frames wait or arrive");
    for expected in [7..14, 14..20, 20..20] {
        bench.vf(0).post(7);
        bench.poll();
        assert_eq!(got(&mut bench, 0), expected.collect::<Vec<_>>());
    }
    assert_eq!((waiting(&bench, 0), missed(&mut bench, 0)), ((0, 0), [0; 3]));
    assert_eq!(bench.nic.counters()[0].rx_packets, 20);
}

#[test]
fn new_frame_does_not_overtake_a_waiting_frame() {
    let mut bench = bench(8);
    burst(&mut bench, 0, 0..9, 100);
    got(&mut bench, 0);
    bench.vf(0).post(1);
    // The first frame that waits gets the descriptor, before frames that arrive in the same poll.
    burst(&mut bench, 0, 9..12, 100);
    assert_eq!(got(&mut bench, 0), [7]);
    bench.vf(0).post(6);
    burst(&mut bench, 0, 12..13, 100);
    assert_eq!(got(&mut bench, 0), (8..13).collect::<Vec<_>>());
    // The queue has descriptors again, and no frame waits.
    burst(&mut bench, 0, 13..14, 100);
    assert_eq!((got(&mut bench, 0), missed(&mut bench, 0)), (vec![13], [5, 0, 0]));
}

#[test]
fn large_frame_waits_for_all_its_descriptors() {
    let mut bench = bench(8);
    burst(&mut bench, 0, 0..5, 100);
    burst(&mut bench, 0, 5..6, 6_000);
    burst(&mut bench, 0, 6..7, 100);
    assert_eq!(got(&mut bench, 0), (0..5).collect::<Vec<_>>(), "the frame needs three buffers and finds two");
    bench.vf(0).post(2);
    bench.poll();
    assert_eq!(got(&mut bench, 0), [5, 6]);
}

#[test]
fn frame_longer_than_all_buffers_of_its_ring_is_missed() {
    let mut bench = bench(8);
    bench.vf(0).write(vf::RX_BLOCK + rx::SRRCTL, 1 | srrctl::ONE_BUFFER << srrctl::DESCTYPE_SHIFT);
    burst(&mut bench, 0, 0..1, 7 * 1024 + 1);
    assert_eq!((waiting(&bench, 0), missed(&mut bench, 0)), ((0, 0), [1, 1, 0]));
    burst(&mut bench, 0, 1..2, 7 * 1024);
    assert_eq!(got(&mut bench, 0), [1]);
}

#[test]
fn waiting_frame_too_long_for_new_buffers_counts_as_missed() {
    let mut bench = bench(8);
    burst(&mut bench, 0, 0..7, 100);
    burst(&mut bench, 0, 7..8, 9_000);
    burst(&mut bench, 0, 8..9, 100);
    bench.vf(0).write(vf::RX_BLOCK + rx::SRRCTL, 1 | srrctl::ONE_BUFFER << srrctl::DESCTYPE_SHIFT);
    got(&mut bench, 0);
    bench.vf(0).post(7);
    bench.poll();
    assert_eq!((got(&mut bench, 0), missed(&mut bench, 0)), (vec![8], [2, 1, 0]));
    assert_eq!(bench.nic.counters()[0].rx_no_descriptors, 1);
}

#[test]
fn frames_beyond_half_the_packet_buffer_count_as_missed() {
    let mut bench = bench(8);
    burst(&mut bench, 0, 0..107, 1_024);
    // A queue may hold at most half of the buffer, and RXPBS is 64 KB.
    assert_eq!(waiting(&bench, 0), (32, 32 << 10));
    assert_eq!(missed(&mut bench, 0), [100, 68, 0]);
    assert_eq!(bench.nic.counters()[0].rx_no_descriptors, 68);
    assert_eq!(bench.pf().read(r::GPRC), 39, "only frames that found room are good packets");
    let mut found = got(&mut bench, 0);
    for _ in 0..5 {
        bench.vf(0).post(7);
        bench.poll();
        found.extend(got(&mut bench, 0));
    }
    assert_eq!(found, (0..39).collect::<Vec<_>>(), "seven frames found descriptors, and 32 waited");
}

#[test]
fn rxpbs_sets_the_packet_buffer_size_up_to_64_kb() {
    for (kilobytes, expected) in [(0, 0), (8, 4), (64, 32), (100, 32)] {
        let mut bench = bench(8);
        bench.pf().write(r::RXPBS, kilobytes);
        burst(&mut bench, 0, 0..107, 1_024);
        assert_eq!(waiting(&bench, 0).0, expected, "{kilobytes} KB");
    }
}

#[test]
fn each_waiting_frame_takes_at_least_64_bytes_of_buffer() {
    let mut bench = bench(8);
    burst(&mut bench, 0, 0..2_007, 60);
    assert_eq!(waiting(&bench, 0), (512, 512 * 60), "a frame takes at least 64 bytes");
    assert_eq!(missed(&mut bench, 0), [2_000, 1_488, 0]);
}

#[test]
fn queue_set_to_drop_drops_at_once_and_counts_the_frame() {
    let mut bench = bench(8);
    bench.vf(0).set(vf::RX_BLOCK + rx::SRRCTL, srrctl::DROP_EN);
    burst(&mut bench, 0, 0..10, 100);
    assert_eq!((waiting(&bench, 0), missed(&mut bench, 0)), ((0, 0), [3, 0, 3]));
    // A queue's bit in QDE has the same effect.
    bench.pf().write(r::QDE, 1 << 1);
    burst(&mut bench, 1, 0..10, 100);
    assert_eq!((waiting(&bench, 1), missed(&mut bench, 1)), ((0, 0), [3, 0, 3]));
}

#[test]
fn waiting_frames_stay_when_their_queue_is_set_to_drop() {
    let mut bench = bench(8);
    burst(&mut bench, 0, 0..9, 100);
    bench.pf().write(r::QDE, 1);
    burst(&mut bench, 0, 9..11, 100);
    assert_eq!(missed(&mut bench, 0), [4, 0, 2]);
    got(&mut bench, 0);
    bench.vf(0).post(7);
    bench.poll();
    assert_eq!(got(&mut bench, 0), [7, 8]);
}

#[test]
fn queue_without_descriptors_does_not_starve_others() {
    let mut bench = bench(8);
    // VF 0 and VF 1 post no descriptors, and both are flooded.
    burst(&mut bench, 0, 0..500, 1_024);
    burst(&mut bench, 1, 0..500, 1_024);
    let held = [0, 1].map(|n| waiting(&bench, n).1 >> 10);
    assert_eq!(held, [32, 16], "each queue holds at most as much as it leaves free");
    for round in 0..50 {
        burst(&mut bench, 2, 10 * round..10 * round + 10, 1_024);
        let mut found = got(&mut bench, 2);
        bench.vf(2).post(7);
        bench.poll();
        found.extend(got(&mut bench, 2));
        bench.vf(2).post(3);
        assert_eq!(found, (10 * round..10 * round + 10).collect::<Vec<_>>());
    }
}

#[test]
fn frames_from_vfs_wait_for_descriptors() {
    let mut bench = bench(8);
    for number in 0..9 {
        bench.vf(1).send(&frame(0, number, 200));
    }
    burst(&mut bench, 0, 9..10, 200);
    got(&mut bench, 0);
    bench.vf(0).post(7);
    bench.poll();
    assert_eq!(got(&mut bench, 0), [7, 8, 9]);
    let totals = [vf_stats::VFGPRC, vf_stats::VFGPRLBC].map(|at| bench.vf(0).read(0x0f00 + (at & 0xff)));
    assert_eq!(totals, [10, 9], "VFGPRC counts all, VFGPRLBC those from other VFs");
}

#[test]
fn waiting_frames_count_as_received_on_delivery() {
    let mut bench = bench(8);
    burst(&mut bench, 0, 0..10, 100);
    let received = |bench: &mut CardFixture| bench.vf(0).read(vf::VFGPRC);
    assert_eq!(received(&mut bench), 7);
    bench.vf(0).post(7);
    bench.poll();
    assert_eq!(received(&mut bench), 10);
    let of_port = [r::TPR, r::GPRC, r::RPTHC].map(|at| bench.pf().read(at));
    assert_eq!(of_port, [10; 3], "each frame counts once, on arrival");
}

#[test]
fn copies_of_a_frame_wait_for_descriptors_separately() {
    let mut bench = bench(8);
    burst(&mut bench, 0, 0..7, 100);
    bench.world.wire.incoming.push_back(plain(i82576::MacAddress::BROADCAST, mac(9), 86));
    bench.poll();
    assert_eq!([0, 1, 2].map(|n| waiting(&bench, n).0), [1, 0, 0]);
    assert_eq!(bench.vf(1).received().len(), 1);
    got(&mut bench, 0);
    bench.vf(0).post(1);
    bench.poll();
    assert_eq!(bench.vf(0).expect_frame().bytes[..6], [0xff; 6]);
    assert_eq!(bench.nic.counters()[0].rx_broadcast, 1);
}

#[test]
fn waiting_frame_is_delivered_by_the_settings_at_its_arrival() {
    let mut bench = bench(8);
    bench.pf().set(r::vmolr(PoolIndex::EVERY[0]), vmolr::STRVLAN);
    bench.pf().write(r::vlvf(0), vlvf::VLANID_EN | 1 << vlvf::POOLSEL_SHIFT | 5);
    burst(&mut bench, 0, 0..7, 100);
    let segment = tcp(mac(0), mac(9), &[1; 300]);
    bench.world.wire.incoming.push_back(tagged(5, &segment));
    bench.poll();
    got(&mut bench, 0);
    // These settings apply to later frames only.
    bench.pf().clear(r::vmolr(PoolIndex::EVERY[0]), vmolr::STRVLAN);
    bench.pf().write(r::VFRE, 0);
    bench.pf().write(r::RXCSUM, 0);
    bench.pf().write(r::MRQC, mrqc::VMDQ_RSS);
    bench.vf(0).post(1);
    bench.poll();
    let late = bench.vf(0).expect_frame();
    assert_eq!((&late.bytes, late.last().vlan_tag), (&segment, 5));
    let expected = status::VP | status::IPCS | status::L4CS;
    assert_eq!(late.last().status & expected, expected);
}

#[test]
fn waiting_frame_raises_its_interrupt_only_on_delivery() {
    let mut bench = bench(8);
    burst(&mut bench, 0, 0..9, 100);
    bench.expect_msix(Vf(0), 1);
    bench.expect_nothing();
    bench.vf(0).post(2);
    bench.poll();
    bench.expect_msix(Vf(0), 1);
    bench.expect_nothing();
}

#[test]
fn poll_delivers_waiting_frames_within_its_budget() {
    let mut bench = bench(64);
    burst(&mut bench, 0, 0..100, 100);
    got(&mut bench, 0);
    bench.vf(0).post(63);
    bench.budget = PollBudget { frames: 10 };
    for _ in 0..3 {
        assert!(bench.poll_once().more);
        assert_eq!(got(&mut bench, 0).len(), 10);
    }
    assert_eq!(bench.poll().deadline, None);
    assert_eq!(got(&mut bench, 0).len(), 7);
    bench.expect_nothing();
}

#[test]
fn frame_to_the_pf_waits_and_raises_rxo_only_if_lost() {
    use i82576::bits::icr;
    let mut bench = bench(8);
    bench.pf().start_sized(8, 8);
    let control = bench.pf().rx(rx::SRRCTL);
    bench.pf().clear(control, srrctl::DROP_EN);
    let to_pf = plain(crate::common::PORT, mac(9), 1_010);
    for _ in 0..8 {
        bench.wire_sends(&to_pf);
    }
    assert_eq!(bench.pf().read(r::ICR) & icr::RXO, 0, "the frame waits without an overrun");
    for _ in 0..40 {
        bench.wire_sends(&to_pf);
    }
    assert_eq!(bench.pf().read(r::ICR) & icr::RXO, icr::RXO);
    assert_eq!(bench.world.bus.log.iter().filter(|access| access.function != Pf && access.write).count(), 0);
}
