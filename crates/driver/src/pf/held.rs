//! VFs that do too much ([`crate::conduct`]): each is judged by what was counted, and an 82576 is made to hold it back.
//!
//! Left out: counting. Requests are counted here; the rest the card and its host count, and give to [`Pf::watch`].

use super::Pf;
use crate::conduct::{Action, Cause, Monitor, Offence, Totals, Verdict};
use crate::hal::Hal;
use i82576::VfIndex;

impl Pf {
    /// Judges a VF by what was counted of it, requests excepted, which are counted here. To be called now and then;
    /// a rate needs a second. Afterwards the card must be told [`Pf::link_override`].
    pub fn watch<H: Hal>(&mut self, hal: &mut H, vf: VfIndex, mut totals: Totals) -> Option<Verdict> {
        let now = hal.now();
        let limits = self.port_policy.limits;
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

    /// Shuts a VF in: it moves no frame and sees no link. Afterwards the card must be told [`Pf::link_override`].
    pub fn quarantine<H: Hal>(&mut self, hal: &mut H, vf: VfIndex, why: Cause) {
        if self.state_mut(vf).monitor.quarantine(why) {
            self.apply_enable(hal, vf);
            self.notify(hal, vf);
        }
    }

    /// Lets a VF out that was shut in, and lifts every throttle. Afterwards the card must be told
    /// [`Pf::link_override`].
    pub fn release<H: Hal>(&mut self, hal: &mut H, vf: VfIndex) {
        let was_shut_in = self.state_mut(vf).monitor.release();
        self.apply_rate(hal, vf);
        self.apply_enable(hal, vf);
        if was_shut_in {
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
