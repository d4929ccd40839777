//! Policies that an administrator sets in a simulated world.

use super::super::host::PolicyChange;
use super::super::policy::SimulatedPolicy;
use super::{SimulatedGuest, SimulatedWorld};
use crate::config::file::CardFamily;
use crate::store::faulty_disk::DiskFault;

impl SimulatedWorld {
    /// Sets the policy of a guest's VF. A virtio VF with a disabled link, or in quarantine, has no client, and its guest waits for
    /// its VMM: that is left out.
    pub(super) fn set_policy(
        &mut self,
        guest: usize,
        mut policy: SimulatedPolicy,
        disk: Option<DiskFault>,
    ) -> Result<(), String> {
        let has_client_always = self.guests[guest].family() == CardFamily::Virtio;
        policy.is_disabled &= !has_client_always;
        policy.is_quarantined &= !has_client_always;
        // A virtio VF has no filters.
        policy.has_own_quotas &= !has_client_always;
        // Such a guest sends any bytes of its memory: those of honest guests' frames too.
        policy.may_spoof &= !self.guests[guest].is_hostile();
        // The station of an unknown address may be behind a trusted guest.
        let has_uplink = self.host.borrow().uplink.is_some();
        policy.is_trusted &= !self.guests[guest].is_hostile() && !has_uplink;
        let outcome = self.host.borrow_mut().set_policy(guest, policy, disk)?;
        match outcome {
            PolicyChange::Acknowledged => {}
            PolicyChange::Refused => self.summary.refused += 1,
            PolicyChange::Interrupted { power_lost: false } => {}
            // The VMMs end with the machine.
            PolicyChange::PowerLost | PolicyChange::Interrupted { power_lost: true } => {
                self.summary.power_losses += 1;
                self.guests.iter_mut().for_each(SimulatedGuest::vanish);
            }
        }
        Ok(())
    }
}
