//! Tests transmit rates (RTTDQSEL, RTTBCNRC, RTTBCNRM) and the bandwidth between pools. They are exact in virtual time
//! for frames of any size, a delayed pool delays no other, and no frame is lost. Each test moves the clock from one
//! deadline of the card to the next. `lateness` tests cards that are polled late.

use crate::common::{CardFixture, RING, data, index, mac, packet, plain, tcp};
use core::num::NonZeroU64;
use i82576::bits::dctl;
use i82576::bits::rttbcnrc::{INTEGER_SHIFT, RS_ENA};
use i82576::descriptor::tx::{AdvancedContextDescriptor, AdvancedDataDescriptor, L4PacketType};
use i82576::register::{self as r, tx, vf};
use i82576::{MacAddress, Time};
use pcie::Function;

pub(crate) const WIRE: MacAddress = mac(9);
pub(crate) const SECOND: u64 = 1_000_000_000;

/// Returns a card whose VFs 0 to 2 have running rings.
pub(crate) fn bench() -> CardFixture {
    let mut bench = CardFixture::new(3);
    (0..3).for_each(|vf| bench.vf(vf).start());
    bench
}

/// Returns RTTBCNRC as Linux igb writes it for `mbps` Mb/s on a gigabit link.
pub(crate) fn rate(mbps: u32) -> u32 {
    let (whole, rest) = (1_000 / mbps, 1_000 % mbps);
    RS_ENA | whole << INTEGER_SHIFT | ((rest << 14) / mbps)
}

pub(crate) fn limit(bench: &mut CardFixture, pool: u32, control: u32) {
    bench.pf().write(r::RTTDQSEL, pool);
    bench.pf().write(r::RTTBCNRM, 0x14);
    bench.pf().write(r::RTTBCNRC, control);
}

/// Returns the descriptors of a frame of `length` bytes from a VF.
pub(crate) fn whole(bench: &mut CardFixture, from: u8, to: MacAddress, length: usize) -> Vec<[u8; 16]> {
    let address = bench.vf(from).place(&plain(to, mac(from), length - 14));
    vec![packet(address, length as u16).emit()]
}

/// Returns the descriptors of a TCP packet from a VF. The card cuts the packet into segments of 1,448 bytes.
pub(crate) fn large(bench: &mut CardFixture, from: u8, to: MacAddress, payload: usize) -> Vec<[u8; 16]> {
    let address = bench.vf(from).place(&tcp(to, mac(from), &vec![7; payload]));
    let context = AdvancedContextDescriptor {
        mac_length: 14,
        ip_length: 20,
        l4_length: 20,
        ipv4: true,
        l4: L4PacketType::Tcp,
        mss: 1_448,
        ..AdvancedContextDescriptor::default()
    };
    let first = AdvancedDataDescriptor { segment: true, payload_length: payload as u32, ..data(address, 54) };
    vec![context.emit(), first.emit(), packet(address + 54, payload as u16).emit()]
}

/// Fills a VF's transmit ring with copies of a packet, and rings the doorbell.
pub(crate) fn fill(bench: &mut CardFixture, from: u8, descriptors: &[[u8; 16]]) {
    loop {
        let head = bench.vf(from).read(vf::TX_BLOCK + tx::TDH);
        let used = (bench.vf(from).rings().tx_tail + RING - head) % RING;
        if used + descriptors.len() as u32 >= RING {
            return bench.vf(from).ring();
        }
        for raw in descriptors {
            bench.vf(from).put(*raw);
        }
    }
}

/// Returns the octets that the VF has sent by its own counter, with check sequences.
pub(crate) fn octets(bench: &mut CardFixture, from: u8) -> u64 {
    bench.vf(from).read(vf::VFGOTC).into()
}

/// Lets VFs send without pause until `end`, with a poll at each of the card's deadlines.
fn run(bench: &mut CardFixture, senders: &[(u8, Vec<[u8; 16]>)], end: u64) {
    loop {
        senders.iter().for_each(|(from, descriptors)| fill(bench, *from, descriptors));
        let poll = bench.poll_once();
        bench.world.bus.log.clear();
        bench.world.wire.outgoing.clear();
        if !poll.more {
            let deadline = poll.deadline.expect("a poll with delayed frames has a deadline");
            assert!(deadline > bench.now, "a deadline is in the future");
            if deadline.as_nanos() >= end {
                return;
            }
            bench.now = deadline;
        }
    }
}

