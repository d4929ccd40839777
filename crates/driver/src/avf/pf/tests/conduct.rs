//! VFs that do too much: what the card is told of them, and what their drivers see.

use super::{VSI, World, mac};
use crate::avf::pf::{Counters, OFFERED, Pf, Refusal};
use crate::conduct::{Cause, Monitor, Totals, Verdict};
use crate::hal::Hal;
use ::avf::bits::rstat;
use ::avf::control::Restraint;
use ::avf::pf_register as r;
use ::avf::virtchnl::{Event, Op, QueueSet, Request, Status, Version};
use core::time::Duration;
use i82576::MacAddress;
use policy::{Action, ConductLimits, Offence, Thresholds};
use std::vec;
use std::vec::Vec;

const HELD: Restraint = Restraint { mail_us: 100_000, interrupt_us: 1_000 };
const FREE: Restraint = Restraint { mail_us: 0, interrupt_us: 0 };
const NEVER: Thresholds = Thresholds { warn: 0, throttle: 0, quarantine: 0 };

impl World {
    fn advance(&mut self, time: Duration) {
        self.card.now = self.card.now + time;
    }

    /// VF 0 is judged for `events` of a kind in a second.
    fn judge(&mut self, offence: Offence, events: u64, thresholds: Thresholds) -> Option<Verdict> {
        let mut limits: ConductLimits = [NEVER; 6];
        limits[offence as usize] = thresholds;
        self.watch([0; 6], &limits);
        self.advance(Duration::from_secs(1));
        let mut totals = [0; 6];
        totals[offence as usize] = events;
        self.watch(totals, &limits)
    }

    fn watch(&mut self, totals: Totals, limits: &ConductLimits) -> Option<Verdict> {
        self.pf.watch(&mut self.card, 0, totals, limits)
    }

    fn throttle(&mut self) {
        let verdict = self.judge(Offence::Storm, 5, Thresholds { throttle: 5, ..NEVER }).unwrap();
        assert_eq!(verdict.action, Action::Throttle);
    }

    fn quarantine(&mut self) {
        let verdict = self.judge(Offence::Spoofing, 5, Thresholds { quarantine: 5, ..NEVER }).unwrap();
        assert_eq!(verdict.action, Action::Quarantine);
    }

    fn start_queues(&mut self) -> Status {
        self.ask(0, Request::SwitchQueues(true, QueueSet { vsi: VSI, rx: 1, tx: 1 })).0
    }

    fn conduct(&self) -> &Monitor {
        self.pf.conduct(0).unwrap()
    }
}

#[test]
fn a_warning_holds_nothing_back() {
    for offence in Offence::ALL {
        let mut world = World::active();
        let verdict = world.judge(offence, 7, Thresholds { warn: 7, ..NEVER });
        assert_eq!(verdict, Some(Verdict { offence, rate: 7, action: Action::Warn }));
        assert_eq!((world.told().rate, world.told().restraint), (0, FREE));
        assert_eq!(world.conduct().offences()[offence as usize], 1);
    }
}

#[test]
fn a_vf_that_is_throttled_sends_at_ten_megabits_and_has_its_mail_and_interrupts_held_back() {
    let mut world = World::active();
    world.throttle();
    assert_eq!((world.told().rate, world.told().restraint), (10, HELD));
    assert_eq!((world.start_queues(), world.pf.vf_link(0)), (Status::Success, Some(25_000)), "it goes on");
    world.set(|policy| policy.max_tx_rate = 3);
    assert_eq!(world.told().rate, 3, "the administrator's limit is lower");
}

#[test]
fn a_throttle_ends_ten_seconds_after_the_last_crossing() {
    let mut world = World::active();
    world.throttle();
    let over = world.card.now + Duration::from_secs(10);
    assert_eq!(world.pf.visit(&mut world.card).deadline, Some(over));
    world.advance(Duration::from_millis(9_999));
    world.pf.visit(&mut world.card);
    assert!(world.conduct().throttled());
    world.advance(Duration::from_millis(1));
    assert_eq!(world.pf.visit(&mut world.card).deadline, None);
    assert_eq!((world.conduct().throttled(), world.told().rate, world.told().restraint), (false, 0, FREE));
}

