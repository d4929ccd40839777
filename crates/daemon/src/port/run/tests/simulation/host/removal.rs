//! Administrator who removes the last VF of a simulated port, and adds it again for another guest.

use super::super::families::mac_of;
use super::super::policy::SimulatedPolicy;
use super::{SimulatedHost, slot_of_vf};
use crate::config::PortConfig;
use crate::control::status::VfStatus;
use crate::port::command::PortThreadCommand;
use crate::port::moments::death::ProcessDeath;
use crate::port::policy_update::{PortPolicyUpdate, PreparedVf, VfPolicyUpdate};
use crate::settings::{PortSettings, SettingsGroup};
use crate::store::faulty_disk;
use crate::vault::PortFileDescriptorStore;
use host::socket::StreamSocket;
use std::io::ErrorKind;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

/// Attempts within which a change is made although the host dies.
const ATTEMPTS: usize = 20;

impl SimulatedHost {
    /// Has the port offer this number of VFs. The administrator repeats a change that a death has prevented.
    pub(in super::super) fn offer_vfs(&mut self, count: usize) -> Result<(), String> {
        for _ in 0..ATTEMPTS {
            if self.settings.ports[0].vfs.len() == count {
                return Ok(());
            }
            self.change_vf_count(count)?;
        }
        Err(format!("the port does not offer {count} VFs after {ATTEMPTS} attempts"))
    }

    /// Changes the number of VFs as `management` does: the port checks the change, the state file keeps it, the port adds VFs, and
    /// withdraws others. A host that dies meanwhile has done a part of this.
    fn change_vf_count(&mut self, count: usize) -> Result<(), String> {
        let mut next = self.settings.clone();
        let settings = PortSettings { vfs: Some(count as u8), ..PortSettings::default() };
        next.ports[0].layers.change(settings.leaves(), false);
        next.resolve().unwrap();
        let before = self.settings.ports[0].vfs.len();
        let update = update_of(&next.ports[0], before);
        let refused = |why| format!("the port refuses {count} VFs: {why}");
        let Some(checked) = self.ask(|answer| PortThreadCommand::Check(update.clone(), answer)) else {
            return Ok(());
        };
        checked.map_err(refused)?;
        let port = &next.ports[0];
        let vault = PortFileDescriptorStore::new(&self.vault, &port.name);
        let new = port.vfs.get(before..).unwrap_or_default();
        let opened = catch_unwind(AssertUnwindSafe(|| PreparedVf::open_all(new, &vault, &self.threads)));
        let new = match opened {
            Ok(opened) => opened.map_err(|error| error.to_string())?,
            Err(reason) if reason.is::<ProcessDeath>() => {
                self.kill();
                return Ok(());
            }
            Err(defect) => resume_unwind(defect),
        };
        // The disk works again after an earlier failure.
        faulty_disk::set(None);
        self.state_file.keep(&next, &self.settings).map_err(|error| error.to_string())?;
        self.unsure.clear();
        // A port that dies from here on has a successor that reads the new state file.
        let Some(applied) = self.ask(|answer| PortThreadCommand::ApplyPolicies(update, new, answer)) else {
            return Ok(());
        };
        applied.map_err(refused)?;
        self.settings = next;
        if count < before {
            self.ask(|answer| PortThreadCommand::Withdraw(count, answer));
        }
        Ok(())
    }

    /// Checks that nothing is left of a VF that the administrator has removed: no function, and no socket.
    pub(in super::super) fn check_removed(&self, vf: usize) -> Result<(), String> {
        let slots = self.port.as_ref().expect("a port runs between two steps").clients.slots();
        if slot_of_vf(slots, vf).is_some() {
            return Err(format!("the port offers VF {vf}, which was removed"));
        }
        let removed = self.settings.ports[0].all_vfs().nth(vf).expect("the configuration has the VF");
        match StreamSocket::connect(&removed.socket) {
            Ok(_) => Err(format!("the socket of VF {vf}, which was removed, accepts clients")),
            Err(error) if matches!(error.kind(), ErrorKind::ConnectionRefused | ErrorKind::NotFound) => {
                Ok(())
            }
            Err(error) => {
                Err(format!("the socket of VF {vf}, which was removed, neither listens nor refuses: {error}"))
            }
        }
    }
}

/// Returns the update to a port's configuration from one with the first `before` of its VFs.
fn update_of(port: &PortConfig, before: usize) -> PortPolicyUpdate {
    let vfs = port.vfs.iter().enumerate();
    let vfs = vfs.map(|(index, vf)| {
        let quarantine = (index >= before && vf.quarantine).then_some(true);
        VfPolicyUpdate { policy: vf.policy, quarantine }
    });
    PortPolicyUpdate { policy: port.policy, vfs: vfs.collect() }
}

/// Checks that a VF that was added has nothing of the guest that had it before: no client, no driver, and no filters but that of an
/// address of its own, and of its port VLAN.
pub(in super::super) fn check_new(
    vf: usize,
    status: &VfStatus,
    policy: SimulatedPolicy,
) -> Result<(), String> {
    let VfStatus { active, filters, quotas, mac, .. } = status;
    let vlans = u16::from(policy.vlan > 0);
    let has_filters = quotas.is_some_and(|quotas| quotas.mac.used > 1 || quotas.vlan.used > vlans);
    let has_own_mac = [false, true].iter().any(|is_second| mac_of(vf, *is_second).to_string() == *mac);
    if *active || status.peer.is_some() || filters.used > 1 || has_filters || !has_own_mac {
        return Err(format!(
            "VF {vf} was added, and has {mac}, {:?}, {active}, {filters:?}, {quotas:?}",
            status.peer
        ));
    }
    Ok(())
}
