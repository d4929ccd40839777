//! The TCP timer: a count of milliseconds that software starts, and an interrupt at its end (datasheet of the I210,
//! 7.3.7 and TCPTIMER).

use crate::common::Bench;
use i82576::bits::tcptimer::{COUNT_EN, FINISH, KICK_START, LOOP};
use i82576::bits::{eicr, icr};
use i82576::register as r;
use i82576::{Time, Vector};
use pcie::Function::Pf;

/// A PF with several vectors, of which 3 is the timer's.
fn bench() -> Bench {
    let mut bench = Bench::new(1);
    bench.pf().write(r::IVAR_MISC, 0x8083);
    bench.pf().write(r::EIAC, 1 << 3);
    bench.pf().write(r::EIMS, Vector::new(3).unwrap().bit());
    bench
}

#[test]
fn it_interrupts_at_the_end_of_its_count_and_only_once() {
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
fn in_a_loop_it_begins_again_and_what_was_missed_is_one_interrupt() {
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
fn it_stands_still_while_counting_is_off_and_goes_on_from_there() {
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
fn finish_interrupts_at_once_and_the_count_is_over_unless_it_loops() {
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
fn a_duration_of_zero_counts_nothing_and_a_reset_stops_it() {
    let mut bench = bench();
    bench.pf().write(r::TCPTIMER, KICK_START | COUNT_EN | LOOP);
    bench.expect_nothing();
    bench.pf().write(r::TCPTIMER, KICK_START | COUNT_EN | LOOP | 5);
    bench.pf().write(r::CTRL, i82576::bits::ctrl::RST);
    bench.wait_us(20_000);
    bench.expect_nothing();
}

#[test]
fn with_one_interrupt_for_all_it_is_a_cause_of_its_own_which_eics_can_set() {
    let mut bench = Bench::bare();
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
    assert!(bench.world.bus.pin.is_empty(), "ICS is for the others");
    bench.pf().write(r::EICS, eicr::TIMER);
    bench.poll();
    assert_eq!(core::mem::take(&mut bench.world.bus.pin), [true]);
}

#[test]
fn with_several_vectors_eics_has_vectors_only() {
    let mut bench = bench();
    bench.pf().write(r::EICS, eicr::TIMER | eicr::OTHER);
    bench.expect_nothing();
    assert_eq!(bench.pf().read(r::EICR), 0);
}