#[test]
fn rate_limited_frame_leaves_at_its_due_nanosecond() {
    let mut bench = bench();
    limit(&mut bench, 0, rate(300));
    let frame = whole(&mut bench, 0, WIRE, 1_000);
    let factor = u64::from(rate(300) & !RS_ENA);
    for frames in 1..=200 {
        fill(&mut bench, 0, &frame);
        let due = bench.poll_once().deadline;
        // A byte takes 8 ns on the link. The rate factor has 14 binary places, and none of them is rounded away.
        assert_eq!(due, Some(Time::from_nanos((frames * 1_004 * 8 * factor) >> 14)), "frame {frames}");
        bench.now = due.unwrap();
    }
}

#[track_caller]
pub(crate) fn assert_near(octets: u64, mbps: u64) {
    let wanted = mbps * 1_000_000 / 8;
    assert!(octets.abs_diff(wanted) * 50 <= wanted, "{octets} octets of {wanted}");
}

#[test]
fn transmit_rate_is_exact_to_2_percent_for_any_frame_length() {
    for (mbps, length) in [(1, 60), (1, 1_514), (3, 333), (10, 100), (100, 60), (100, 1_514), (700, 1_514)] {
        let mut bench = bench();
        limit(&mut bench, 0, rate(mbps));
        let frame = whole(&mut bench, 0, WIRE, length);
        run(&mut bench, &[(0, frame)], SECOND);
        assert_near(octets(&mut bench, 0), mbps.into());
    }
}

#[test]
fn transmit_rate_applies_within_large_packets() {
    for mbps in [1, 10, 300] {
        let mut bench = bench();
        limit(&mut bench, 0, rate(mbps));
        let packet = large(&mut bench, 0, WIRE, 60_000);
        run(&mut bench, &[(0, packet)], SECOND);
        assert_near(octets(&mut bench, 0), mbps.into());
    }
}

#[test]
fn rate_limited_segments_equal_those_sent_without_a_limit() {
    let (mut free, mut limited) = (bench(), bench());
    limit(&mut limited, 0, rate(10));
    for bench in [&mut free, &mut limited] {
        let packet = large(bench, 0, WIRE, 20_000);
        bench.vf(0).transmit(&packet);
    }
    let (expected, mut got) = (free.wire_got(), limited.wire_got());
    assert_eq!((expected.len(), got.len()), (14, 1), "the rate sends one segment at a time");
    while let Some(deadline) = limited.poll().deadline {
        limited.now = deadline;
        limited.poll();
        got.extend(limited.wire_got());
    }
    assert!(got == expected);
    assert_eq!(limited.pf().read(r::TSCTC), 1);
}

#[test]
fn frame_delayed_by_its_rate_limit_stays_in_the_ring() {
    let mut bench = bench();
    limit(&mut bench, 0, rate(100));
    let frame = whole(&mut bench, 0, WIRE, 1_246);
    bench.vf(0).transmit(&[frame[0], frame[0]]);
    assert_eq!(bench.wire_got().len(), 1);
    assert_eq!(bench.vf(0).read(vf::TX_BLOCK + tx::TDH), 1);
    assert!(bench.vf(0).is_done(0) && !bench.vf(0).is_done(1));
    let due = Time::from_micros(100);
    assert_eq!(bench.poll().deadline, Some(due), "1,250 octets at 100 Mb/s");
    bench.now = Time::from_nanos(due.as_nanos() - 1);
    bench.poll();
    assert!(bench.wire_got().is_empty());
    bench.now = due;
    assert_eq!(bench.poll().deadline, None, "no frame is delayed any more");
    assert_eq!((bench.wire_got().len(), bench.vf(0).is_done(1)), (1, true));
}

#[test]
fn rate_limit_of_one_pool_does_not_delay_other_pools() {
    let mut bench = bench();
    limit(&mut bench, 0, rate(10));
    let [slow, fast] = [0, 1].map(|vf| whole(&mut bench, vf, WIRE, 1_514));
    fill(&mut bench, 0, &slow);
    for _ in 0..100 {
        bench.poll();
        bench.wire_got();
        bench.wait_us(10);
        bench.vf(1).transmit(&fast);
        assert!(bench.wire_got().iter().any(|frame| frame[11] == 1));
    }
    assert!(octets(&mut bench, 0) <= 2 * 1_518, "a millisecond at 10 Mb/s");
}

