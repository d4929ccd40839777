//! Tests the TCP timer: software starts a count of milliseconds, and its end interrupts (I210 datasheet 7.3.7 and
//! TCPTIMER).

use crate::common::CardFixture;
use i82576::bits::tcptimer::{COUNT_EN, FINISH, KICK_START, LOOP};
use i82576::bits::{eicr, icr};
use i82576::register as r;
use i82576::{Time, VectorIndex};
use pcie::Function::Pf;

/// Returns a card whose PF uses several vectors, of which 3 is the timer's.
fn bench() -> CardFixture {
    let mut bench = CardFixture::new(1);
    bench.pf().write(r::IVAR_MISC, 0x8083);
    bench.pf().write(r::EIAC, 1 << 3);
    bench.pf().write(r::EIMS, VectorIndex::new(3).unwrap().bit());
    bench
}

#[test]
fn tcp_timer_interrupts_once_at_its_end() {
    let mut bench = bench();
    bench.pf().write(r::TCPTIMER, KICK_START | COUNT_EN | 5);
    assert_eq!(bench.pf().read(r::TCPTIMER), COUNT_EN | 5, "KICK_START reads as zero");
    assert_eq!(bench.poll().deadline, Some(Time::from_micros(5000)));
    bench.wait_us(4999);
    bench.poll();
    bench.expect_no_msix();
    bench.wait_us(1);
    assert_eq!(bench.poll().deadline, None);
    bench.expect_msix(Pf, 3);
    bench.wait_us(20_000);
    bench.expect_nothing();
}

#[test]
fn late_poll_of_a_looping_tcp_timer_sends_one_interrupt() {
    let mut bench = bench();
    bench.pf().write(r::TCPTIMER, KICK_START | COUNT_EN | LOOP | 5);
    for _ in 0..3 {
        bench.wait_us(5000);
        bench.poll();
        bench.expect_msix(Pf, 3);
    }
    bench.wait_us(17_000);
    assert_eq!(bench.poll().deadline, Some(Time::from_micros(35_000)));
    bench.expect_msix(Pf, 3);
    bench.pf().write(r::TCPTIMER, COUNT_EN | 5);
    bench.wait_us(5000);
    bench.poll();
    bench.expect_msix(Pf, 3);
    bench.wait_us(20_000);
    bench.expect_nothing();
}

#[test]
fn tcp_timer_stops_and_resumes_by_its_enable_bit() {
    let mut bench = bench();
    bench.pf().write(r::TCPTIMER, KICK_START | 5);
    bench.wait_us(20_000);
    bench.expect_nothing();
    bench.pf().write(r::TCPTIMER, COUNT_EN | 5);
    bench.wait_us(3000);
    bench.pf().write(r::TCPTIMER, 5);
    bench.wait_us(20_000);
    bench.expect_nothing();
    bench.pf().write(r::TCPTIMER, COUNT_EN | 5);
    bench.wait_us(1999);
    bench.expect_nothing();
    bench.wait_us(1);
    bench.poll();
    bench.expect_msix(Pf, 3);
}

#[test]
fn tcp_timer_finish_bit_interrupts_and_restarts_in_loop_mode() {
    let mut bench = bench();
    bench.pf().write(r::TCPTIMER, KICK_START | COUNT_EN | 5);
    bench.pf().write(r::TCPTIMER, FINISH | COUNT_EN | 5);
    assert_eq!(bench.poll().deadline, None);
    bench.expect_msix(Pf, 3);
    bench.pf().write(r::TCPTIMER, FINISH | COUNT_EN | LOOP | 5);
    assert_eq!(bench.poll().deadline, Some(Time::from_micros(5000)));
    bench.expect_msix(Pf, 3);
}

#[test]
fn tcp_timer_stops_with_zero_duration_or_reset() {
    let mut bench = bench();
    bench.pf().write(r::TCPTIMER, KICK_START | COUNT_EN | LOOP);
    bench.expect_nothing();
    bench.pf().write(r::TCPTIMER, KICK_START | COUNT_EN | LOOP | 5);
    bench.pf().write(r::CTRL, i82576::bits::ctrl::RST);
    bench.wait_us(20_000);
    bench.expect_nothing();
}

#[test]
fn single_interrupt_mode_has_a_tcp_timer_cause_set_by_eics() {
    let mut bench = CardFixture::bare();
    bench.pf().read(r::ICR);
    bench.pf().write(r::IMS, icr::TIMER);
    bench.pf().write(r::TCPTIMER, KICK_START | COUNT_EN | 1);
    bench.wait_us(1000);
    bench.poll();
    assert_eq!(core::mem::take(&mut bench.world.bus.pin), [true]);
    assert_eq!(bench.pf().read(r::EICR) & (eicr::TIMER | eicr::OTHER), eicr::TIMER | eicr::OTHER);
    assert_eq!(bench.pf().read(r::ICR), icr::TIMER | icr::INTA);
    bench.poll();
    assert_eq!(core::mem::take(&mut bench.world.bus.pin), [false]);
    bench.pf().write(r::EICS, eicr::OTHER);
    bench.poll();
    assert!(bench.world.bus.pin.is_empty(), "EICS cannot set OTHER");
    bench.pf().write(r::EICS, eicr::TIMER);
    bench.poll();
    assert_eq!(core::mem::take(&mut bench.world.bus.pin), [true]);
}

#[test]
fn eics_sets_only_vector_bits_with_multiple_msix() {
    let mut bench = bench();
    bench.pf().write(r::EICS, eicr::TIMER | eicr::OTHER);
    bench.expect_nothing();
    assert_eq!(bench.pf().read(r::EICR), 0);
}
