//! Compares the counts of each 82576 VF's offences with limits ([`crate::conduct`]), and has the card restrain a VF
//! that exceeds them.
//!
//! The PF counts mailbox requests and resets; card and host count the rest for [`Pf::watch`].

use super::Pf;
use crate::conduct::{OffenceCounts, QuarantineCause, VfConductMonitor, VfConductVerdict};
use crate::hal::Hal;
use i82576::VfIndex;
use policy::{Offence, OffenceAction};

impl Pf {
    /// Compares a VF's counts of offences with its limits, and takes the measure for the gravest exceeded limit. The PF
    /// driver's own count of mailbox requests and resets replaces that in `totals`. Call it at least once a second:
    /// limits are rates per second.
    pub fn watch<H: Hal>(
        &mut self,
        hal: &mut H,
        vf: VfIndex,
        mut totals: OffenceCounts,
    ) -> Option<VfConductVerdict> {
        let now = hal.now();
        let limits = self.port_policy.0.limits;
        let state = self.state_mut(vf);
        totals[Offence::Mailbox as usize] = state.counters.requests() + state.counters.resets;
        let verdict = state.monitor.observe(now, totals, &limits)?;
        match verdict.action {
            OffenceAction::Warn => {}
            OffenceAction::Throttle => self.apply_rate(hal, vf),
            OffenceAction::Quarantine => self.quarantine(hal, vf, QuarantineCause::Offence(verdict.offence)),
        }
        Some(verdict)
    }

    /// Quarantines a VF: the PF disables its queues and shows it a link that is down. Afterwards pass
    /// [`Pf::link_override`] to the card.
    pub fn quarantine<H: Hal>(&mut self, hal: &mut H, vf: VfIndex, why: QuarantineCause) {
        if self.state_mut(vf).monitor.quarantine(why) {
            self.apply_enable(hal, vf);
            self.notify(hal, vf);
        }
    }

    /// Releases a quarantined VF, and ends its throttle. Afterwards pass [`Pf::link_override`] to the card.
    pub fn release<H: Hal>(&mut self, hal: &mut H, vf: VfIndex) {
        let was_quarantined = self.state_mut(vf).monitor.release();
        self.apply_rate(hal, vf);
        self.apply_enable(hal, vf);
        if was_quarantined {
            self.retry_withheld(hal);
            self.follow_vlans(hal);
            self.notify(hal, vf);
        }
    }

    /// Returns the record of a VF's offences, and of the measures against the VF.
    #[must_use]
    pub fn conduct(&self, vf: VfIndex) -> &VfConductMonitor {
        &self.state(vf).monitor
    }

    /// Ends the throttles of VFs whose time has passed.
    pub(super) fn end_throttles<H: Hal>(&mut self, hal: &mut H) {
        let now = hal.now();
        for vf in self.enabled_vfs() {
            if self.state_mut(vf).monitor.end_throttle(now) {
                self.apply_rate(hal, vf);
            }
        }
    }
}