#[test]
fn each_pool_has_its_own_transmit_rate() {
    let mut bench = bench();
    for (pool, mbps) in [(0, 20), (1, 50), (2, 130)] {
        limit(&mut bench, pool, rate(mbps));
    }
    let senders = [0u8, 1, 2].map(|vf| (vf, whole(&mut bench, vf, WIRE, 1_000)));
    run(&mut bench, &senders, SECOND);
    for (vf, mbps) in [(0, 20), (1, 50), (2, 130)] {
        assert_near(octets(&mut bench, vf), mbps);
    }
}

#[test]
fn rttdqsel_selects_the_pool_whose_rate_is_in_rttbcnrc() {
    let mut bench = bench();
    limit(&mut bench, 2, rate(40));
    bench.pf().write(r::RTTDQSEL, 1);
    assert_eq!(bench.pf().read(r::RTTBCNRC), 0);
    bench.pf().write(r::RTTDQSEL, 2);
    assert_eq!(bench.pf().read(r::RTTBCNRC), rate(40));
    bench.pf().write(r::RTTDQSEL, 10);
    assert_eq!(bench.pf().read(r::RTTBCNRC), rate(40), "the pool's second queue shares the rate");
}

#[test]
fn second_queue_does_not_double_the_pools_transmit_rate() {
    let mut bench = bench();
    limit(&mut bench, 0, rate(100));
    let frame = plain(WIRE, mac(0), 1_232);
    let second = vf::TX_BLOCK + 0x100;
    // The second queue reads the same ring as the first.
    for at in [tx::TDBAL, tx::TDBAH, tx::TDLEN, tx::TXDCTL] {
        let value = bench.vf(0).read(vf::TX_BLOCK + at);
        bench.vf(0).write(second + at, value);
    }
    bench.vf(0).send(&frame);
    bench.vf(0).write(second + tx::TDT, 1);
    bench.poll();
    assert_eq!(bench.wire_got().len(), 1);
    bench.wait_us(100);
    bench.poll();
    assert_eq!(bench.wire_got().len(), 1);
}

#[test]
fn transmit_rate_without_its_enable_bit_has_no_effect() {
    let mut bench = bench();
    limit(&mut bench, 0, rate(1) & !RS_ENA);
    let frame = whole(&mut bench, 0, WIRE, 1_514);
    fill(&mut bench, 0, &frame);
    assert_eq!(bench.poll().deadline, None);
    assert_eq!(bench.wire_got().len(), RING as usize - 1);
}

#[test]
fn clearing_a_transmit_rate_sends_all_delayed_frames() {
    let mut bench = bench();
    limit(&mut bench, 0, rate(1));
    let packet = large(&mut bench, 0, WIRE, 60_000);
    bench.vf(0).transmit(&packet);
    assert_eq!(bench.wire_got().len(), 1);
    limit(&mut bench, 0, 0);
    assert_eq!(bench.poll().deadline, None);
    assert_eq!(bench.wire_got().len(), 41);
}

/// Tests the cost of a packet that waits between segments: the card reads descriptors and bytes when the packet begins,
/// so a later visit pays only for the segments that it sends.
#[test]
fn resumed_large_packet_uses_budget_only_for_unsent_segments() {
    let mut bench = bench();
    limit(&mut bench, 0, rate(100));
    let (long, short) = (large(&mut bench, 0, WIRE, 40_000), whole(&mut bench, 0, WIRE, 60));
    for raw in long.iter().chain(&[short[0]; 10]) {
        bench.vf(0).put(*raw);
    }
    bench.vf(0).ring();
    while bench.world.wire.outgoing.len() < 25 {
        bench.now = bench.poll_once().deadline.unwrap_or(bench.now);
    }
    limit(&mut bench, 0, 0);
    (bench.now, bench.budget.frames) = (Time::from_nanos(SECOND), 8);
    bench.poll_once();
    assert_eq!(bench.world.wire.outgoing.len(), 33, "three segments, and five frames behind them");
}

#[test]
fn function_reset_drops_segments_delayed_by_a_rate_limit() {
    let mut bench = bench();
    limit(&mut bench, 0, rate(1));
    let packet = large(&mut bench, 0, WIRE, 60_000);
    bench.vf(0).transmit(&packet);
    bench.vf(0).write(r::CTRL, i82576::bits::ctrl::RST);
    bench.pf().set(r::VFTE, 1);
    bench.wait_us(1_000_000);
    bench.expect_nothing();
    assert_eq!(unclaimed(&bench, 0), 1);
    bench.pf().write(r::RTTDQSEL, 0);
    assert_eq!(bench.pf().read(r::RTTBCNRC), rate(1), "a VF's reset keeps the PF's rate");
}

