//! Tests transmit rates of a card that is polled late, because its thread waits for a processor. The card makes up for
//! its own lateness within the window of RTTBCNRM, and no guest exceeds its rate by that.

use crate::common::{CardFixture, RING};
use crate::pacing::{SECOND, WIRE, assert_near, bench, fill, large, limit, octets, rate, whole};
use i82576::register::{self as r, tx, vf};

const MILLISECOND: u64 = 1_000_000;

/// Returns a generator of fixed pseudo-random numbers from `least` to `most`.
fn irregular(least: u64, most: u64) -> impl FnMut() -> u64 {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        least + state % (most - least + 1)
    }
}

/// Runs a card for a second in which VF 0 always has packets to send. The card is polled in intervals of `gap`
/// nanoseconds, not at its deadlines.
fn run_late(bench: &mut CardFixture, descriptors: &[[u8; 16]], mut gap: impl FnMut() -> u64) {
    while bench.now.as_nanos() < SECOND {
        fill(bench, 0, descriptors);
        poll(bench);
        bench.now = i82576::Time::from_nanos(bench.now.as_nanos() + gap());
    }
}

/// Polls until the card has no more work at this time, and returns the number of frames that left by the wire.
fn poll(bench: &mut CardFixture) -> usize {
    while bench.poll_once().more {}
    bench.world.bus.log.clear();
    bench.wire_got().len()
}

/// Returns the number of KB that a rate of `mbps` carries in ten milliseconds.
fn ten_milliseconds(mbps: u32) -> u32 {
    (mbps * 10_000 / 8).div_ceil(1_024)
}

#[test]
fn late_polls_within_burst_window_keep_tx_rate_within_2_percent() {
    for mbps in [10, 50, 200, 800] {
        for (least, most) in [(200_000, 5 * MILLISECOND), (10 * MILLISECOND, 10 * MILLISECOND)] {
            let mut bench = bench();
            limit(&mut bench, 0, rate(mbps));
            bench.pf().write(r::RTTBCNRM, ten_milliseconds(mbps));
            let packet = large(&mut bench, 0, WIRE, 60_000);
            run_late(&mut bench, &packet, irregular(least, most));
            assert_near(octets(&mut bench, 0), mbps.into());
        }
    }
}

#[test]
fn late_poll_gets_at_most_one_burst_window_of_transmit_credit() {
    let mut bench = bench();
    limit(&mut bench, 0, rate(200));
    let packet = large(&mut bench, 0, WIRE, 60_000);
    run_late(&mut bench, &packet, || 10 * MILLISECOND);
    let most = 100 * (20 * 1_024 + 1_518);
    assert!(octets(&mut bench, 0) <= most, "each poll sends igb's 20 KB and the frame that was due");
}

#[test]
fn late_poll_sends_delayed_frames_up_to_the_burst_window() {
    for (kilobytes, frames) in [(0, 1), (1, 2), (2, 3), (20, 21)] {
        let mut bench = bench();
        limit(&mut bench, 0, rate(100));
        bench.pf().write(r::RTTBCNRM, kilobytes);
        let frame = whole(&mut bench, 0, WIRE, 1_020);
        fill(&mut bench, 0, &frame);
        assert_eq!(poll(&mut bench), 1);
        bench.wait_us(10_000);
        assert_eq!(poll(&mut bench), frames, "{kilobytes} KB");
    }
}

#[test]
fn idle_vf_accumulates_no_transmit_credit() {
    let mut bench = bench();
    limit(&mut bench, 0, rate(100));
    for _ in 0..2 {
        bench.wait_us(10_000);
        let frame = whole(&mut bench, 0, WIRE, 1_020);
        bench.vf(0).transmit(&[frame[0]; 8]);
        assert_eq!(poll(&mut bench), 1);
        // Every other poll comes at its deadline, so the card is never late.
        for _ in 1..8 {
            bench.now = bench.poll().deadline.expect("a poll with a delayed frame has a deadline");
            assert_eq!(poll(&mut bench), 1);
        }
    }
}

