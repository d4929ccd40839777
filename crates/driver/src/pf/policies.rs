//! Changes the number of VFs, and sets policies of several VFs that are valid only together, such as those of two VFs
//! that swap addresses.

use super::Pf;
use super::limits::LIMITS;
use crate::hal::Hal;
use i82576::ids::MAX_VFS;
use i82576::{MacAddress, VfIndex};
use policy::{AddressOwner, PolicyError, RefusedVf, VfPolicy};

/// Reason why the number of VFs cannot change now. Nothing is changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum VfCountError {
    /// More VFs were requested than a port has.
    #[error("number of virtual functions {0} is out of range (0-8)")]
    TooManyVfs(u8),
    /// The new VF needs an address filter that an address added by another guest occupies, and no other filter is free.
    #[error("all MAC address filters are in use; remove addresses in the guests, or offer fewer VFs")]
    NoFilter,
}

impl Pf {
    /// Checks that VFs, by index, can have these policies now. Each policy must be valid by itself.
    ///
    /// # Errors
    /// First VF whose policy is refused, and the reason.
    pub fn check_policies(&self, wanted: &[VfPolicy]) -> Result<(), RefusedVf> {
        let mac = |vf: VfIndex| self.state(vf).policy.mac;
        let leaves =
            |vf: VfIndex, mac| wanted.get(vf.index()).is_some_and(|next| self.gives_up(vf, mac, next));
        each(wanted, |vf, policy| self.admit(vf, policy, leaves))?;
        each(wanted, |vf, policy| match policy.mac.filter(|new| mac(vf) != Some(*new)) {
            Some(new) => self.check_twins(vf, new, wanted),
            None => Ok(()),
        })?;
        self.check_guarantees(VfIndex::all().zip(wanted.iter().copied()))?;
        self.check_vlan_filters(wanted)
    }

    fn check_twins(&self, vf: VfIndex, mac: MacAddress, wanted: &[VfPolicy]) -> Result<(), PolicyError> {
        let mut others = VfIndex::all().zip(wanted).filter(|(other, _)| *other != vf);
        match others.find(|(_, policy)| policy.mac == Some(mac)) {
            Some((twin, _)) => Err(PolicyError::MacInUse(mac, AddressOwner::Vf(twin.into()))),
            None => Ok(()),
        }
    }

    /// Checks that there are VLAN filters for all port VLANs, once the VFs with a changed one have freed theirs.
    fn check_vlan_filters(&self, wanted: &[VfPolicy]) -> Result<(), RefusedVf> {
        let mut vlans = self.vlans.clone();
        for (vf, policy) in VfIndex::all().zip(wanted) {
            if policy.vlan != self.state(vf).policy.vlan {
                vlans.vacate(vf);
            }
        }
        each(wanted, |vf, policy| {
            let vlan = policy.vlan.filter(|_| vf.get() < self.enabled);
            let fits = vlan.is_none_or(|vlan| vlans.claim(vf, vlan.id).is_some());
            if fits { Ok(()) } else { Err(PolicyError::NoVlanFilter) }
        })
    }

    /// Sets policies of VFs, by index, all of them or none.
    ///
    /// # Errors
    /// First VF whose policy is refused, and the reason: nothing is changed.
    pub fn set_policies<H: Hal>(&mut self, hal: &mut H, wanted: &[VfPolicy]) -> Result<(), RefusedVf> {
        each(wanted, |_, policy| policy.check(&LIMITS))?;
        self.check_policies(wanted)?;
        let before = self.policies();
        // Addresses and VLAN filters are freed before other VFs get them.
        for (vf, policy) in VfIndex::all().zip(wanted) {
            self.give_up_addresses(hal, vf, policy);
            self.give_up_vlans(hal, vf, policy.vlan);
        }
        // A VF without a port VLAN takes filters for the VLANs that it requested, so it comes last.
        for fixed in [true, false] {
            let policies = VfIndex::all().zip(wanted).filter(|(_, policy)| policy.vlan.is_some() == fixed);
            policies.for_each(|(vf, policy)| self.apply_policy(hal, vf, *policy));
        }
        self.revoke_addresses(hal, &before);
        self.retry_withheld(hal);
        self.follow_vlans(hal);
        Ok(())
    }

    /// Changes the number of the port's VFs. Unlike [`Pf::enable_vfs`], it leaves VFs alone that exist before and
    /// after. A new VF has the policy that was set for it before; a removed one loses its policy. The guarantees of the VFs
    /// are checked when their policies are set: a change of policies may come with the change of the number.
    ///
    /// # Errors
    /// [`VfCountError`].
    pub fn resize<H: Hal>(&mut self, hal: &mut H, count: u8) -> Result<(), VfCountError> {
        if usize::from(count) > MAX_VFS {
            return Err(VfCountError::TooManyVfs(count));
        }
        let before = self.enabled;
        if count > before && !self.filters.make_room(hal, before, count) {
            return Err(VfCountError::NoFilter);
        }
        for vf in VfIndex::all().filter(|vf| (count..before).contains(&vf.get())) {
            self.release(hal, vf);
            self.forget_vf(hal, vf);
            self.state_mut(vf).policy = VfPolicy::default();
        }
        self.enabled = count;
        for vf in VfIndex::all().filter(|vf| (before..count).contains(&vf.get())) {
            self.restore_defaults(hal, vf);
        }
        self.retry_withheld(hal);
        self.follow_vlans(hal);
        Ok(())
    }
}

/// Applies `act` to each policy until one is refused. Returns the VF of that policy, and the reason for the refusal.
fn each(
    policies: &[VfPolicy],
    mut act: impl FnMut(VfIndex, &VfPolicy) -> Result<(), PolicyError>,
) -> Result<(), RefusedVf> {
    VfIndex::all()
        .zip(policies)
        .try_for_each(|(vf, policy)| act(vf, policy).map_err(|error| (vf.into(), error)))
}
