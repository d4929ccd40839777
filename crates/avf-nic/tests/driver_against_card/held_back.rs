//! Tests the PF's limits on a VF's messages and interrupts, and a quarantine of the VF.

use crate::offloads::two;
use crate::world::{CardFixture, mac};
use avf::admin::{AdminQueueDescriptor, SIZE, flag, opcode};
use avf::bits::{aqlen, dyn_ctl};
use avf::control::{CardCommand, CardControl, MailboxAndInterruptLimits};
use avf::register as r;
use avf::virtchnl::VirtchnlRequest;
use core::time::Duration;
use driver::Hal;
use driver::avf::vf::AvfDriver;
use driver::conduct::QuarantineCause;
use pcie::Function;

const MAIL: MailboxAndInterruptLimits = MailboxAndInterruptLimits { mail_us: 100_000, interrupt_us: 0 };
const INTERRUPTS: MailboxAndInterruptLimits = MailboxAndInterruptLimits { mail_us: 0, interrupt_us: 1_000 };
/// Number of descriptors in the send mailbox ring that the tests set up.
const SLOTS: usize = 1_000;

/// Makes the PF quarantine VF 0.
fn quarantine(world: &mut CardFixture) {
    world.with_pf(|pf, side| pf.quarantine(side, 0, QuarantineCause::Administrator));
}

/// Fills VF 0's send mailbox ring with copies of a descriptor and writes the tail, without a poll.
fn flood(world: &mut CardFixture, descriptor: AdminQueueDescriptor) {
    let ring = [descriptor.emit(); SLOTS];
    world.memories.of(Function::Vf(0))[..SLOTS * SIZE].copy_from_slice(ring.as_flattened());
    let mut side = world.vf(0);
    for (register, value) in
        [(r::VF_ATQBAL, 0), (r::VF_ATQLEN, SLOTS as u32 | aqlen::ENABLE), (r::VF_ATQT, 999)]
    {
        side.write(register, value);
    }
}

/// Polls for a second at the deadlines that the card returns. Returns the number of descriptors that the card took from
/// VF 0's mailbox.
fn taken_in_a_second(world: &mut CardFixture) -> u64 {
    let (began, mut polls) = (world.now, 0);
    while world.now.since(began) < Duration::from_secs(1) {
        let poll = world.card.poll(world.now, &mut world.memories);
        world.with_pf(|pf, side| pf.visit(side));
        polls += 1;
        if !poll.more {
            world.now = poll.deadline.unwrap_or(began + Duration::from_secs(1));
        }
    }
    assert!(polls < 5_000, "{polls} polls");
    let counters = world.card.counters(0).unwrap();
    counters.messages + counters.strange
}

/// Tests the rate limit for messages, for commands that the card completes itself, and for unknown commands.
#[test]
fn rate_limited_mailbox_is_served_ten_times_a_second() {
    let message = AdminQueueDescriptor {
        flags: flag::SI,
        opcode: opcode::SEND_TO_PF,
        ..AdminQueueDescriptor::default()
    };
    let command = AdminQueueDescriptor { opcode: opcode::QUEUE_SHUTDOWN, ..AdminQueueDescriptor::default() };
    let strange = AdminQueueDescriptor { opcode: 0x0102, ..AdminQueueDescriptor::default() };
    for descriptor in [message, command, strange] {
        let mut world = CardFixture::new(2);
        flood(&mut world, descriptor);
        world.card.order(0, CardCommand::Restrain(MAIL));
        assert_eq!(taken_in_a_second(&mut world), 10, "{descriptor:?}");
        world.card.order(0, CardCommand::Restrain(MailboxAndInterruptLimits::default()));
        for _ in 0..SLOTS {
            world.round();
        }
        let counters = world.card.counters(0).unwrap();
        assert_eq!(counters.messages + counters.strange, 999, "all are taken without the restraint");
    }
}

