//! The receive packet buffer: frames for a queue that has too few descriptors wait there, unless the queue is to drop them
//! (QDE, SRRCTL.DROP_EN). RNBC counts frames that found no descriptors, MPC those that found no room in the buffer either,
//! RQDPC those that their queue dropped.

mod bursts;
mod random;
mod stopped;

use crate::common::{Bench, mac, plain, tagged, tcp};
use i82576::Pool;
use i82576::bits::{mrqc, srrctl, vlvf, vmolr};
use i82576::descriptor::rx::status;
use i82576::register::{self as r, rx, vf, vf_stats};
use nic::Budget;
use pcie::Function::{Pf, Vf};

/// VFs 0 to 2, each with a ring of so many descriptors, one less of them posted. Their queues do not drop.
fn bench(descriptors: u32) -> Bench {
    let mut bench = Bench::new(3);
    for n in 0..3 {
        bench.vf(n).start_sized(descriptors, 64);
        wait(&mut bench, n);
    }
    bench
}

/// A VF's queue is to wait.
fn wait(bench: &mut Bench, n: u8) {
    bench.vf(n).clear(vf::RX_BLOCK + rx::SRRCTL, srrctl::DROP_EN);
}

/// Frame `number` for a VF, which can be told from others by its first two bytes of payload.
fn frame(to: u8, number: usize, length: usize) -> Vec<u8> {
    let mut frame = plain(mac(to), mac(9), length - 14);
    frame[14..16].copy_from_slice(&(number as u16).to_be_bytes());
    frame
}

fn number(bytes: &[u8]) -> usize {
    u16::from_be_bytes([bytes[14], bytes[15]]).into()
}

/// Frames of such numbers come from the wire at once.
fn burst(bench: &mut Bench, to: u8, numbers: core::ops::Range<usize>, length: usize) {
    bench.world.wire.incoming.extend(numbers.map(|number| frame(to, number, length)));
    bench.poll();
}

/// Numbers of the frames that a VF got since it was asked the last time.
fn got(bench: &mut Bench, n: u8) -> Vec<usize> {
    bench.vf(n).received().iter().map(|frame| number(&frame.bytes)).collect()
}

/// RNBC, MPC and the VF's RQDPC.
fn missed(bench: &mut Bench, n: u8) -> [u32; 3] {
    let of_port = [r::RNBC, r::MPC].map(|at| bench.pf().read(at));
    [of_port[0], of_port[1], bench.vf(n).read(vf::RX_BLOCK + rx::RQDPC)]
}

fn waiting(bench: &Bench, n: u8) -> (usize, usize) {
    bench.nic.waiting(Pool::EVERY[usize::from(n)])
}

#[test]
fn a_burst_waits_for_descriptors_and_arrives_in_order() {
    let mut bench = bench(8);
    burst(&mut bench, 0, 0..20, 1_000);
    assert_eq!(got(&mut bench, 0), (0..7).collect::<Vec<_>>());
    assert_eq!(waiting(&bench, 0), (13, 13_000));
    assert_eq!(missed(&mut bench, 0), [13, 0, 0], "none is lost");
    for expected in [7..14, 14..20, 20..20] {
        bench.vf(0).post(7);
        bench.poll();
        assert_eq!(got(&mut bench, 0), expected.collect::<Vec<_>>());
    }
    assert_eq!((waiting(&bench, 0), missed(&mut bench, 0)), ((0, 0), [0; 3]));
    assert_eq!(bench.nic.counters()[0].rx_packets, 20);
}

#[test]
fn a_new_frame_does_not_overtake_one_that_waits() {
    let mut bench = bench(8);
    burst(&mut bench, 0, 0..9, 100);
    got(&mut bench, 0);
    bench.vf(0).post(1);
    // The descriptor is for the first that waits, whatever arrives in the same poll.
    burst(&mut bench, 0, 9..12, 100);
    assert_eq!(got(&mut bench, 0), [7]);
    bench.vf(0).post(6);
    burst(&mut bench, 0, 12..13, 100);
    assert_eq!(got(&mut bench, 0), (8..13).collect::<Vec<_>>());
    // The queue has descriptors again, and nothing is in its way.
    burst(&mut bench, 0, 13..14, 100);
    assert_eq!((got(&mut bench, 0), missed(&mut bench, 0)), (vec![13], [5, 0, 0]));
}

