//! Applies the administrator's policies to VFs. A running VF is reset for the changes that i40e resets a VF for, and
//! for values that its driver reads once.

use super::counters::VirtchnlRefusal;
use super::decided::AvfVfPolicy;
use super::limits::LIMITS;
use super::{AvfPf, AvfVfState, CardControlHal};
use ::avf::control::CardCommand;
use ::avf::ids::MAX_VFS;
use ::policy::{AddressOwner, PolicyError, RefusedVf, VfPolicy};
use alloc::vec::Vec;
use pcie::VfIndex;
use units::MacAddress;

/// Returns true if a running VF must be reset for its driver to notice the change from the `old` policy to the `new`
/// one.
fn needs_reset(new: &VfPolicy, old: &VfPolicy) -> bool {
    (new.mac, new.admin_mac, new.vlan) != (old.mac, old.admin_mac, old.vlan)
        || (new.trust, new.enabled, new.allmulti) != (old.trust, old.enabled, old.allmulti)
        || new.longest_frame(&LIMITS) != old.longest_frame(&LIMITS)
}

/// Applies a check to the policy of each VF. Returns the first VF whose policy is refused, with the reason.
fn each(
    wanted: &[VfPolicy],
    check: impl Fn(u8, &VfPolicy) -> Result<(), PolicyError>,
) -> Result<(), RefusedVf> {
    let mut vfs = VfIndex::first(MAX_VFS).zip(wanted);
    vfs.try_for_each(|(vf, policy)| check(vf.get(), policy).map_err(|error| (vf, error)))
}

impl AvfPf {
    /// Returns the policy of a VF.
    #[must_use]
    pub fn policy(&self, vf: u8) -> Option<&VfPolicy> {
        self.vfs.get(usize::from(vf)).map(|state| &state.decided.policy)
    }

    /// Checks that VFs, by index, can have these policies now. Each policy must be valid by itself.
    ///
    /// # Errors
    /// First VF whose policy is refused, and the reason.
    pub fn check_policies(&self, wanted: &[VfPolicy]) -> Result<(), RefusedVf> {
        each(wanted, |vf, policy| self.admit(vf, policy, wanted))
    }

    /// Sets policies of VFs, by index, all of them or none.
    ///
    /// # Errors
    /// First VF whose policy is refused, and the reason: nothing is changed.
    pub fn set_policies<H: CardControlHal>(
        &mut self,
        hal: &mut H,
        wanted: &[VfPolicy],
    ) -> Result<(), RefusedVf> {
        each(wanted, |_, policy| policy.check(&LIMITS))?;
        self.check_policies(wanted)?;
        (0..).zip(wanted).for_each(|(vf, policy)| self.apply_policy(hal, vf, *policy));
        Ok(())
    }

    /// Sets the policy of a VF. Link, spoof check, rate, allowed VLANs and sharing of addresses change at once. For
    /// other changes a running VF is notified and reset, also if it loses an address that it has shared.
    ///
    /// # Errors
    /// [`PolicyError`]: nothing is changed.
    pub fn set_policy<H: CardControlHal>(
        &mut self,
        hal: &mut H,
        vf: u8,
        policy: VfPolicy,
    ) -> Result<(), PolicyError> {
        policy.check(&LIMITS)?;
        self.admit(vf, &policy, &[])?;
        self.apply_policy(hal, vf, policy);
        Ok(())
    }

    /// Checks that a VF can have a policy now, while the policies of all VFs change to `wanted`, by index.
    fn admit(&self, vf: u8, policy: &VfPolicy, wanted: &[VfPolicy]) -> Result<(), PolicyError> {
        let old = self.policy(vf).ok_or(PolicyError::NoSuchVf(vf))?;
        let Some(mac) = policy.mac.filter(|mac| Some(*mac) != old.mac) else { return Ok(()) };
        let keeps = |owner: &u8| {
            let AvfVfState { decided, mac: own, .. } = self.state(*owner);
            let changes = wanted.get(usize::from(*owner)).is_some_and(|new| new.mac != decided.policy.mac);
            !changes || ![decided.policy.mac, *own].contains(&Some(mac))
        };
        let twin = || (0..).zip(wanted).find(|(n, new)| *n != vf && new.mac == Some(mac)).map(|(n, _)| n);
        match self.owners(mac, vf).find(keeps).or_else(twin) {
            Some(owner) => Err(PolicyError::MacInUse(mac, AddressOwner::Vf(VfIndex::of_field(owner.into())))),
            None => Ok(()),
        }
    }

    /// Reserves an address for a VF that the card of another family serves: no VF of this card may begin to use it, unless
    /// it is trusted. The reservation outlives policies and resets.
    pub fn reserve_address(&mut self, vf: u8, mac: Option<MacAddress>) {
        if let Some(state) = self.vfs.get_mut(usize::from(vf)) {
            state.reserved = mac;
        }
    }

