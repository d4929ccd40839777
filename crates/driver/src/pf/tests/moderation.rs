//! Tests the adaptive rule for a VF's interrupt rate over resets of the VF, which restart the card's counter of packets.

use super::{StoredRegisters, vf};
use crate::hal::Hal;
use crate::moderation::SAMPLE_PERIOD;
use crate::pf::Pf;
use i82576::bits::{eitr, ivar};
use i82576::descriptor::SIZE;
use i82576::register::{self as r, rx, rx_block, vf_stats};
use i82576::{Time, VectorIndex};
use policy::{InterruptBounds, VfPolicy};

/// Packets that a VF receives in a sampling period; the rule moderates its interrupts to 1,125 a second.
const PACKETS: u32 = 60_000;
/// Interrupt interval for that rate and a ring of 64 descriptors, in microseconds.
const INTERVAL_US: u32 = 888;

/// Creates a PF with two enabled VFs, of which VF 0 has the adaptive rule and a receive ring.
fn adaptive_vf() -> (StoredRegisters, Pf) {
    let mut hal = StoredRegisters { now: Time::from_micros(1), ..StoredRegisters::default() };
    let mut pf = Pf::probe(&mut hal).unwrap();
    pf.enable_vfs(&mut hal, 2).unwrap();
    let interrupts = InterruptBounds { adaptive: true, ..InterruptBounds::default() };
    pf.set_policy(&mut hal, vf(0), VfPolicy { interrupts, ..VfPolicy::default() }).unwrap();
    hal.write(r::vtivar(vf(0)), ivar::VALID.into());
    hal.write(rx_block(vf(0).queue(0)) + rx::RDLEN, 64 * SIZE as u32);
    (hal, pf)
}

/// Lets a sampling period pass in which VF 0 receives packets, and runs the PF driver. Returns the interval of VF 0's
/// interrupts in microseconds.
fn pass_period(hal: &mut StoredRegisters, pf: &mut Pf) -> u32 {
    count(hal, PACKETS);
    hal.wait(SAMPLE_PERIOD);
    pf.visit(hal);
    interval(hal)
}

fn count(hal: &mut StoredRegisters, packets: u32) {
    let counter = r::vf_block(vf(0)) + vf_stats::VFGPRC;
    let counted = hal.read(counter).wrapping_add(packets);
    hal.write(counter, counted);
}

fn interval(hal: &mut StoredRegisters) -> u32 {
    eitr::interval_us(hal.read(r::eitr(VectorIndex::new(vf(0).first_vector()).unwrap())))
}

/// Resets VF 0, as by a function-level reset: the counter restarts, and the PF driver finds the reset in its next run.
fn reset(hal: &mut StoredRegisters) {
    hal.write(r::vf_block(vf(0)) + vf_stats::VFGPRC, 0);
    hal.write(r::eitr(VectorIndex::new(vf(0).first_vector()).unwrap()), 0);
    hal.write(r::VFLRE, 1);
}

#[test]
fn reset_of_a_vf_keeps_its_adaptive_interrupt_interval() {
    let (mut hal, mut pf) = adaptive_vf();
    pass_period(&mut hal, &mut pf);
    assert_eq!(pass_period(&mut hal, &mut pf), INTERVAL_US);
    for _ in 0..3 {
        reset(&mut hal);
        pf.visit(&mut hal);
        hal.write(r::VFLRE, 0);
        assert_eq!(interval(&mut hal), INTERVAL_US, "the period is not over");
        assert_eq!(pass_period(&mut hal, &mut pf), INTERVAL_US);
    }
    // The counter of a card wraps all the same.
    count(&mut hal, u32::MAX - 10 - 4 * PACKETS);
    pf.visit(&mut hal);
    hal.wait(SAMPLE_PERIOD);
    pf.visit(&mut hal);
    assert_eq!(pass_period(&mut hal, &mut pf), INTERVAL_US);
}

#[test]
fn waiting_reset_of_a_vf_is_not_sampled() {
    let (mut hal, mut pf) = adaptive_vf();
    pass_period(&mut hal, &mut pf);
    pass_period(&mut hal, &mut pf);
    pf.hold_requests(1);
    reset(&mut hal);
    assert_eq!(pass_period(&mut hal, &mut pf), INTERVAL_US);
    pf.hold_requests(0);
    pf.visit(&mut hal);
    hal.write(r::VFLRE, 0);
    assert_eq!(pass_period(&mut hal, &mut pf), INTERVAL_US);
}

#[test]
fn reset_of_the_card_restarts_the_packet_rate() {
    let (mut hal, mut pf) = adaptive_vf();
    pass_period(&mut hal, &mut pf);
    pass_period(&mut hal, &mut pf);
    hal.write(r::vf_block(vf(0)) + vf_stats::VFGPRC, 0);
    pf.reset(&mut hal).unwrap();
    pf.visit(&mut hal);
    assert_eq!(pass_period(&mut hal, &mut pf), INTERVAL_US);
}