#[test]
fn a_vf_that_is_quarantined_is_told_of_its_reset_and_finds_its_queues_off_and_its_link_down() {
    let mut world = World::active();
    world.start_queues();
    world.card.log.clear();
    world.quarantine();
    assert_eq!(world.card.log, [(0, "reset impending"), (0, "reset")], "as i40e disables a VF");
    assert_eq!((world.told().running, world.told().restraint), ((0, 0), HELD));
    world.introduce(0, OFFERED);
    let link = world.card.sent[&0].iter().find(|(op, ..)| *op == Op::Event).unwrap();
    assert_eq!(::avf::virtchnl::reply::decode(&link.2), Some(Event::Link { speed: 0, up: false }));
    world.refused(Request::SwitchQueues(true, QueueSet { vsi: VSI, rx: 1, tx: 1 }), Refusal::Disabled);
    assert_eq!(world.pf.vf_link(1), Some(25_000), "VF 1 is free");
}

#[test]
fn no_reset_is_a_way_out() {
    let mut world = World::active();
    world.quarantine();
    world.card.arrive(0, Op::ResetVf.number(), &[]);
    world.pf.visit(&mut world.card);
    world.card.flr(0);
    world.pf.visit(&mut world.card);
    world.pf.reset_all(&mut world.card);
    world.introduce(0, OFFERED);
    assert_eq!(world.start_queues(), Status::Param);
    assert_eq!((world.told().restraint, world.pf.vf_link(0)), (HELD, None));
    assert_eq!(world.conduct().quarantined(), Some(Cause::Offence(Offence::Spoofing)));
}

#[test]
fn the_administrator_lets_a_vf_out() {
    let mut world = World::active();
    world.quarantine();
    world.introduce(0, OFFERED);
    world.card.log.clear();
    world.pf.release(&mut world.card, 0);
    assert_eq!(world.card.log, [(0, "reset impending"), (0, "reset")]);
    world.introduce(0, OFFERED);
    assert_eq!((world.start_queues(), world.pf.vf_link(0)), (Status::Success, Some(25_000)));
    assert_eq!((world.told().restraint, world.conduct().quarantined()), (FREE, None));
    assert_eq!(world.conduct().offences()[Offence::Spoofing as usize], 1, "the record stays");
}

#[test]
fn the_administrator_lifts_a_throttle_without_a_reset() {
    let mut world = World::active();
    world.throttle();
    world.card.log.clear();
    world.pf.release(&mut world.card, 0);
    assert_eq!((world.card.log.len(), world.told().rate, world.told().restraint), (0, 0, FREE));
}

#[test]
fn the_administrator_quarantines_a_vf_and_a_change_of_policy_does_not_release_it() {
    let mut world = World::active();
    world.pf.quarantine(&mut world.card, 0, Cause::Administrator);
    world.set(|policy| policy.mac = Some(MacAddress(mac(7))));
    world.introduce(0, OFFERED);
    assert_eq!(
        (world.start_queues(), world.conduct().quarantined()),
        (Status::Param, Some(Cause::Administrator))
    );
}

/// A guest may write Initiate Function Level Reset as often as it likes, and each reset is work for the PF.
#[test]
fn a_vf_that_is_held_back_is_reset_ten_times_a_second_at_most() {
    let mut world = World::active();
    world.throttle();
    let (before, began) = (world.told().resets, world.card.now);
    for _ in 0..1_000 {
        world.card.flr(0);
        world.advance(Duration::from_millis(1));
        world.pf.visit(&mut world.card);
    }
    assert_eq!(world.card.now.since(began), Duration::from_secs(1));
    assert_eq!(world.told().resets - before, 10);
}