    fn apply_policy<H: CardControlHal>(&mut self, hal: &mut H, vf: u8, policy: VfPolicy) {
        let state = self.state_mut(vf);
        let old = core::mem::replace(&mut state.decided.policy, policy);
        if policy.mac != old.mac {
            state.mac = policy.mac;
        }
        let shares_no_more = old.share_mac && !policy.share_mac;
        if shares_no_more {
            self.end_sharing(hal, vf);
        }
        let is_revoked = old.trust && !policy.trust || shares_no_more;
        let gives_up = is_revoked && self.revoke_addresses(hal, vf);
        if gives_up || needs_reset(&policy, &old) {
            self.reset_with_notice(hal, vf);
            return;
        }
        hal.order(vf, CardCommand::SpoofCheck(policy.spoofchk));
        self.apply_restraint(hal, vf);
        self.follow_vlan_policy(hal, vf);
        if policy.state != old.state {
            self.send_link(hal, vf);
        }
    }

    /// Resets the other VFs that shared the address of a VF's policy, since the VF has lost `share_mac`.
    fn end_sharing<H: CardControlHal>(&mut self, hal: &mut H, vf: u8) {
        let Some(own) = self.state(vf).decided.policy.mac else { return };
        for other in self.vfs().filter(|other| *other != vf) {
            if self.state(other).uses(own) && self.give_up(hal, other, own) {
                self.reset_with_notice(hal, other);
            }
        }
    }

    /// Takes back the addresses that a VF used by the `trust` or `share_mac` that it has lost. Returns true if the VF must be reset,
    /// for which its main address is set.
    fn revoke_addresses<H: CardControlHal>(&mut self, hal: &mut H, vf: u8) -> bool {
        let state = self.state(vf);
        let used: Vec<_> = state.addresses.iter().copied().chain(state.mac).collect();
        let mut gives_up = false;
        for mac in used {
            gives_up |= self.give_up(hal, vf, mac);
        }
        gives_up
    }

    /// Returns true if a VF may not use an address any more that it has used. Its main address then becomes that of its policy.
    fn give_up<H: CardControlHal>(&mut self, hal: &mut H, vf: u8, mac: MacAddress) -> bool {
        let VfPolicy { mac: own, trust, share_mac, .. } = self.state(vf).decided.policy;
        let is_free = mac.is_group() || mac.is_virtual_router() || own == Some(mac) || trust;
        let gives_up =
            !is_free && (self.may_use(vf, mac).is_err() || !share_mac && hal.revoke_address(vf, mac));
        if gives_up && self.state(vf).mac == Some(mac) {
            self.state_mut(vf).mac = own;
        }
        gives_up
    }

    /// Sets two numbers of queue pairs: that of a VF that requests no number, and the most that a VF may request.
    /// Resets the VF on a change. Returns false, and changes nothing, for invalid numbers.
    pub fn set_pairs<H: CardControlHal>(&mut self, hal: &mut H, vf: u8, pairs: u16, most: u16) -> bool {
        let Some(state) = self.vfs.get_mut(usize::from(vf)) else { return false };
        let new = AvfVfPolicy { pairs, most_pairs: most, ..state.decided };
        if new.has_pairs() && new != state.decided {
            (state.decided, state.pairs) = (new, pairs);
            self.reset_with_notice(hal, vf);
        }
        new.has_pairs()
    }

    /// Returns the VFs, except `other_than`, that receive by an address now or will after a reset.
    fn owners(&self, mac: MacAddress, other_than: u8) -> impl Iterator<Item = u8> {
        self.vfs().filter(move |vf| *vf != other_than).filter(move |vf| self.state(*vf).uses(mac))
    }

    /// Returns the number of addresses that a look-up for the owners of one compares it with.
    pub(super) fn comparisons_of_look_up(&self) -> usize {
        // A VF's own address, the one of its policy, and a reserved one come with those that it receives by.
        self.vfs.iter().map(|state| 3 + state.addresses.len()).sum()
    }

    /// Checks that a VF may receive by an address that other VFs may have. A trusted VF may use any address, and all
    /// VFs may use a virtual router's.
    pub(super) fn may_use(&self, vf: u8, mac: MacAddress) -> Result<(), VirtchnlRefusal> {
        let VfPolicy { trust, share_mac, .. } = self.state(vf).decided.policy;
        let shares = |owner| share_mac && self.state(owner).decided.policy.share_mac;
        let free = || mac.is_virtual_router() || (self.owners(mac, vf).all(shares) && !self.is_reserved(mac));
        if trust || free() { Ok(()) } else { Err(VirtchnlRefusal::AddressInUse) }
    }

    /// Returns true if an address is that of a VF which the card of another family serves.
    pub(super) fn is_reserved(&self, mac: MacAddress) -> bool {
        self.vfs().any(|other| self.state(other).reserved == Some(mac))
    }
}
