//! Policy, conduct and link of virtio VFs, applied to their devices.

use super::VirtioCard;
use super::rules::rules;
use pcie::VfIndex;
use policy::{AddressOwner, PolicyError, VfLinkPolicy, VfPolicy};
use virtio_nic::MAX_VFS;

impl VirtioCard {
    /// Returns true if a VF has a link: its policy and the port's link allow one, and the VF is not quarantined.
    /// Without a link the VF moves no frame, but its guest sees that only after a disconnection.
    pub(super) fn has_link(&self, vf: VfIndex) -> bool {
        let policy = self.decided[vf.index()].in_force();
        !self.is_barred(vf, &policy) && (self.link || policy.state == VfLinkPolicy::Enable)
    }

    /// Returns true if this policy or a quarantine denies a VF a link, whatever the port's link is.
    pub(super) fn is_barred(&self, vf: VfIndex, policy: &VfPolicy) -> bool {
        let down = policy.state == VfLinkPolicy::Disable || !policy.enabled;
        down || self.conduct[vf.index()].quarantined().is_some()
    }

    /// Updates the forwarding rules of a VF's device to the VF's policy, offences and link. A VF of another family keeps the
    /// rules that reserve its addresses.
    pub(super) fn enforce(&mut self, vf: VfIndex) {
        if self.others.has(vf) {
            return;
        }
        let policy = self.decided[vf.index()].in_force();
        let rate = self.conduct[vf.index()].rate(policy.max_tx_rate);
        let wanted = rules(&policy, self.has_link(vf), rate);
        if self.card.rules(vf.get()) != Some(&wanted) {
            self.card.set_rules(vf.get(), wanted);
        }
    }

    pub(super) fn enforce_all(&mut self) {
        VfIndex::first(MAX_VFS).for_each(|vf| self.enforce(vf));
    }

    /// Checks that the address in a VF's policy is not in use by a VF whose guest chose that address. `wanted` holds
    /// the new policies of all VFs, by index.
    pub(super) fn check_address(
        &self,
        vf: VfIndex,
        policy: &VfPolicy,
        wanted: &[VfPolicy],
    ) -> Result<(), PolicyError> {
        let Some(mac) = policy.mac.filter(|_| policy.admin_mac) else { return Ok(()) };
        let chooses = |other: VfIndex| {
            let now = &self.decided[other.index()].policy;
            ![Some(now), wanted.get(other.index())].into_iter().flatten().any(|policy| policy.admin_mac)
        };
        let has =
            |other: &VfIndex| *other != vf && chooses(*other) && self.card.address(other.get()) == Some(mac);
        match VfIndex::first(MAX_VFS).find(has) {
            Some(other) => Err(PolicyError::MacInUse(mac, AddressOwner::Vf(other))),
            None => Ok(()),
        }
    }
}
