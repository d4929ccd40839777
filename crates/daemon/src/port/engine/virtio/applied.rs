//! Policy, conduct and link of virtio VFs, applied to their devices.

use super::VirtioCard;
use super::rules::rules;
use i82576::MacAddress;
use pcie::VfIndex;
use plane::PortIndex;
use plane::guard::GuardedPlane;
use policy::{AddressOwner, PolicyError, VfLinkPolicy, VfPolicy};
use virtio_nic::MAX_VFS;

impl VirtioCard {
    /// Returns true if the switch's tables have to be computed again. The VFs whose guests have changed their addresses share the
    /// cost.
    pub(super) fn take_changed(&mut self) -> bool {
        let by_guests = self.card.take_changed();
        let addresses = self.card.address_count();
        let held = self.plane.absent_addresses();
        self.owed.owe_tables(by_guests.unwrap_or_default(), addresses + held, addresses);
        by_guests.is_some() | std::mem::take(&mut self.changed)
    }

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

    /// Has a VF that loses `trust` forget the address that it has learned, if others use the address.
    pub(super) fn revoke_address(&mut self, vf: VfIndex) {
        let learned = self.card.known_guest(vf.get()).address.filter(|mac| !mac.is_virtual_router());
        let port = PortIndex::of_field(vf.get().into());
        if learned.is_some_and(|mac| self.plane.revoke_address(port, mac)) {
            self.card.forget_address(vf.get());
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
        let is_new = self.decided[vf.index()].policy.mac != Some(mac);
        let uses = |other: VfIndex| {
            if self.others.has(other) {
                is_new && self.is_kept_by_other_card(other, mac, wanted)
            } else {
                self.is_chosen(other, mac, wanted)
            }
        };
        match VfIndex::first(MAX_VFS).find(|other| *other != vf && uses(*other)) {
            Some(other) => Err(PolicyError::MacInUse(mac, AddressOwner::Vf(other))),
            None => Ok(()),
        }
    }

    /// Returns true if a VF of this card has an address by its guest's choice, now and with the policies `wanted`.
    fn is_chosen(&self, vf: VfIndex, mac: MacAddress, wanted: &[VfPolicy]) -> bool {
        let now = &self.decided[vf.index()].policy;
        let mut policies = [Some(now), wanted.get(vf.index())].into_iter().flatten();
        !policies.any(|policy| policy.admin_mac) && self.card.address(vf.get()) == Some(mac)
    }

    /// Returns true if a VF of another card has an address, perhaps beside others, and its policy in `wanted` does not take the
    /// address away.
    fn is_kept_by_other_card(&self, vf: VfIndex, mac: MacAddress, wanted: &[VfPolicy]) -> bool {
        let has = self.card.rules(vf.get()).is_some_and(|rules| rules.addresses.contains(&mac));
        let given = self.decided[vf.index()].policy.mac == Some(mac);
        has && !(given && wanted.get(vf.index()).is_some_and(|policy| policy.mac != Some(mac)))
    }
}
