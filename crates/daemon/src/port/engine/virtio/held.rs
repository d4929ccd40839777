//! Limits of offences ([`driver::conduct`]) for virtio VFs. A throttled VF sends at most at a low rate, and a quarantined
//! VF moves no frame. A VF has no mailbox, so each reset of its device, which its client causes, counts as a request.

use super::VirtioCard;
use crate::port::engine::family::offence_counts;
use driver::conduct::{OffenceCounts, QuarantineCause, VfConductVerdict};
use i82576::Time;
use pcie::VfIndex;
use policy::{Offence, OffenceAction};

impl VirtioCard {
    /// Compares a VF's counts of offences with the port's limits, and takes the measure for the gravest exceeded limit.
    pub(super) fn watch(&mut self, vf: VfIndex, interrupts: u64, now: Time) -> Option<VfConductVerdict> {
        let totals = self.offence_totals(vf, interrupts);
        let monitor = &mut self.conduct[vf.index()];
        let verdict = monitor.observe(now, totals, &self.rules.policy.limits)?;
        match verdict.action {
            OffenceAction::Warn => {}
            OffenceAction::Throttle => self.throttled = self.throttled.or([vf].into_iter().collect()),
            OffenceAction::Quarantine => {
                monitor.quarantine(QuarantineCause::Offence(verdict.offence));
            }
        }
        self.enforce(vf);
        Some(verdict)
    }

    /// Quarantines a VF for the administrator, or releases it and ends its throttle.
    pub(super) fn set_quarantine(&mut self, vf: VfIndex, on: bool) {
        let monitor = &mut self.conduct[vf.index()];
        match on {
            true => monitor.quarantine(QuarantineCause::Administrator),
            false => monitor.release(),
        };
        self.enforce(vf);
    }

    /// Ends the expired throttles of VFs. Returns the time when the next one expires.
    pub(super) fn end_throttles(&mut self, now: Time) -> Option<Time> {
        let mut next = None;
        for vf in self.throttled.iter() {
            self.conduct[vf.index()].end_throttle(now);
            if !self.conduct[vf.index()].throttled() {
                self.throttled = self.throttled.without([vf].into_iter().collect());
                self.enforce(vf);
            }
            next = [next, self.conduct[vf.index()].deadline(now)].into_iter().flatten().min();
        }
        next
    }

    /// Returns the numbers of a VF's events that may be offences, by kind of offence.
    fn offence_totals(&mut self, vf: VfIndex, interrupts: u64) -> OffenceCounts {
        let mut totals = offence_counts(&self.vf_counters(vf), interrupts);
        totals[Offence::Mailbox as usize] = self.resets[vf.index()];
        totals
    }
}
