//! Limits of conduct ([`crate::conduct`]) for the VFs of this PF: the PF compares each VF's counts with the limits, and has the
//! card restrain a VF that goes beyond them. A throttled VF keeps its queues at a lower rate. A quarantined VF is reset, as
//! i40e resets a VF that the host disables: its queues stay off whatever its driver asks, and its link is down.
//!
//! Left out: counting traffic, and the thresholds, which are the port's.

use super::state::RestoreError;
use super::{Card, Pf, VfState};
use crate::conduct::{Cause, HELD_INTERVAL_US, Monitor, SERVICE, Totals, Verdict};
use ::avf::control::{Order, Restraint};
use alloc::vec::Vec;
use i82576::Time;
use policy::{Action, ConductLimits, Offence};

/// The restraint on every throttled or quarantined VF.
const HELD: Restraint = Restraint { mail_us: SERVICE.as_micros() as u32, interrupt_us: HELD_INTERVAL_US };

impl VfState {
    /// Whether the VF may move frames and see a link.
    pub(super) fn is_free(&self) -> bool {
        self.decided.policy.enabled && self.monitor.quarantined().is_none()
    }
}

impl Pf {
    /// Compares a VF's counts with its limits, and acts on the gravest finding. `totals` has the card's counts of messages and
    /// packets and the host's count of interrupts; this adds the resets that the guest asked for and malformed messages.
    /// Call it at least once a second: limits are rates a second.
    pub fn watch<H: Card>(
        &mut self,
        hal: &mut H,
        vf: u8,
        mut totals: Totals,
        limits: &ConductLimits,
    ) -> Option<Verdict> {
        let now = hal.now();
        let state = self.vfs.get_mut(usize::from(vf))?;
        totals[Offence::Mailbox as usize] += state.counters.resets;
        totals[Offence::Invalid as usize] += state.counters.malformed();
        let verdict = state.monitor.observe(now, totals, limits)?;
        match verdict.action {
            Action::Warn => {}
            Action::Throttle => self.hold_back(hal, vf),
            Action::Quarantine => self.quarantine(hal, vf, Cause::Offence(verdict.offence)),
        }
        Some(verdict)
    }

    /// Quarantines a VF. The PF resets it and announces the reset to its driver; until the release the VF's queues stay off and its
    /// link is down.
    pub fn quarantine<H: Card>(&mut self, hal: &mut H, vf: u8, why: Cause) {
        let Some(state) = self.vfs.get_mut(usize::from(vf)) else { return };
        if state.monitor.quarantine(why) {
            self.reset_with_notice(hal, vf);
        }
    }

    /// Releases a quarantined VF: the PF resets it and announces the reset, so that its driver sets it up anew. On a VF that is
    /// not quarantined, ends the throttle.
    pub fn release<H: Card>(&mut self, hal: &mut H, vf: u8) {
        let Some(state) = self.vfs.get_mut(usize::from(vf)) else { return };
        if state.monitor.release() {
            self.reset_with_notice(hal, vf);
        } else {
            self.hold_back(hal, vf);
        }
    }

    /// A VF's conduct: what it did too much of, and what was done about it.
    #[must_use]
    pub fn conduct(&self, vf: u8) -> Option<&Monitor> {
        self.vfs.get(usize::from(vf)).map(|state| &state.monitor)
    }

    /// The conduct of every VF, for a successor.
    #[must_use]
    pub fn monitors(&self) -> Vec<Monitor> {
        self.vfs.iter().map(|state| state.monitor.clone()).collect()
    }

    /// Takes over the conduct that a predecessor saved, and restrains the same VFs as it did. Resets no VF.
    ///
    /// # Errors
    /// [`RestoreError`] if the conduct is of another number of VFs, or a count in it is about to overflow.
    pub fn resume_conduct<H: Card>(
        &mut self,
        hal: &mut H,
        monitors: Vec<Monitor>,
    ) -> Result<(), RestoreError> {
        if monitors.len() != self.vfs.len() {
            return Err(RestoreError("it knows the conduct of other VFs than it serves"));
        }
        if !monitors.iter().all(Monitor::is_sound) {
            return Err(RestoreError("a count of a VF's offences is about to overflow"));
        }
        self.vfs.iter_mut().zip(monitors).for_each(|(state, monitor)| state.monitor = monitor);
        self.vfs().for_each(|vf| self.hold_back(hal, vf));
        Ok(())
    }

    /// Gives the card the rate and the restraint that the VF's conduct calls for now.
    pub(super) fn hold_back<H: Card>(&mut self, hal: &mut H, vf: u8) {
        let VfState { monitor, decided, .. } = &self.vfs[usize::from(vf)];
        if monitor.holds() {
            self.held |= 1 << vf;
        }
        hal.order(vf, Order::Rate(monitor.rate(decided.policy.max_tx_rate)));
        hal.order(vf, Order::Restrain(if monitor.holds() { HELD } else { Restraint::default() }));
    }

    /// Ends the throttles that have run out; answers when the next one does, or a request that waits may be served.
    pub(super) fn forgive<H: Card>(&mut self, hal: &mut H) -> Option<Time> {
        let (now, mut next) = (hal.now(), None);
        let held = self.held;
        for vf in self.vfs().filter(|vf| held >> vf & 1 == 1) {
            if self.state_mut(vf).monitor.forgive(now) {
                self.hold_back(hal, vf);
            }
            let monitor = &self.state(vf).monitor;
            let deadline = monitor.deadline(now);
            if deadline.is_none() && !monitor.holds() {
                self.held &= !(1 << vf);
            }
            next = [next, deadline].into_iter().flatten().min();
        }
        next
    }
}