#[test]
fn a_large_frame_waits_until_there_are_descriptors_for_all_of_it() {
    let mut bench = bench(8);
    burst(&mut bench, 0, 0..5, 100);
    burst(&mut bench, 0, 5..6, 6_000);
    burst(&mut bench, 0, 6..7, 100);
    assert_eq!(got(&mut bench, 0), (0..5).collect::<Vec<_>>(), "three buffers are needed and two are there");
    bench.vf(0).post(2);
    bench.poll();
    assert_eq!(got(&mut bench, 0), [5, 6]);
}

#[test]
fn a_frame_that_no_ring_full_of_descriptors_would_hold_does_not_wait() {
    let mut bench = bench(8);
    bench.vf(0).write(vf::RX_BLOCK + rx::SRRCTL, 1 | srrctl::ONE_BUFFER << srrctl::DESCTYPE_SHIFT);
    burst(&mut bench, 0, 0..1, 7 * 1024 + 1);
    assert_eq!((waiting(&bench, 0), missed(&mut bench, 0)), ((0, 0), [1, 1, 0]));
    burst(&mut bench, 0, 1..2, 7 * 1024);
    assert_eq!(got(&mut bench, 0), [1]);
}

#[test]
fn a_frame_that_waits_is_missed_when_the_queues_buffers_become_too_small_for_it() {
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
fn what_finds_no_room_in_the_buffer_is_missed_by_the_port() {
    let mut bench = bench(8);
    burst(&mut bench, 0, 0..107, 1_024);
    // One queue has half of the buffer at the most, and RXPBS says 64 KB.
    assert_eq!(waiting(&bench, 0), (32, 32 << 10));
    assert_eq!(missed(&mut bench, 0), [100, 68, 0]);
    assert_eq!(bench.nic.counters()[0].rx_no_descriptors, 68);
    assert_eq!(bench.pf().read(r::GPRC), 39, "good packets are those that found room");
    let mut found = got(&mut bench, 0);
    for _ in 0..5 {
        bench.vf(0).post(7);
        bench.poll();
        found.extend(got(&mut bench, 0));
    }
    assert_eq!(found, (0..39).collect::<Vec<_>>(), "seven found descriptors, and 32 room");
}

#[test]
fn the_buffer_is_as_large_as_rxpbs_says_and_the_chip_has() {
    for (kilobytes, expected) in [(0, 0), (8, 4), (64, 32), (100, 32)] {
        let mut bench = bench(8);
        bench.pf().write(r::RXPBS, kilobytes);
        burst(&mut bench, 0, 0..107, 1_024);
        assert_eq!(waiting(&bench, 0).0, expected, "{kilobytes} KB");
    }
}

#[test]
fn short_frames_are_bounded_in_number() {
    let mut bench = bench(8);
    burst(&mut bench, 0, 0..2_007, 60);
    assert_eq!(waiting(&bench, 0), (512, 512 * 60), "a frame takes 64 bytes at least");
    assert_eq!(missed(&mut bench, 0), [2_000, 1_488, 0]);
}

#[test]
fn a_queue_with_drop_en_drops_at_once_and_counts_it_in_rqdpc() {
    let mut bench = bench(8);
    bench.vf(0).set(vf::RX_BLOCK + rx::SRRCTL, srrctl::DROP_EN);
    burst(&mut bench, 0, 0..10, 100);
    assert_eq!((waiting(&bench, 0), missed(&mut bench, 0)), ((0, 0), [3, 0, 3]));
    // So does one whose bit in QDE is set.
    bench.pf().write(r::QDE, 1 << 1);
    burst(&mut bench, 1, 0..10, 100);
    assert_eq!((waiting(&bench, 1), missed(&mut bench, 1)), ((0, 0), [3, 0, 3]));
}

#[test]
fn what_waits_already_goes_on_waiting_when_drops_are_turned_on() {
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
fn a_queue_that_stands_still_does_not_starve_the_others() {
    let mut bench = bench(8);
    // Nobody gives VF 0 and VF 1 descriptors, and both are flooded.
    burst(&mut bench, 0, 0..500, 1_024);
    burst(&mut bench, 1, 0..500, 1_024);
    let held = [0, 1].map(|n| waiting(&bench, n).1 >> 10);
    assert_eq!(held, [32, 16], "each has no more than it leaves");
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
fn frames_from_other_vfs_wait_too() {
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
    assert_eq!(totals, [10, 9], "VFGPRC, and VFGPRLBC for those that came from inside");
}

#[test]
fn frames_are_counted_as_received_when_the_function_has_them() {
    let mut bench = bench(8);
    burst(&mut bench, 0, 0..10, 100);
    let received = |bench: &mut Bench| bench.vf(0).read(vf::VFGPRC);
    assert_eq!(received(&mut bench), 7);
    bench.vf(0).post(7);
    bench.poll();
    assert_eq!(received(&mut bench), 10);
    let of_port = [r::TPR, r::GPRC, r::RPTHC].map(|at| bench.pf().read(at));
    assert_eq!(of_port, [10; 3], "once, on their arrival");
}

#[test]
fn each_copy_of_a_frame_waits_for_its_own_queue() {
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
fn a_frame_is_judged_when_it_arrives_and_never_again() {
    let mut bench = bench(8);
    bench.pf().set(r::vmolr(Pool::EVERY[0]), vmolr::STRVLAN);
    bench.pf().write(r::vlvf(0), vlvf::VLANID_EN | 1 << vlvf::POOLSEL_SHIFT | 5);
    burst(&mut bench, 0, 0..7, 100);
    let segment = tcp(mac(0), mac(9), &[1; 300]);
    bench.world.wire.incoming.push_back(tagged(5, &segment));
    bench.poll();
    got(&mut bench, 0);
    // Nothing of this is for a frame that has arrived before.
    bench.pf().clear(r::vmolr(Pool::EVERY[0]), vmolr::STRVLAN);
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
fn descriptors_wake_what_waits_and_it_interrupts_as_any_frame() {
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
fn a_poll_wakes_no_more_frames_than_it_may_move_and_says_so() {
    let mut bench = bench(64);
    burst(&mut bench, 0, 0..100, 100);
    got(&mut bench, 0);
    bench.vf(0).post(63);
    bench.budget = Budget { frames: 10 };
    for _ in 0..3 {
        assert!(bench.poll_once().more);
        assert_eq!(got(&mut bench, 0).len(), 10);
    }
    assert_eq!(bench.poll().deadline, None);
    assert_eq!(got(&mut bench, 0).len(), 7);
    bench.expect_nothing();
}

#[test]
fn the_pfs_queue_waits_and_an_overrun_is_told_only_when_a_frame_is_lost() {
    use i82576::bits::icr;
    let mut bench = bench(8);
    bench.pf().start_sized(8, 8);
    let control = bench.pf().rx(rx::SRRCTL);
    bench.pf().clear(control, srrctl::DROP_EN);
    let to_pf = plain(crate::common::PORT, mac(9), 1_010);
    for _ in 0..8 {
        bench.wire_sends(&to_pf);
    }
    assert_eq!(bench.pf().read(r::ICR) & icr::RXO, 0, "it waits");
    for _ in 0..40 {
        bench.wire_sends(&to_pf);
    }
    assert_eq!(bench.pf().read(r::ICR) & icr::RXO, icr::RXO);
    assert_eq!(bench.world.bus.log.iter().filter(|access| access.function != Pf && access.write).count(), 0);
}