#[test]
fn what_a_vf_sent_before_a_reset_that_has_to_wait_is_void_at_once() {
    let mut world = World::active();
    world.throttle();
    world.card.flr(0);
    world.pf.visit(&mut world.card);
    world.card.sent.clear();
    world.card.arrive(0, Op::Version.number(), &::avf::virtchnl::reply::encode(&Version::V1_1));
    world.card.write(r::VFGEN_RSTAT1, rstat::IN_PROGRESS);
    world.card.flr(0);
    let visit = world.pf.visit(&mut world.card);
    assert_eq!(
        (visit.resets, visit.served, world.card.sent.len()),
        (0, 0, 0),
        "the PF answers no VF in reset"
    );
    assert_eq!(world.card.read(r::VFGEN_RSTAT1), rstat::IN_PROGRESS);
    let due = visit.deadline.unwrap();
    assert_eq!(due.since(world.card.now), Duration::from_millis(100));
    world.card.now = due;
    assert_eq!(world.pf.visit(&mut world.card).resets, 1);
    assert_eq!(world.card.read(r::VFGEN_RSTAT1), rstat::ACTIVE);
}

#[test]
fn resets_by_the_guest_count_as_requests_and_those_by_the_pf_do_not() {
    let limits: ConductLimits = [Thresholds { warn: 1, ..NEVER }; 6];
    let mut world = World::active();
    world.watch([0; 6], &limits);
    world.pf.reset_all(&mut world.card);
    world.set(|policy| policy.trust = true);
    world.advance(Duration::from_secs(1));
    assert_eq!(world.watch([0; 6], &limits), None, "the administrator's doing");
    world.card.flr(0);
    world.pf.visit(&mut world.card);
    world.advance(Duration::from_secs(1));
    let verdict = world.watch([0; 6], &limits).unwrap();
    assert_eq!((verdict.offence, verdict.rate), (Offence::Mailbox, 1));
}

#[test]
fn messages_with_bodies_that_are_none_make_no_sense_and_unknown_operations_are_requests() {
    let limits: ConductLimits = [Thresholds { warn: 1, ..NEVER }; 6];
    let mut world = World::active();
    world.watch([0; 6], &limits);
    // Drivers of tomorrow ask for what this PF does not know.
    assert_eq!(world.ask_raw(0, 9_999, &[]).0, Status::NotSupported);
    world.advance(Duration::from_secs(1));
    assert_eq!(world.watch([0; 6], &limits), None);
    world.ask_raw(0, Op::EnableQueues.number(), &[1]);
    world.ask_raw(0, Op::AddVlan.number(), &[]);
    world.advance(Duration::from_secs(1));
    let verdict = world.watch([0; 6], &limits).unwrap();
    assert_eq!((verdict.offence, verdict.rate), (Offence::Invalid, 2));
}

#[test]
fn a_successor_knows_a_vf_for_its_conduct_and_holds_it_back() {
    let mut old = World::active();
    old.throttle();
    let mut world = World::active();
    world.card.now = old.card.now;
    world.card.log.clear();
    world.pf.resume_conduct(&mut world.card, old.pf.monitors()).unwrap();
    assert_eq!((world.told().rate, world.told().restraint, world.card.log.len()), (10, HELD, 0));
    let quarantined = vec![Monitor::of_quarantined(Cause::Administrator); 4];
    world.pf.resume_conduct(&mut world.card, quarantined).unwrap();
    assert_eq!((world.pf.vf_link(0), world.start_queues()), (None, Status::Param));
    assert!(world.pf.resume_conduct(&mut world.card, Vec::new()).is_err(), "it serves four");
}

#[test]
fn a_vf_that_there_is_not_is_not_judged() {
    let mut world = World::new();
    let limits: ConductLimits = [Thresholds { quarantine: 1, ..NEVER }; 6];
    assert_eq!(world.pf.watch(&mut world.card, 77, [1; 6], &limits), None);
    world.pf.quarantine(&mut world.card, 77, Cause::Administrator);
    world.pf.release(&mut world.card, 77);
    assert!(world.pf.conduct(77).is_none());
}

/// Both words of the register are all ones then, and the card is not gone.
#[test]
fn every_vf_of_a_full_card_may_be_reset_at_once() {
    let mut world = World::new();
    world.pf = Pf::probe(&mut world.card, 64).unwrap();
    (0..64).for_each(|vf| world.card.flr(vf));
    assert_eq!(world.pf.visit(&mut world.card).resets, u64::MAX);
    assert_eq!(world.pf.visit(&mut world.card).resets, 0);
    let resets: Vec<u64> =
        (0..64).filter_map(|vf| world.pf.counters(vf)).map(|of: &Counters| of.resets).collect();
    assert_eq!(resets, [1; 64]);
}
