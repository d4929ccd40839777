//! Tests throttled and quarantined VFs: orders to the card, and events to their drivers.

use super::{FourVfPort, VSI, mac};
use crate::avf::pf::{AvfPf, OFFERED, VirtchnlCounters, VirtchnlRefusal};
use crate::conduct::{OffenceCounts, QuarantineCause, VfConductMonitor, VfConductVerdict};
use crate::hal::Hal;
use ::avf::bits::rstat;
use ::avf::control::MailboxAndInterruptLimits;
use ::avf::pf_register as r;
use ::avf::virtchnl::{
    QueueSet, VirtchnlEvent, VirtchnlOpcode, VirtchnlRequest, VirtchnlStatus, VirtchnlVersion,
};
use core::time::Duration;
use i82576::MacAddress;
use policy::{ConductLimits, Offence, OffenceAction, OffenceThresholds};
use std::vec;
use std::vec::Vec;

const HELD: MailboxAndInterruptLimits = MailboxAndInterruptLimits { mail_us: 100_000, interrupt_us: 1_000 };
const FREE: MailboxAndInterruptLimits = MailboxAndInterruptLimits { mail_us: 0, interrupt_us: 0 };
const NEVER: OffenceThresholds = OffenceThresholds { warn: 0, throttle: 0, quarantine: 0 };

impl FourVfPort {
    fn advance(&mut self, time: Duration) {
        self.card.now = self.card.now + time;
    }

    /// Makes the PF compare VF 0's offences with its limits twice, a second apart, with `events` offences of
    /// one kind in between. Returns the PF's verdict.
    fn judge(
        &mut self,
        offence: Offence,
        events: u64,
        thresholds: OffenceThresholds,
    ) -> Option<VfConductVerdict> {
        let mut limits: ConductLimits = [NEVER; 6];
        limits[offence as usize] = thresholds;
        self.watch([0; 6], &limits);
        self.advance(Duration::from_secs(1));
        let mut totals = [0; 6];
        totals[offence as usize] = events;
        self.watch(totals, &limits)
    }

    fn watch(&mut self, totals: OffenceCounts, limits: &ConductLimits) -> Option<VfConductVerdict> {
        self.pf.watch(&mut self.card, 0, totals, limits)
    }

    fn throttle(&mut self) {
        let verdict = self.judge(Offence::Storm, 5, OffenceThresholds { throttle: 5, ..NEVER }).unwrap();
        assert_eq!(verdict.action, OffenceAction::Throttle);
    }

    fn quarantine(&mut self) {
        let verdict = self.judge(Offence::Spoofing, 5, OffenceThresholds { quarantine: 5, ..NEVER }).unwrap();
        assert_eq!(verdict.action, OffenceAction::Quarantine);
    }

    fn start_queues(&mut self) -> VirtchnlStatus {
        self.ask(0, VirtchnlRequest::SwitchQueues(true, QueueSet { vsi: VSI, rx: 1, tx: 1 })).0
    }

    fn conduct(&self) -> &VfConductMonitor {
        self.pf.conduct(0).unwrap()
    }
}

#[test]
fn warned_vf_is_not_throttled_or_quarantined() {
    for offence in Offence::ALL {
        let mut world = FourVfPort::active();
        let verdict = world.judge(offence, 7, OffenceThresholds { warn: 7, ..NEVER });
        assert_eq!(verdict, Some(VfConductVerdict { offence, rate: 7, action: OffenceAction::Warn }));
        assert_eq!((world.told().rate, world.told().restraint), (0, FREE));
        assert_eq!(world.conduct().offences()[offence as usize], 1);
    }
}

#[test]
fn throttled_vf_sends_at_most_ten_megabits() {
    let mut world = FourVfPort::active();
    world.throttle();
    assert_eq!((world.told().rate, world.told().restraint), (10, HELD));
    assert_eq!(
        (world.start_queues(), world.pf.vf_link(0)),
        (VirtchnlStatus::Success, Some(25_000)),
        "the VF keeps running"
    );
    world.set(|policy| policy.max_tx_rate = 3);
    assert_eq!(world.told().rate, 3, "the administrator's limit is lower");
}

