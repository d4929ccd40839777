//! Administrator of a simulated host, who changes policies of VFs. The disk of the state file may fail meanwhile, and the
//! machine may lose its power.

use super::super::policy::SimulatedPolicy;
use super::SimulatedHost;
use crate::port::command::PortThreadCommand;
use crate::port::policy_update::{PortPolicyUpdate, VfPolicyUpdate};
use crate::settings::VfSettings;
use crate::store::faulty_disk::{self, DiskDeath, DiskFault};
use crate::store::{SettingsStoreError, StateFile};
use crate::vault::FileDescriptorStore;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

/// Outcome of a change of a policy, as the administrator sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) enum PolicyChange {
    /// The change is in force, also after a death from here on.
    Acknowledged,
    /// The settings are as they were.
    Refused,
    /// The change is in force, and then the machine has lost its power.
    PowerLost,
    /// The host has died while it kept the change, perhaps with its machine.
    Interrupted { power_lost: bool },
}

impl SimulatedHost {
    /// Changes the policy of a VF as `management` does: the port checks the change, the state file keeps it, and then the port
    /// applies it. A host that dies meanwhile has done a part of this. The disk of the state file may fail.
    pub(in super::super) fn set_policy(
        &mut self,
        vf: usize,
        policy: SimulatedPolicy,
        disk: Option<DiskFault>,
    ) -> Result<PolicyChange, String> {
        self.policies.begin(vf, policy);
        let change = self.change_settings(vf, policy, disk)?;
        let is_in_force = match change {
            PolicyChange::Acknowledged | PolicyChange::PowerLost => true,
            PolicyChange::Refused => false,
            // The change is the administrator's to repeat: both are right.
            PolicyChange::Interrupted { .. } => policy.is_in(vf, &self.status().vfs[vf].settings),
        };
        self.policies.end(vf, if is_in_force { policy } else { self.policies.of(vf) });
        Ok(change)
    }

    /// Changes the settings of a VF.
    fn change_settings(
        &mut self,
        vf: usize,
        policy: SimulatedPolicy,
        disk: Option<DiskFault>,
    ) -> Result<PolicyChange, String> {
        let mut next = self.settings.clone();
        next.ports[0].vfs[vf].layers.change(policy.settings(vf), false);
        next.resolve().unwrap();
        let port = &next.ports[0];
        let vfs = port.vfs.iter().zip(&self.settings.ports[0].vfs).map(|(vf, was)| {
            let quarantine = (vf.quarantine != was.quarantine).then_some(vf.quarantine);
            VfPolicyUpdate { policy: vf.policy, quarantine }
        });
        let update = PortPolicyUpdate { policy: port.policy, vfs: vfs.collect() };
        let refused = |why| format!("the port refuses {policy:?} of VF {vf}: {why}");
        let Some(checked) = self.ask(|answer| PortThreadCommand::Check(update.clone(), answer)) else {
            // The host has died before the state file keeps the change: the old settings are in force.
            return Ok(PolicyChange::Refused);
        };
        checked.map_err(refused)?;
        faulty_disk::set(disk);
        let kept = catch_unwind(AssertUnwindSafe(|| self.state_file.keep(&next, &self.settings)));
        let power_lost = matches!(disk, Some(DiskFault::PowerLoss(_)));
        match kept {
            Ok(Ok(())) if power_lost => {
                self.die_with(power_lost);
                return Ok(PolicyChange::PowerLost);
            }
            Ok(Ok(())) => {
                faulty_disk::set(None);
                // A change that needs no file passes although the disk has refused to replace the file.
                if !self.state_file.is_uncertain() {
                    self.unsure.clear();
                }
            }
            Ok(Err(error)) if disk.is_some() => {
                if matches!(error, SettingsStoreError::Uncertain { .. }) {
                    self.unsure.push((vf, policy));
                }
                return Ok(PolicyChange::Refused);
            }
            Ok(Err(error)) => return Err(error.to_string()),
            Err(reason) if reason.is::<DiskDeath>() => {
                self.die_with(power_lost);
                return Ok(PolicyChange::Interrupted { power_lost });
            }
            Err(defect) => resume_unwind(defect),
        }
        // A port that dies from here on has a successor that reads the new state file.
        if let Some(applied) = self.ask(|answer| PortThreadCommand::ApplyPolicies(update, Vec::new(), answer))
        {
            self.settings = next;
            applied.map_err(refused)?;
        }
        Ok(PolicyChange::Acknowledged)
    }

    /// Returns true if a VF may send in others' names or is trusted, or may be so after the end of the process.
    pub(in super::super) fn may_be_unchecked(&self, vf: usize) -> bool {
        let unsure = self.unsure.iter().filter(|(of, _)| *of == vf).map(|(_, policy)| *policy);
        unsure.chain([self.policies.of(vf)]).any(|policy| policy.may_spoof || policy.is_trusted)
    }

    /// Takes over what a new process has found in the state file, which may hold changes that the host has refused.
    pub(super) fn take_unsure_changes(&mut self) {
        self.state_file = StateFile::default();
        for (vf, policy) in std::mem::take(&mut self.unsure) {
            let found = &self.settings.ports[0].vfs[vf];
            if policy.is_in(vf, &VfSettings::of(&found.policy, found.quarantine)) {
                self.policies.begin(vf, policy);
                self.policies.end(vf, policy);
            }
        }
    }

    /// Ends the process, and the machine with it if `power_lost`: then no descriptor is left, and the disk may lose what was not
    /// synced. Starts the successor.
    fn die_with(&mut self, power_lost: bool) {
        self.clear_process();
        if power_lost {
            faulty_disk::lose_power(&mut self.random);
            self.vault = FileDescriptorStore::default();
        }
        self.start();
    }
}