#[test]
fn refilled_ring_keeps_transmit_credit_of_an_earlier_late_poll() {
    // 1,024 octets at 100 Mb/s take 81.92 us. The poll comes when ten more frames are due, and finds five.
    let mut bench = bench();
    limit(&mut bench, 0, rate(100));
    let frame = whole(&mut bench, 0, WIRE, 1_020);
    bench.vf(0).transmit(&[frame[0]; 6]);
    assert_eq!(poll(&mut bench), 1);
    bench.wait_us(820);
    assert_eq!(poll(&mut bench), 5, "the time of the other five is owed");
    // Idle time of the guest adds nothing.
    bench.wait_us(50_000);
    fill(&mut bench, 0, &frame);
    assert_eq!(poll(&mut bench), 5, "ten in all, as with a poll in time");
    assert_eq!(poll(&mut bench), 0);
}

#[test]
fn pool_with_transmission_off_gets_no_late_poll_credit() {
    let mut bench = bench();
    limit(&mut bench, 0, rate(100));
    let frame = whole(&mut bench, 0, WIRE, 1_020);
    fill(&mut bench, 0, &frame);
    assert_eq!(poll(&mut bench), 1);
    bench.pf().clear(r::VFTE, 1);
    poll(&mut bench);
    bench.wait_us(10_000);
    bench.pf().set(r::VFTE, 1);
    assert_eq!(poll(&mut bench), 1);
}

#[test]
fn new_transmit_rate_gets_no_credit_for_earlier_time() {
    let mut bench = bench();
    bench.wait_us(50_000);
    let frame = whole(&mut bench, 0, WIRE, 1_020);
    bench.vf(0).transmit(&frame);
    assert_eq!(poll(&mut bench), 1);
    bench.wait_us(50_000);
    limit(&mut bench, 0, rate(100));
    fill(&mut bench, 0, &frame);
    assert_eq!(poll(&mut bench), 1);
}

#[test]
fn empty_second_queue_keeps_the_pools_late_poll_credit() {
    let mut bench = bench();
    limit(&mut bench, 0, rate(100));
    let frame = whole(&mut bench, 0, WIRE, 1_020);
    fill(&mut bench, 0, &frame);
    assert_eq!(poll(&mut bench), 1);
    let second = vf::TX_BLOCK + 0x100;
    for at in [tx::TDBAL, tx::TDBAH, tx::TDLEN, tx::TXDCTL] {
        let value = bench.vf(0).read(vf::TX_BLOCK + at);
        bench.vf(0).write(second + at, value);
    }
    poll(&mut bench);
    bench.wait_us(820);
    bench.vf(0).write(second + tx::TDT, 0);
    assert_eq!(poll(&mut bench), 10);
}

#[test]
fn late_polls_send_at_most_the_tx_rate_plus_one_burst_window() {
    let mut bench = bench();
    limit(&mut bench, 0, rate(100));
    let frame = whole(&mut bench, 0, WIRE, 1_020);
    let (mut gaps, mut sizes) = (irregular(0, 3 * MILLISECOND), irregular(0, RING.into()));
    let mut most = 20 * 1_024 + 1_024;
    while bench.now.as_nanos() < SECOND {
        let room =
            RING - 1 - (bench.vf(0).rings().tx_tail + RING - bench.vf(0).read(vf::TX_BLOCK + tx::TDH)) % RING;
        (0..sizes().min(room.into())).for_each(|_| {
            bench.vf(0).put(frame[0]);
        });
        bench.vf(0).ring();
        poll(&mut bench);
        assert!(octets(&mut bench, 0) <= most, "after {:?}", bench.now);
        let gap = gaps();
        bench.now = i82576::Time::from_nanos(bench.now.as_nanos() + gap);
        most += gap / 80;
    }
}