#[test]
fn vf_throttle_ends_ten_seconds_after_its_last_offence() {
    let mut world = FourVfPort::active();
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
fn quarantined_vf_is_reset_with_queues_off_and_link_down() {
    let mut world = FourVfPort::active();
    world.start_queues();
    world.card.log.clear();
    world.quarantine();
    assert_eq!(world.card.log, [(0, "reset impending"), (0, "reset")], "as i40e disables a VF");
    assert_eq!((world.told().running, world.told().restraint), ((0, 0), HELD));
    world.introduce(0, OFFERED);
    let link = world.card.sent[&0].iter().find(|(op, ..)| *op == VirtchnlOpcode::Event).unwrap();
    assert_eq!(::avf::virtchnl::reply::decode(&link.2), Some(VirtchnlEvent::Link { speed: 0, up: false }));
    world.refused(
        VirtchnlRequest::SwitchQueues(true, QueueSet { vsi: VSI, rx: 1, tx: 1 }),
        VirtchnlRefusal::Disabled,
    );
    assert_eq!(world.pf.vf_link(1), Some(25_000), "VF 1 is free");
}

#[test]
fn quarantine_of_a_vf_continues_after_a_reset_of_the_vf() {
    let mut world = FourVfPort::active();
    world.quarantine();
    world.card.arrive(0, VirtchnlOpcode::ResetVf.number(), &[]);
    world.pf.visit(&mut world.card);
    world.card.flr(0);
    world.pf.visit(&mut world.card);
    world.pf.reset_all(&mut world.card);
    world.introduce(0, OFFERED);
    assert_eq!(world.start_queues(), VirtchnlStatus::Param);
    assert_eq!((world.told().restraint, world.pf.vf_link(0)), (HELD, None));
    assert_eq!(world.conduct().quarantined(), Some(QuarantineCause::Offence(Offence::Spoofing)));
}

#[test]
fn releasing_a_quarantined_vf_resets_it() {
    let mut world = FourVfPort::active();
    world.quarantine();
    world.introduce(0, OFFERED);
    world.card.log.clear();
    world.pf.release(&mut world.card, 0);
    assert_eq!(world.card.log, [(0, "reset impending"), (0, "reset")]);
    world.introduce(0, OFFERED);
    assert_eq!((world.start_queues(), world.pf.vf_link(0)), (VirtchnlStatus::Success, Some(25_000)));
    assert_eq!((world.told().restraint, world.conduct().quarantined()), (FREE, None));
    assert_eq!(world.conduct().offences()[Offence::Spoofing as usize], 1, "the offence stays counted");
}

#[test]
fn releasing_a_throttled_vf_ends_the_throttle_without_reset() {
    let mut world = FourVfPort::active();
    world.throttle();
    world.card.log.clear();
    world.pf.release(&mut world.card, 0);
    assert_eq!((world.card.log.len(), world.told().rate, world.told().restraint), (0, 0, FREE));
}

#[test]
fn policy_change_does_not_end_the_quarantine_of_a_vf() {
    let mut world = FourVfPort::active();
    world.pf.quarantine(&mut world.card, 0, QuarantineCause::Administrator);
    world.set(|policy| policy.mac = Some(MacAddress(mac(7))));
    world.introduce(0, OFFERED);
    assert_eq!(
        (world.start_queues(), world.conduct().quarantined()),
        (VirtchnlStatus::Param, Some(QuarantineCause::Administrator))
    );
}

/// Tests a guest that writes Initiate Function Level Reset at a high rate: each reset costs the PF work.
#[test]
fn throttled_vf_is_reset_at_most_ten_times_a_second() {
    let mut world = FourVfPort::active();
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
fn delayed_vf_reset_voids_the_vfs_earlier_messages_at_once() {
    let mut world = FourVfPort::active();
    world.throttle();
    world.card.flr(0);
    world.pf.visit(&mut world.card);
    world.card.sent.clear();
    world.card.arrive(
        0,
        VirtchnlOpcode::Version.number(),
        &::avf::virtchnl::reply::encode(&VirtchnlVersion::V1_1),
    );
    world.card.write(r::VFGEN_RSTAT1, rstat::IN_PROGRESS);
    world.card.flr(0);
    let visit = world.pf.visit(&mut world.card);
    assert_eq!(
        (visit.resets, visit.served, world.card.sent.len()),
        (0, 0, 0),
        "the PF serves no VF in reset"
    );
    assert_eq!(world.card.read(r::VFGEN_RSTAT1), rstat::IN_PROGRESS);
    let due = visit.deadline.unwrap();
    assert_eq!(due.since(world.card.now), Duration::from_millis(100));
    world.card.now = due;
    assert_eq!(world.pf.visit(&mut world.card).resets, 1);
    assert_eq!(world.card.read(r::VFGEN_RSTAT1), rstat::ACTIVE);
}

#[test]
fn only_vf_resets_by_the_guest_count_as_mailbox_offences() {
    let limits: ConductLimits = [OffenceThresholds { warn: 1, ..NEVER }; 6];
    let mut world = FourVfPort::active();
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
fn malformed_requests_are_offences_and_unknown_ones_are_not() {
    let limits: ConductLimits = [OffenceThresholds { warn: 1, ..NEVER }; 6];
    let mut world = FourVfPort::active();
    world.watch([0; 6], &limits);
    // Later drivers may request operations that this PF does not know.
    assert_eq!(world.ask_raw(0, 9_999, &[]).0, VirtchnlStatus::NotSupported);
    world.advance(Duration::from_secs(1));
    assert_eq!(world.watch([0; 6], &limits), None);
    world.ask_raw(0, VirtchnlOpcode::EnableQueues.number(), &[1]);
    world.ask_raw(0, VirtchnlOpcode::AddVlan.number(), &[]);
    world.advance(Duration::from_secs(1));
    let verdict = world.watch([0; 6], &limits).unwrap();
    assert_eq!((verdict.offence, verdict.rate), (Offence::Invalid, 2));
}

#[test]
fn throttle_and_quarantine_of_vfs_survive_a_hand_over() {
    let mut old = FourVfPort::active();
    old.throttle();
    let mut world = FourVfPort::active();
    world.card.now = old.card.now;
    world.card.log.clear();
    world.pf.resume_conduct(&mut world.card, old.pf.monitors()).unwrap();
    assert_eq!((world.told().rate, world.told().restraint, world.card.log.len()), (10, HELD, 0));
    let quarantined = vec![VfConductMonitor::of_quarantined(QuarantineCause::Administrator); 4];
    world.pf.resume_conduct(&mut world.card, quarantined).unwrap();
    assert_eq!((world.pf.vf_link(0), world.start_queues()), (None, VirtchnlStatus::Param));
    assert!(world.pf.resume_conduct(&mut world.card, Vec::new()).is_err(), "the PF has four VFs");
}

#[test]
fn offences_of_a_missing_vf_are_ignored() {
    let mut world = FourVfPort::new();
    let limits: ConductLimits = [OffenceThresholds { quarantine: 1, ..NEVER }; 6];
    assert_eq!(world.pf.watch(&mut world.card, 77, [1; 6], &limits), None);
    world.pf.quarantine(&mut world.card, 77, QuarantineCause::Administrator);
    world.pf.release(&mut world.card, 77);
    assert!(world.pf.conduct(77).is_none());
}

/// Tests a reset of all 64 VFs: both words of GLGEN_VFLRSTAT are all ones then, though the card is present.
#[test]
fn all_64_vfs_may_be_reset_at_once() {
    let mut world = FourVfPort::new();
    world.pf = AvfPf::probe(&mut world.card, 64).unwrap();
    (0..64).for_each(|vf| world.card.flr(vf));
    assert_eq!(world.pf.visit(&mut world.card).resets, u64::MAX);
    assert_eq!(world.pf.visit(&mut world.card).resets, 0);
    let resets: Vec<u64> =
        (0..64).filter_map(|vf| world.pf.counters(vf)).map(|of: &VirtchnlCounters| of.resets).collect();
    assert_eq!(resets, [1; 64]);
}
