//! Interrupt throttling: a vector that has fired is silent for its interval, and what comes meanwhile fires
//! once at the end of it.

use crate::common::{Bench, mac, plain};
use i82576::Time;
use i82576::bits::eitr;
use i82576::register::vf;
use pcie::Function::Vf;
use pcie::config::offset;

const RX: u32 = vf::VTEITR + 4;
/// 100 us.
const INTERVAL: u32 = 100 << eitr::INTERVAL_SHIFT;

/// VF 0 with its receive vector throttled, at 1 ms.
fn bench() -> Bench {
    let mut bench = Bench::new(3);
    bench.wait_us(1000);
    bench.vf(0).start();
    bench.vf(0).write(RX, INTERVAL);
    bench
}

/// The vector fires for the first time.
#[track_caller]
fn fire(bench: &mut Bench) {
    bench.vf(0).write(vf::VTEICS, 2);
    assert_eq!(bench.poll().deadline, None);
    bench.expect_msix(Vf(0), 1);
}

#[test]
fn the_first_fires_at_once_and_the_next_when_the_interval_is_over() {
    let mut bench = bench();
    fire(&mut bench);
    bench.wait_us(1);
    bench.vf(0).write(vf::VTEICS, 2);
    assert_eq!(bench.poll().deadline, Some(Time::from_micros(1100)));
    bench.wait_us(98);
    bench.poll();
    bench.expect_no_msix();
    bench.wait_us(1);
    assert_eq!(bench.poll().deadline, None);
    bench.expect_msix(Vf(0), 1);
}

#[test]
fn many_causes_in_an_interval_are_one_message() {
    let mut bench = bench();
    fire(&mut bench);
    for _ in 0..50 {
        bench.wait_us(1);
        bench.wire_sends(&plain(mac(0), mac(9), 60));
    }
    bench.expect_no_msix();
    bench.wait_us(50);
    bench.poll();
    bench.expect_msix(Vf(0), 1);
    bench.wait_us(1000);
    bench.expect_nothing();
}

#[test]
fn nothing_fires_at_expiry_if_nothing_came() {
    let mut bench = bench();
    fire(&mut bench);
    bench.wait_us(100);
    bench.expect_nothing();
}

#[test]
fn nothing_fires_at_expiry_if_the_cause_is_gone() {
    let mut bench = bench();
    fire(&mut bench);
    bench.vf(0).write(vf::VTEICS, 2);
    assert_eq!(bench.vf(0).read(vf::VTEICR), 2);
    assert_eq!(bench.poll().deadline, None);
    bench.wait_us(100);
    bench.expect_nothing();
}

#[test]
fn nothing_fires_at_expiry_while_masked_but_at_once_when_unmasked_later() {
    let mut bench = bench();
    fire(&mut bench);
    bench.vf(0).write(vf::VTEICS, 2);
    bench.vf(0).write(vf::VTEIMC, 2);
    assert_eq!(bench.poll().deadline, None);
    bench.wait_us(150);
    bench.expect_nothing();
    bench.vf(0).write(vf::VTEIMS, 2);
    bench.poll();
    bench.expect_msix(Vf(0), 1);
}

#[test]
fn unmasking_within_the_interval_waits_for_its_end() {
    let mut bench = bench();
    fire(&mut bench);
    bench.vf(0).write(vf::VTEIMC, 2);
    bench.vf(0).write(vf::VTEICS, 2);
    bench.vf(0).write(vf::VTEIMS, 2);
    assert_eq!(bench.poll().deadline, Some(Time::from_micros(1100)));
    bench.expect_no_msix();
}

#[test]
fn vectors_are_throttled_each_on_its_own() {
    let mut bench = bench();
    bench.vf(0).write(vf::VTEITR, 50 << eitr::INTERVAL_SHIFT);
    bench.vf(0).write(vf::VTEICS, 3);
    bench.poll();
    assert_eq!(bench.msix().len(), 2);
    bench.vf(0).write(vf::VTEICS, 7);
    assert_eq!(bench.poll().deadline, Some(Time::from_micros(1050)), "the nearest");
    bench.expect_msix(Vf(0), 2);
    bench.wait_us(50);
    assert_eq!(bench.poll().deadline, Some(Time::from_micros(1100)));
    bench.expect_msix(Vf(0), 0);
}

#[test]
fn no_interval_no_throttle() {
    let mut bench = bench();
    bench.vf(0).write(RX, 0);
    for _ in 0..10 {
        fire(&mut bench);
    }
}

