//! Compares the counts of each VF's offences with limits ([`crate::conduct`]), and has the card restrain a VF that
//! exceeds them. A throttled VF keeps its queues at a lower rate. A quarantined VF is reset, as i40e resets a VF that
//! the host disables: its queues stay off whatever its driver requests, and its link is down.
//!
//! The port counts traffic and sets the thresholds.

use super::state::AvfPfRestoreError;
use super::{AvfPf, AvfVfState, CardControlHal};
use crate::conduct::{
    HELD_INTERVAL_US, OffenceCounts, QuarantineCause, SERVICE, VfConductMonitor, VfConductVerdict,
};
use ::avf::control::{CardCommand, MailboxAndInterruptLimits};
use alloc::vec::Vec;
use i82576::Time;
use policy::{ConductLimits, Offence, OffenceAction};

/// Limits on the mailbox messages and interrupts of every throttled or quarantined VF.
const HELD: MailboxAndInterruptLimits =
    MailboxAndInterruptLimits { mail_us: SERVICE.as_micros() as u32, interrupt_us: HELD_INTERVAL_US };

impl AvfVfState {
    /// Returns true if the VF may move frames and see a link: it is enabled and not quarantined.
    pub(super) fn is_free(&self) -> bool {
        self.decided.policy.enabled && self.monitor.quarantined().is_none()
    }
}

impl AvfPf {
    /// Compares a VF's counts of offences with its limits, and takes the measure for the gravest exceeded limit.
    /// `totals` are the counts of card and host, to which the PF driver adds guest resets and malformed messages. Call
    /// it at least once a second: limits are rates per second.
    pub fn watch<H: CardControlHal>(
        &mut self,
        hal: &mut H,
        vf: u8,
        mut totals: OffenceCounts,
        limits: &ConductLimits,
    ) -> Option<VfConductVerdict> {
        let now = hal.now();
        let state = self.vfs.get_mut(usize::from(vf))?;
        totals[Offence::Mailbox as usize] += state.counters.resets;
        totals[Offence::Invalid as usize] += state.counters.malformed();
        let verdict = state.monitor.observe(now, totals, limits)?;
        match verdict.action {
            OffenceAction::Warn => {}
            OffenceAction::Throttle => self.apply_restraint(hal, vf),
            OffenceAction::Quarantine => self.quarantine(hal, vf, QuarantineCause::Offence(verdict.offence)),
        }
        Some(verdict)
    }

    /// Quarantines a VF of this PF: announces a reset to the VF's driver, and resets the VF. Until the release, the
    /// VF's queues stay off and its link is down.
    pub fn quarantine<H: CardControlHal>(&mut self, hal: &mut H, vf: u8, why: QuarantineCause) {
        let Some(state) = self.vfs.get_mut(usize::from(vf)) else { return };
        if state.monitor.quarantine(why) {
            self.reset_with_notice(hal, vf);
        }
    }

    /// Releases a quarantined VF: announces a reset to its driver and resets the VF, so that the driver sets it up
    /// again. Only ends the throttle of a VF that is not quarantined.
    pub fn release<H: CardControlHal>(&mut self, hal: &mut H, vf: u8) {
        let Some(state) = self.vfs.get_mut(usize::from(vf)) else { return };
        if state.monitor.release() {
            self.reset_with_notice(hal, vf);
        } else {
            self.apply_restraint(hal, vf);
        }
    }

    /// Returns the record of a VF's offences, and of the measures against the VF.
    #[must_use]
    pub fn conduct(&self, vf: u8) -> Option<&VfConductMonitor> {
        self.vfs.get(usize::from(vf)).map(|state| &state.monitor)
    }

    /// Returns the records of all VFs' offences, from which another process can continue.
    #[must_use]
    pub fn monitors(&self) -> Vec<VfConductMonitor> {
        self.vfs.iter().map(|state| state.monitor.clone()).collect()
    }

    /// Restores the records of the VFs' offences that the previous host process saved, and has the card throttle or
    /// quarantine the same VFs again. No VF is reset.
    ///
    /// # Errors
    /// [`AvfPfRestoreError`] if the conduct is that of another number of VFs, or a count in it is about to overflow.
    pub fn resume_conduct<H: CardControlHal>(
        &mut self,
        hal: &mut H,
        monitors: Vec<VfConductMonitor>,
    ) -> Result<(), AvfPfRestoreError> {
        if monitors.len() != self.vfs.len() {
            return Err(AvfPfRestoreError(
                "the saved number of conduct records differs from the number of VFs",
            ));
        }
        if !monitors.iter().all(VfConductMonitor::is_sound) {
            return Err(AvfPfRestoreError("the counter of a VF's offences is 2^58 or more"));
        }
        self.vfs.iter_mut().zip(monitors).for_each(|(state, monitor)| state.monitor = monitor);
        self.vfs().for_each(|vf| self.apply_restraint(hal, vf));
        Ok(())
    }

    /// Sends the card a VF's transmit rate and limits on messages and interrupts, as the VF's throttle or quarantine
    /// requires now.
    pub(super) fn apply_restraint<H: CardControlHal>(&mut self, hal: &mut H, vf: u8) {
        let AvfVfState { monitor, decided, .. } = &self.vfs[usize::from(vf)];
        if monitor.holds() {
            self.held |= 1 << vf;
        }
        hal.order(vf, CardCommand::Rate(monitor.rate(decided.policy.max_tx_rate)));
        hal.order(
            vf,
            CardCommand::Restrain(if monitor.holds() { HELD } else { MailboxAndInterruptLimits::default() }),
        );
    }

    /// Ends the expired throttles of VFs. Returns the time when the next one expires, or a delayed request may be
    /// served.
    pub(super) fn end_throttles<H: CardControlHal>(&mut self, hal: &mut H) -> Option<Time> {
        let (now, mut next) = (hal.now(), None);
        let held = self.held;
        for vf in self.vfs().filter(|vf| held >> vf & 1 == 1) {
            if self.state_mut(vf).monitor.end_throttle(now) {
                self.apply_restraint(hal, vf);
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
