//! Tests interrupt throttling: after a message a vector is silent for its interval. Causes that come meanwhile send one
//! message at its end.

use crate::common::{CardFixture, mac, plain};
use i82576::Time;
use i82576::bits::eitr;
use i82576::register::vf;
use pcie::Function::Vf;
use pcie::config::offset;

const RX: u32 = vf::VTEITR + 4;
/// EITR value for a throttling interval of 100 us.
const INTERVAL: u32 = 100 << eitr::INTERVAL_SHIFT;

/// Returns a card at 1 ms whose VF 0 has a receive vector with the interval [`INTERVAL`].
fn bench() -> CardFixture {
    let mut bench = CardFixture::new(3);
    bench.wait_us(1000);
    bench.vf(0).start();
    bench.vf(0).write(RX, INTERVAL);
    bench
}

/// Raises VF 0's receive vector, and asserts that its message is sent at once.
#[track_caller]
fn fire(bench: &mut CardFixture) {
    bench.vf(0).write(vf::VTEICS, 2);
    assert_eq!(bench.poll().deadline, None);
    bench.expect_msix(Vf(0), 1);
}

#[test]
fn second_cause_interrupts_at_the_end_of_the_interval() {
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
fn causes_within_one_interval_send_one_interrupt() {
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
fn throttle_interval_without_a_cause_sends_no_interrupt() {
    let mut bench = bench();
    fire(&mut bench);
    bench.wait_us(100);
    bench.expect_nothing();
}

#[test]
fn cause_cleared_within_the_interval_sends_no_interrupt() {
    let mut bench = bench();
    fire(&mut bench);
    bench.vf(0).write(vf::VTEICS, 2);
    assert_eq!(bench.vf(0).read(vf::VTEICR), 2);
    assert_eq!(bench.poll().deadline, None);
    bench.wait_us(100);
    bench.expect_nothing();
}

#[test]
fn masked_cause_interrupts_when_unmasked_after_the_interval() {
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
fn unmasked_cause_waits_for_the_end_of_the_interval() {
    let mut bench = bench();
    fire(&mut bench);
    bench.vf(0).write(vf::VTEIMC, 2);
    bench.vf(0).write(vf::VTEICS, 2);
    bench.vf(0).write(vf::VTEIMS, 2);
    assert_eq!(bench.poll().deadline, Some(Time::from_micros(1100)));
    bench.expect_no_msix();
}

#[test]
fn each_vector_has_its_own_throttle_interval() {
    let mut bench = bench();
    bench.vf(0).write(vf::VTEITR, 50 << eitr::INTERVAL_SHIFT);
    bench.vf(0).write(vf::VTEICS, 3);
    bench.poll();
    assert_eq!(bench.msix().len(), 2);
    bench.vf(0).write(vf::VTEICS, 7);
    assert_eq!(bench.poll().deadline, Some(Time::from_micros(1050)), "the earliest end of an interval");
    bench.expect_msix(Vf(0), 2);
    bench.wait_us(50);
    assert_eq!(bench.poll().deadline, Some(Time::from_micros(1100)));
    bench.expect_msix(Vf(0), 0);
}

#[test]
fn eitr_interval_of_zero_does_not_throttle_interrupts() {
    let mut bench = bench();
    bench.vf(0).write(RX, 0);
    for _ in 0..10 {
        fire(&mut bench);
    }
}

#[test]
fn eitr_write_starts_the_throttle_counter_at_its_value() {
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
fn eitr_write_with_cnt_ignr_keeps_the_throttle_counter() {
    let mut bench = bench();
    fire(&mut bench);
    bench.vf(0).write(vf::VTEICS, 2);
    bench.vf(0).write(RX, 10 << eitr::INTERVAL_SHIFT | eitr::CNT_IGNR);
    assert_eq!(bench.poll().deadline, Some(Time::from_micros(1100)), "the running interval stays");
    bench.wait_us(100);
    bench.poll();
    bench.expect_msix(Vf(0), 1);
    bench.vf(0).write(vf::VTEICS, 2);
    assert_eq!(bench.poll().deadline, Some(Time::from_micros(1110)), "the next interval is shorter");
}

#[test]
fn eitr_counter_reads_the_remaining_time() {
    let mut bench = bench();
    let counter = |bench: &mut CardFixture| bench.vf(0).read(RX) >> eitr::COUNTER_SHIFT & 0x3ff;
    assert_eq!(bench.vf(0).read(RX), INTERVAL);
    fire(&mut bench);
    for (wait, expected) in [(0, 25), (20, 20), (60, 5), (20, 0), (1000, 0)] {
        bench.wait_us(wait);
        assert_eq!(counter(&mut bench), expected);
    }
    assert_eq!(bench.vf(0).read(RX) & eitr::CNT_IGNR, 0, "CNT_IGNR reads zero");
}

#[test]
fn eitr_counter_saturates_at_10_bits() {
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
fn longest_interrupt_throttle_interval_is_8_ms() {
    let mut bench = bench();
    bench.vf(0).write(RX, 0xffff);
    fire(&mut bench);
    bench.vf(0).write(vf::VTEICS, 2);
    assert_eq!(bench.poll().deadline, Some(Time::from_micros(1000 + 8191)));
}

#[test]
fn interrupt_throttle_at_the_largest_time_does_not_panic() {
    let mut bench = bench();
    bench.now = Time::from_nanos(u64::MAX);
    fire(&mut bench);
    bench.vf(0).write(RX, u32::MAX);
    bench.vf(0).write(RX, INTERVAL | 0x3ff << eitr::COUNTER_SHIFT);
    bench.poll();
}

#[test]
fn vf_reset_ends_the_vfs_throttle_intervals() {
    let mut bench = bench();
    fire(&mut bench);
    bench.vf(0).write(vf::CTRL, i82576::bits::ctrl::RST);
    bench.vf(0).start();
    bench.vf(0).write(vf::VTEICS, 2);
    assert_eq!(bench.poll().deadline, None);
    bench.expect_msix(Vf(0), 1);
}

#[test]
fn vector_without_bus_mastering_requests_no_poll() {
    let mut bench = bench();
    fire(&mut bench);
    bench.vf(0).write(vf::VTEICS, 2);
    bench.config(Vf(0), offset::COMMAND, 0);
    assert_eq!(bench.poll().deadline, None, "the end of the interval needs no poll");
    bench.config(Vf(0), offset::COMMAND, u32::from(offset::COMMAND_BUS_MASTER));
    assert_eq!(bench.poll().deadline, Some(Time::from_micros(1100)));
}