/// Returns the number of a VF's packets that were not received, or only in part.
fn unclaimed(bench: &CardFixture, vf: u8) -> u64 {
    bench.nic.counters()[index(vf).index()].tx_unclaimed
}

#[test]
fn packet_dropped_between_segments_is_counted_once() {
    let causes: [fn(&mut CardFixture); 4] = [
        |bench| bench.vf(0).write(vf::TX_BLOCK + tx::TDLEN, 256),
        |bench| bench.vf(0).write(vf::TX_BLOCK + tx::TXDCTL, 0),
        |bench| bench.nic.reset_function(Function::Vf(0)),
        |bench| bench.pf().write(r::CTRL, i82576::bits::ctrl::RST),
    ];
    for cause in causes {
        let mut bench = bench();
        limit(&mut bench, 0, rate(1));
        let packet = large(&mut bench, 0, WIRE, 60_000);
        bench.vf(0).transmit(&packet);
        assert_eq!((bench.wire_got().len(), unclaimed(&bench, 0)), (1, 0));
        for _ in 0..2 {
            cause(&mut bench);
            assert_eq!((unclaimed(&bench, 0), unclaimed(&bench, 1)), (1, 0));
        }
    }
}

#[test]
fn port_reset_clears_every_transmit_rate() {
    let mut bench = bench();
    limit(&mut bench, 0, rate(1));
    bench.pf().write(r::CTRL, i82576::bits::ctrl::RST);
    bench.set_up_port(3);
    bench.vf(0).start();
    let frame = whole(&mut bench, 0, WIRE, 1_514);
    fill(&mut bench, 0, &frame);
    assert_eq!(bench.poll().deadline, None);
    assert_eq!(bench.wire_got().len(), RING as usize - 1);
}

#[test]
fn pool_with_transmission_off_requests_no_poll() {
    let mut bench = bench();
    limit(&mut bench, 0, rate(1));
    let frame = whole(&mut bench, 0, WIRE, 1_514);
    fill(&mut bench, 0, &frame);
    assert!(bench.poll().deadline.is_some());
    bench.pf().clear(r::VFTE, 1);
    assert_eq!(bench.poll().deadline, None);
}

#[test]
fn pools_share_loopback_bandwidth_and_wire_frames_use_none() {
    let mut bench = CardFixture::with_loopback(3, NonZeroU64::new(280_000_000));
    (0..3).for_each(|vf| bench.vf(vf).start());
    let senders = [(0, large(&mut bench, 0, mac(2), 60_000)), (1, whole(&mut bench, 1, mac(2), 1_514))];
    run(&mut bench, &senders, SECOND);
    let [large, small] = [0, 1].map(|vf| octets(&mut bench, vf));
    assert_near(large + small, 280);
    assert!(large.abs_diff(small) * 10 < large, "{large} and {small}: both VFs send in turn");
    let frame = whole(&mut bench, 2, WIRE, 1_514);
    fill(&mut bench, 2, &frame);
    bench.poll();
    assert_eq!(bench.wire_got().len(), RING as usize - 1);
}

#[test]
fn each_copy_of_a_frame_takes_loopback_bandwidth() {
    let mut bench = CardFixture::with_loopback(3, NonZeroU64::new(100_000_000));
    bench.vf(0).start();
    let frame = whole(&mut bench, 0, MacAddress::BROADCAST, 1_246);
    bench.vf(0).transmit(&[frame[0], frame[0]]);
    assert_eq!(bench.poll().deadline, Some(Time::from_micros(700)), "to seven pools");
}

/// Tests that a write of SWFLSH or a threshold to TXDCTL keeps a pending packet; only a disabled queue drops it.
#[test]
fn unfinished_packet_survives_a_txdctl_write_that_keeps_enable() {
    for (control, frames) in [(dctl::ENABLE | dctl::SWFLSH | 1 << dctl::WTHRESH_SHIFT, 14), (0, 1)] {
        let mut bench = bench();
        limit(&mut bench, 0, rate(10));
        let packet = large(&mut bench, 0, WIRE, 20_000);
        bench.vf(0).transmit(&packet);
        bench.vf(0).write(vf::TX_BLOCK + tx::TXDCTL, control);
        while let Some(deadline) = bench.poll().deadline {
            bench.now = deadline;
        }
        assert_eq!(bench.wire_got().len(), frames, "TXDCTL {control:#x}");
    }
}
