//! Runs cases on a device of this guest, one after the other, and examines the device after each.

use super::bus::AttackedFunction;
use super::examine::{check_answers, check_usable, config_change};
use super::memory_map::MemoryMap;
use super::result::{CaseObservations, GuestResult, GuestVerdict, InapplicableCase};
use crate::case::{Attack, AttackCase, AttackGroup};
use crate::device::AttackedDevice;
use crate::field::Field;
use crate::guest::{AttackingGuest, GuestStart, GuestStep, PLAIN};
use anyhow::Result;
use std::time::Duration;

/// Time after a case's last step in which a VMM carries out what it has postponed.
const POSTPONED: Duration = Duration::from_millis(5);

/// Limits and addresses of a run.
#[derive(Debug, Clone, Copy)]
pub struct GuestRun<'a> {
    /// Kind of the attacked device.
    pub device: AttackedDevice,
    /// Longest allowed access to a register.
    pub limit: Duration,
    /// Longest allowed time until the device works again.
    pub patience: Duration,
    /// Ethernet address of a station that the PF must protect, or `None` to leave out the requests that name one.
    pub neighbour: Option<[u8; 6]>,
    /// Physical addresses of this machine.
    pub memory_map: &'a MemoryMap,
}

/// Destination of frames to a neighbour if the run has none.
const NO_STATION: [u8; 6] = [2, 0, 0, 0, 0, 1];

/// Returns the start and the steps of a case that a guest on this kind of device can run.
#[must_use]
pub fn steps(case: &AttackCase, device: AttackedDevice) -> Option<(GuestStart, &'static [GuestStep])> {
    match case.attack {
        Attack::Guest(start, steps) | Attack::Frames(start, steps, _) => {
            let runs = case.family == device.family() && steps.iter().all(|step| is_possible(step, device));
            runs.then_some((start, steps))
                .filter(|_| device != AttackedDevice::Pf || start != GuestStart::Known)
        }
        _ => None,
    }
}

/// Returns true if a device can carry out a step: a PF has no mailbox of a VF, and its driver has no offloads.
fn is_possible(step: &GuestStep, device: AttackedDevice) -> bool {
    match *step {
        GuestStep::Write(register, _) | GuestStep::Check(register, ..) => device.has_register(register),
        GuestStep::Steps(steps) | GuestStep::Repeat(_, steps) => {
            steps.iter().all(|step| is_possible(step, device))
        }
        GuestStep::Mail(..) | GuestStep::MailNeighbour(..) => device != AttackedDevice::Pf,
        GuestStep::Send(_, offload) => device != AttackedDevice::Pf || offload == PLAIN,
        _ => true,
    }
}

/// Returns true if the PF's answer to a step depends on a neighbour's address.
fn names_neighbour(step: &GuestStep) -> bool {
    match *step {
        GuestStep::MailNeighbour(..) => true,
        GuestStep::Message(_, body, _) => body.iter().any(|field| matches!(field, Field::NeighbourMac)),
        GuestStep::Steps(steps) | GuestStep::Repeat(_, steps) => steps.iter().any(names_neighbour),
        _ => false,
    }
}

impl GuestRun<'_> {
    /// Returns the start and the steps of a case, or `None` if it is not for the device or does not apply to this run.
    fn steps(&self, case: &AttackCase) -> Option<(GuestStart, &'static [GuestStep])> {
        steps(case, self.device).filter(|(_, steps)| self.objection(case, steps).is_none())
    }

    /// Returns the reason why a case for the device would not test its rule in this run.
    fn objection(&self, case: &AttackCase, steps: &[GuestStep]) -> Option<String> {
        if self.neighbour.is_none() && steps.iter().any(names_neighbour) {
            return Some("it needs --neighbour".to_owned());
        }
        self.memory_map.objection(case.name)
    }

    /// Returns the cases for the device that would not test their rules in this run.
    #[must_use]
    pub fn not_applicable(&self, cases: &[(&AttackGroup, &AttackCase)]) -> Vec<InapplicableCase> {
        let inapplicable = |(_, case): &(&AttackGroup, &AttackCase)| {
            let (_, steps) = steps(case, self.device)?;
            Some(InapplicableCase { case: case.name, reason: self.objection(case, steps)? })
        };
        cases.iter().filter_map(inapplicable).collect()
    }

    /// Runs cases until one leaves the device silent or a signal asks for the end. `begin` is called before each case, `done` after it. Returns the names
    /// of the cases that did not run.
    pub fn run<F: AttackedFunction>(
        &self,
        function: &mut F,
        cases: &[(&AttackGroup, &AttackCase)],
        mut begin: impl FnMut(&AttackCase),
        mut done: impl FnMut(GuestResult),
    ) -> Vec<&'static str> {
        let runnable: Vec<_> =
            cases.iter().filter_map(|(group, case)| Some((*group, *case, self.steps(case)?))).collect();
        let from = |first: usize| runnable[first..].iter().map(|(_, case, _)| case.name).collect();
        for (index, (group, case, (start, steps))) in runnable.iter().enumerate() {
            begin(case);
            let seen = self.attack(function, *start, steps);
            // The signal may have cut the case off, so it has no result.
            if function.is_interrupted() {
                return from(index);
            }
            let (result, detail) = seen.judge(self.limit);
            done(GuestResult {
                group: group.name,
                case: case.name,
                rule: case.rule,
                result,
                detail,
                longest_access_us: seen.longest.time.as_micros() as u64,
                longest_access_register: seen.longest.register,
                recovery_ms: seen.recovery.as_millis() as u64,
            });
            if result == GuestVerdict::DeviceSilent {
                return from(index + 1);
            }
        }
        Vec::new()
    }

    /// Runs a case on the device after a reset, and examines the device.
    fn attack<F: AttackedFunction>(
        &self,
        function: &mut F,
        start: GuestStart,
        steps: &[GuestStep],
    ) -> CaseObservations {
        let mut seen = CaseObservations::default();
        match self.attack_after_reset(function, start, steps, &mut seen) {
            Ok(()) => {}
            Err(error) => seen.silent = Some(format!("{error:#}")),
        }
        match check_usable(function, self.device, self.patience) {
            Ok(recovery) => seen.recovery = recovery,
            Err(error) => seen.silent = Some(format!("{error:#}")),
        }
        seen
    }

    fn attack_after_reset<F: AttackedFunction>(
        &self,
        function: &mut F,
        start: GuestStart,
        steps: &[GuestStep],
        seen: &mut CaseObservations,
    ) -> Result<()> {
        function.renew()?;
        function.take_longest_access();
        let before = function.config()?;
        let neighbour = self.neighbour.unwrap_or(NO_STATION);
        let attacked = AttackingGuest::begin(&mut *function, self.device, start, neighbour)
            .and_then(|mut guest| guest.run(steps).map(|()| guest.settle()));
        seen.differs = attacked.err().map(|error| format!("{error:#}"));
        function.wait(POSTPONED);
        let answers = check_answers(function, self.device);
        seen.longest = function.take_longest_access();
        seen.config = config_change(&before, &function.config()?);
        answers
    }
}

#[cfg(test)]
mod tests;