#[test]
fn rate_limited_mailbox_does_not_delay_another_vfs_messages() {
    let mut world = CardFixture::new(2);
    flood(
        &mut world,
        AdminQueueDescriptor { opcode: opcode::QUEUE_SHUTDOWN, ..AdminQueueDescriptor::default() },
    );
    world.card.order(0, CardCommand::Restrain(MAIL));
    let mut other = AvfDriver::probe(&mut world.vf(1), mac(1)).unwrap();
    let began = world.now;
    (0..10).for_each(|_| _ = other.ask(&mut world.vf(1), VirtchnlRequest::GetHashTypes).unwrap());
    assert!(world.now.since(began) < Duration::from_millis(100));
}

#[test]
fn vf_reset_does_not_end_the_mailbox_rate_limit() {
    let mut world = CardFixture::new(2);
    quarantine(&mut world);
    flood(
        &mut world,
        AdminQueueDescriptor { opcode: opcode::QUEUE_SHUTDOWN, ..AdminQueueDescriptor::default() },
    );
    world.card.poll(world.now, &mut world.memories);
    world.card.function_level_reset(0);
    world.with_pf(|pf, side| pf.visit(side));
    for (register, value) in [(r::VF_ATQH, 0), (r::VF_ATQLEN, 8 | aqlen::ENABLE), (r::VF_ATQT, 7)] {
        world.vf(0).write(register, value);
    }
    let poll = world.card.poll(world.now, &mut world.memories);
    assert_eq!(world.card.counters(0).unwrap().messages, 1);
    assert_eq!(poll.deadline, Some(world.now + Duration::from_millis(100)));
    assert!(!poll.more, "polling again at once would change nothing");
}

/// Tests that pending messages of a VF in reset, from which the card takes no messages, do not request another poll.
#[test]
fn vf_in_reset_requests_no_further_poll_of_the_port() {
    let mut world = CardFixture::new(2);
    flood(
        &mut world,
        AdminQueueDescriptor { opcode: opcode::QUEUE_SHUTDOWN, ..AdminQueueDescriptor::default() },
    );
    world.card.function_level_reset(0);
    for (register, value) in [(r::VF_ATQH, 0), (r::VF_ATQLEN, 8 | aqlen::ENABLE), (r::VF_ATQT, 7)] {
        world.vf(0).write(register, value);
    }
    assert!(!world.card.poll(world.now, &mut world.memories).more);
}

/// Triggers and enables VF 0's vector 1, without an interval, every 50 us for a second, each time after `disturb`.
/// Returns the number of interrupts.
fn interrupts_in_a_second(world: &mut CardFixture, mut disturb: impl FnMut(&mut CardFixture)) -> usize {
    world.memories.interrupts.clear();
    for _ in 0..20_000 {
        disturb(world);
        let trigger = dyn_ctl::SWINT_TRIG | dyn_ctl::INTENA | 3 << dyn_ctl::ITR_SHIFT;
        world.vf(0).write(r::dyn_ctl(1), trigger);
        world.card.poll(world.now, &mut world.memories);
        world.now = world.now + Duration::from_micros(50);
    }
    world.memories.interrupts.len()
}

#[test]
fn rate_limited_vector_interrupts_1000_times_a_second() {
    let mut world = CardFixture::new(1);
    assert_eq!(interrupts_in_a_second(&mut world, |_| {}), 20_000, "no limit without a restraint");
    quarantine(&mut world);
    assert_eq!(interrupts_in_a_second(&mut world, |_| {}), 1_000);
    let reset = |world: &mut CardFixture| {
        world.card.function_level_reset(0);
        world.with_pf(|pf, side| pf.visit(side));
    };
    assert_eq!(interrupts_in_a_second(&mut world, reset), 1_000, "a reset does not lift the restraint");
}

#[test]
fn delayed_interrupt_is_sent_at_its_deadline() {
    let mut world = CardFixture::new(1);
    world.card.order(0, CardCommand::Restrain(INTERRUPTS));
    let trigger = dyn_ctl::SWINT_TRIG | dyn_ctl::INTENA | 3 << dyn_ctl::ITR_SHIFT;
    for _ in 0..2 {
        world.vf(0).write(r::dyn_ctl(1), trigger);
        world.card.poll(world.now, &mut world.memories);
    }
    let deadline = world.card.poll(world.now, &mut world.memories).deadline;
    assert_eq!(deadline, Some(world.now + Duration::from_millis(1)));
    world.now = world.now + Duration::from_millis(1);
    world.card.poll(world.now, &mut world.memories);
    assert_eq!(world.memories.interrupts.len(), 2);
}