#[test]
fn a_write_starts_the_counter_where_it_says() {
    let mut bench = bench();
    fire(&mut bench);
    bench.vf(0).write(vf::VTEICS, 2);
    bench.vf(0).write(RX, INTERVAL);
    bench.poll();
    bench.expect_msix(Vf(0), 1);
    bench.vf(0).write(vf::VTEICS, 2);
    bench.vf(0).write(RX, INTERVAL | 5 << eitr::COUNTER_SHIFT);
    assert_eq!(bench.poll().deadline, Some(Time::from_micros(1020)), "5 steps of 4 us");
}

#[test]
fn cnt_ignr_changes_the_interval_and_leaves_the_counter() {
    let mut bench = bench();
    fire(&mut bench);
    bench.vf(0).write(vf::VTEICS, 2);
    bench.vf(0).write(RX, 10 << eitr::INTERVAL_SHIFT | eitr::CNT_IGNR);
    assert_eq!(bench.poll().deadline, Some(Time::from_micros(1100)), "this time as before");
    bench.wait_us(100);
    bench.poll();
    bench.expect_msix(Vf(0), 1);
    bench.vf(0).write(vf::VTEICS, 2);
    assert_eq!(bench.poll().deadline, Some(Time::from_micros(1110)), "from now on shorter");
}

#[test]
fn the_counter_reads_back_as_it_runs_down() {
    let mut bench = bench();
    let counter = |bench: &mut Bench| bench.vf(0).read(RX) >> eitr::COUNTER_SHIFT & 0x3ff;
    assert_eq!(bench.vf(0).read(RX), INTERVAL);
    fire(&mut bench);
    for (wait, expected) in [(0, 25), (20, 20), (60, 5), (20, 0), (1000, 0)] {
        bench.wait_us(wait);
        assert_eq!(counter(&mut bench), expected);
    }
    assert_eq!(bench.vf(0).read(RX) & eitr::CNT_IGNR, 0, "reads as zero");
}

#[test]
fn the_counter_reads_its_end_while_more_is_left_than_it_can_say() {
    let mut bench = bench();
    bench.vf(0).write(RX, 8191 << eitr::INTERVAL_SHIFT);
    fire(&mut bench);
    assert_eq!(bench.vf(0).read(RX) >> eitr::COUNTER_SHIFT, 0x3ff, "10 bits of 4 us");
    bench.wait_us(8191 - 4092);
    assert_eq!(bench.vf(0).read(RX) >> eitr::COUNTER_SHIFT, 0x3ff);
    bench.wait_us(4);
    assert_eq!(bench.vf(0).read(RX) >> eitr::COUNTER_SHIFT, 0x3fe);
}

#[test]
fn the_longest_interval_is_8_ms() {
    let mut bench = bench();
    bench.vf(0).write(RX, 0xffff);
    fire(&mut bench);
    bench.vf(0).write(vf::VTEICS, 2);
    assert_eq!(bench.poll().deadline, Some(Time::from_micros(1000 + 8191)));
}

#[test]
fn time_at_its_end_is_no_panic() {
    let mut bench = bench();
    bench.now = Time::from_nanos(u64::MAX);
    fire(&mut bench);
    bench.vf(0).write(RX, u32::MAX);
    bench.vf(0).write(RX, INTERVAL | 0x3ff << eitr::COUNTER_SHIFT);
    bench.poll();
}

#[test]
fn a_reset_ends_the_silence_that_the_last_owner_caused() {
    let mut bench = bench();
    fire(&mut bench);
    bench.vf(0).write(vf::CTRL, i82576::bits::ctrl::RST);
    bench.vf(0).start();
    bench.vf(0).write(vf::VTEICS, 2);
    assert_eq!(bench.poll().deadline, None);
    bench.expect_msix(Vf(0), 1);
}

#[test]
fn a_vector_whose_function_does_not_master_the_bus_asks_for_no_poll() {
    let mut bench = bench();
    fire(&mut bench);
    bench.vf(0).write(vf::VTEICS, 2);
    bench.config(Vf(0), offset::COMMAND, 0);
    assert_eq!(bench.poll().deadline, None, "the end of its interval changes nothing");
    bench.config(Vf(0), offset::COMMAND, u32::from(offset::COMMAND_BUS_MASTER));
    assert_eq!(bench.poll().deadline, Some(Time::from_micros(1100)));
}
