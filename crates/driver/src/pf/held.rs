//! Limits of conduct ([`crate::conduct`]) for the VFs of an 82576: the PF compares each VF's counts with the limits, and has
//! the card restrain a VF that goes beyond them.
//!
//! Left out: counting. The PF counts mailbox requests and resets; card and host count the rest and give it to [`Pf::watch`].

use super::Pf;
use crate::conduct::{Cause, Monitor, Totals, Verdict};
use crate::hal::Hal;
use i82576::VfIndex;
use policy::{Action, Offence};

impl Pf {
    /// Compares a VF's counts with its limits, and acts on the gravest finding. The count of mailbox requests and resets in
    /// `totals` is ignored: the PF has its own. Call it at least once a second: limits are rates a second. Afterwards the
    /// card must be told [`Pf::link_override`].
    pub fn watch<H: Hal>(&mut self, hal: &mut H, vf: VfIndex, mut totals: Totals) -> Option<Verdict> {
        let now = hal.now();
        let limits = self.port_policy.0.limits;
        let state = self.state_mut(vf);
        totals[Offence::Mailbox as usize] = state.counters.requests() + state.counters.resets;
        let verdict = state.monitor.observe(now, totals, &limits)?;
        match verdict.action {
            Action::Warn => {}
            Action::Throttle => self.apply_rate(hal, vf),
            Action::Quarantine => self.quarantine(hal, vf, Cause::Offence(verdict.offence)),
        }
        Some(verdict)
    }

    /// Quarantines a VF: the PF disables its queues and shows it a link that is down. Afterwards the card must be told [`Pf::link_override`].
    pub fn quarantine<H: Hal>(&mut self, hal: &mut H, vf: VfIndex, why: Cause) {
        if self.state_mut(vf).monitor.quarantine(why) {
            self.apply_enable(hal, vf);
            self.notify(hal, vf);
        }
    }

    /// Releases a quarantined VF, and ends its throttle. Afterwards the card must be told [`Pf::link_override`].
    pub fn release<H: Hal>(&mut self, hal: &mut H, vf: VfIndex) {
        let was_quarantined = self.state_mut(vf).monitor.release();
        self.apply_rate(hal, vf);
        self.apply_enable(hal, vf);
        if was_quarantined {
            self.notify(hal, vf);
        }
    }

    /// What is known of a VF's conduct.
    #[must_use]
    pub fn conduct(&self, vf: VfIndex) -> &Monitor {
        &self.state(vf).monitor
    }

    /// Ends throttles whose time is over.
    pub(super) fn forgive<H: Hal>(&mut self, hal: &mut H) {
        let now = hal.now();
        for vf in self.enabled_vfs() {
            if self.state_mut(vf).monitor.forgive(now) {
                self.apply_rate(hal, vf);
            }
        }
    }
}