#[test]
fn quarantined_vf_moves_no_frame_until_released_and_restarted() {
    let (mut world, mut a, mut b) = two(|_| {});
    let frame = [&b.mac().0[..], &a.mac().0, &[0x88, 0xb5], &[0; 60]].concat();
    let mut into = [0; 2_000];
    let mut arrives = |world: &mut CardFixture, a: &mut AvfDriver, b: &mut AvfDriver| {
        let sent = a.transmit(&mut world.vf(0), 0, &frame);
        world.round();
        sent && (0..b.pairs()).any(|queue| b.receive(&mut world.vf(1), queue as u8, &mut into).is_some())
    };
    assert!(arrives(&mut world, &mut a, &mut b));
    world.with_pf(|pf, side| pf.quarantine(side, 0, QuarantineCause::Administrator));
    assert!(!arrives(&mut world, &mut a, &mut b));
    assert!(a.restart(&mut world.vf(0)).is_err(), "ENABLE_QUEUES is refused");
    assert!(!arrives(&mut world, &mut a, &mut b));
    world.with_pf(|pf, side| pf.release(side, 0));
    a.restart(&mut world.vf(0)).unwrap();
    assert!(arrives(&mut world, &mut a, &mut b));
}

/// Charges the card's work for VFs. Returns VF 0's cost. Panics if another VF has a cost.
fn settled(world: &mut CardFixture) -> u32 {
    let mut costs = Vec::new();
    world.card.settle_work(&mut |vf, cost| costs.push((vf.get(), cost.0)));
    assert!(costs.iter().all(|(vf, _)| *vf == 0) && costs.len() <= 1, "{costs:?}");
    costs.iter().map(|(_, cost)| cost).sum()
}

#[test]
fn held_vf_keeps_its_messages_in_its_ring() {
    let mut world = CardFixture::new(2);
    let mut neighbour = AvfDriver::probe(&mut world.vf(1), mac(1)).unwrap();
    world.card.settle_work(&mut |_, _| {});
    let message = AdminQueueDescriptor {
        flags: flag::SI,
        opcode: opcode::SEND_TO_PF,
        ..AdminQueueDescriptor::default()
    };
    flood(&mut world, message);
    let only = [pcie::VfIndex::of_field(0)].into_iter().collect();
    world.card.hold_mail(only);
    for _ in 0..100 {
        assert!(world.card.poll(world.now, &mut world.memories).more, "the port does not sleep");
    }
    assert_eq!((world.vf(0).read(r::VF_ATQH), settled(&mut world)), (0, 0));
    neighbour.ask(&mut world.vf(1), VirtchnlRequest::GetHashTypes).unwrap();
    world.card.settle_work(&mut |vf, _| assert_eq!(vf.get(), 1));
    world.card.hold_mail(pcie::VfSet::NONE);
    for taken in 1..=10 {
        world.card.poll(world.now, &mut world.memories);
        // A descriptor and a request (`units::work`).
        assert_eq!((world.vf(0).read(r::VF_ATQH), settled(&mut world)), (taken, 15 + 40));
    }
}

#[test]
fn descriptors_that_the_pf_has_no_room_for_are_charged() {
    let mut world = CardFixture::new(1);
    let message = AdminQueueDescriptor {
        flags: flag::SI,
        opcode: opcode::SEND_TO_PF,
        ..AdminQueueDescriptor::default()
    };
    flood(&mut world, message);
    world.card.settle_work(&mut |_, _| {});
    // The PF driver does not run, and its ring has 32 descriptors.
    (0..31).for_each(|_| _ = world.card.poll(world.now, &mut world.memories));
    settled(&mut world);
    let head = world.vf(0).read(r::VF_ATQH);
    world.card.poll(world.now, &mut world.memories);
    assert_eq!((world.vf(0).read(r::VF_ATQH), settled(&mut world)), (head, 15));
}
