//! Tests interrupt vectors: automask, intervals, causes, and software interrupts.

use crate::world::CardFixture;
use avf::bits::{dyn_ctl, icr0};
use avf::register as r;
use core::time::Duration;
use driver::Hal;
use driver::avf::vf::AvfDriver;
use pcie::Function;

fn running() -> (CardFixture, AvfDriver, AvfDriver) {
    let mut world = CardFixture::new(2);
    let [a, b] = [0, 1].map(|vf| world.start(vf));
    world.round();
    world.memories.interrupts.clear();
    (world, a, b)
}

fn of(world: &mut CardFixture, vf: u8) -> Vec<u16> {
    let sent = std::mem::take(&mut world.memories.interrupts);
    sent.into_iter().filter(|(function, _)| *function == Function::Vf(vf)).map(|(_, vector)| vector).collect()
}

#[test]
fn vector_interrupts_once_and_then_latches_until_reenabled() {
    let (mut world, mut a, b) = running();
    for _ in 0..3 {
        a.transmit(&mut world.vf(0), 2, &[0; 60]);
        world.round();
    }
    assert_eq!(of(&mut world, 1), [3], "pair 2 raises vector 3; INTENA clears itself");
    b.enable_interrupt(&mut world.vf(1), 3);
    world.round();
    assert_eq!(of(&mut world, 1), [3], "all causes kept meanwhile are one interrupt");
    b.enable_interrupt(&mut world.vf(1), 3);
    world.round();
    assert_eq!(of(&mut world, 1), [], "no cause is pending");
}

#[test]
fn next_interrupt_of_a_vector_waits_for_its_itr_interval() {
    let (mut world, mut a, _) = running();
    let vector = 1;
    let interval = 50 << dyn_ctl::INTERVAL_SHIFT | dyn_ctl::INTENA;
    let mut frame = |world: &mut CardFixture| {
        world.vf(1).write(r::dyn_ctl(vector), interval);
        a.transmit(&mut world.vf(0), 0, &[0; 60]);
        world.round();
    };
    frame(&mut world);
    assert_eq!(world.vf(1).read(r::itr(0, vector)), 50, "a write of control sets the interval it names");
    assert_eq!(of(&mut world, 1), [1]);
    frame(&mut world);
    assert_eq!(of(&mut world, 1), [], "100 us are not over");
    let poll = world.card.poll(world.now, &mut world.memories);
    assert_eq!(poll.deadline, Some(world.now + Duration::from_micros(100)));
    world.now = world.now + Duration::from_micros(100);
    world.round();
    assert_eq!(of(&mut world, 1), [1]);
}

#[test]
fn admin_queue_interrupt_cause_is_latched_while_disabled() {
    let (mut world, _, _) = running();
    let mut side = world.vf(0);
    side.write(r::VFINT_ICR0_ENA, 0);
    side.read(r::VFINT_ICR01);
    world.with_pf(|pf, side| pf.set_link(side, None));
    world.round();
    assert_eq!(of(&mut world, 0), []);
    let mut side = world.vf(0);
    assert_eq!(side.read(r::VFINT_ICR01), icr0::ADMINQ, "DPDK polls it every 50 ms");
    assert_eq!(side.read(r::VFINT_ICR01), 0, "reading clears");
}

#[test]
fn pending_interrupt_cause_is_sent_when_enabled() {
    let (mut world, _, _) = running();
    world.vf(0).write(r::VFINT_ICR0_ENA, 0);
    world.with_pf(|pf, side| pf.set_link(side, None));
    world.vf(0).write(r::VFINT_DYN_CTL0, dyn_ctl::INTENA | 3 << dyn_ctl::ITR_SHIFT);
    world.round();
    assert_eq!(of(&mut world, 0), []);
    world.vf(0).write(r::VFINT_ICR0_ENA, icr0::ADMINQ);
    world.round();
    assert_eq!(of(&mut world, 0), [0]);
}

#[test]
fn software_interrupt_is_sent_at_once() {
    let (mut world, _, _) = running();
    // Linux writes this for a stuck queue every 2 s.
    world.vf(0).write(r::dyn_ctl(2), 0x0100_001d);
    let software = dyn_ctl::SWINT_TRIG | dyn_ctl::INTENA | 3 << dyn_ctl::ITR_SHIFT;
    world.vf(0).write(r::dyn_ctl(3), software);
    world.round();
    assert_eq!(of(&mut world, 0), [2, 3]);
}

#[test]
fn intena_msk_in_a_write_keeps_the_vectors_enable_bit() {
    let (mut world, mut a, _) = running();
    world.vf(1).write(r::dyn_ctl(1), 0);
    world.vf(1).write(r::dyn_ctl(1), dyn_ctl::INTENA_MSK | dyn_ctl::INTENA | dyn_ctl::WB_ON_ITR);
    a.transmit(&mut world.vf(0), 0, &[0; 60]);
    world.round();
    assert_eq!(of(&mut world, 1), [], "still disabled");
    assert_eq!(world.vf(1).read(r::dyn_ctl(1)), dyn_ctl::WB_ON_ITR);
}
