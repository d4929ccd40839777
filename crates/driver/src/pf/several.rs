//! Changes of several VFs at once: how many there are, and policies that only make sense together, such as two VFs
//! that swap addresses. Left out: what one policy does (`policy`).

use super::Pf;
use super::limits::LIMITS;
use crate::hal::Hal;
use i82576::ids::MAX_VFS;
use i82576::{MacAddress, VfIndex};
use policy::{AddressOwner, PolicyError, RefusedVf, VfPolicy};

/// Why the number of VFs cannot be changed now. Nothing is changed then.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ResizeError {
    /// More VFs than a port has.
    #[error("a port has 8 virtual functions, not {0}")]
    TooManyVfs(u8),
    /// Addresses that other guests have added hold the filter that a new VF needs for its own.
    #[error("all address filters are in use; take addresses away in the guests, or offer fewer VFs")]
    NoFilter,
}

impl Pf {
    /// Checks that VFs, by index, could all have these policies now, each of which makes sense by itself.
    ///
    /// # Errors
    /// The first VF that could not have its policy, and why.
    pub fn check_policies(&self, wanted: &[VfPolicy]) -> Result<(), RefusedVf> {
        let mac = |vf: VfIndex| self.state(vf).policy.mac;
        let leaves = |vf: VfIndex| wanted.get(vf.index()).is_some_and(|new| mac(vf) != new.mac);
        each(wanted, |vf, policy| self.admit(vf, policy, leaves))?;
        each(wanted, |vf, policy| match policy.mac.filter(|new| mac(vf) != Some(*new)) {
            Some(new) => self.check_twins(vf, new, wanted),
            None => Ok(()),
        })?;
        self.check_vlan_filters(wanted)
    }

    fn check_twins(&self, vf: VfIndex, mac: MacAddress, wanted: &[VfPolicy]) -> Result<(), PolicyError> {
        let mut others = VfIndex::all().zip(wanted).filter(|(other, _)| *other != vf);
        match others.find(|(_, policy)| policy.mac == Some(mac)) {
            Some((twin, _)) => Err(PolicyError::MacInUse(mac, AddressOwner::Vf(twin.into()))),
            None => Ok(()),
        }
    }

    /// Checks that there are VLAN filters for all port VLANs, once the VFs that are to have others have given up theirs.
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
    /// The first VF that cannot have its policy, and why: nothing is changed.
    pub fn set_policies<H: Hal>(&mut self, hal: &mut H, wanted: &[VfPolicy]) -> Result<(), RefusedVf> {
        each(wanted, |_, policy| policy.check(&LIMITS))?;
        self.check_policies(wanted)?;
        // Addresses and VLAN filters are free before others get them.
        for (vf, policy) in VfIndex::all().zip(wanted) {
            self.give_up_mac(hal, vf, policy.mac);
            self.give_up_vlans(hal, vf, policy.vlan);
        }
        // A VF without a port VLAN takes filters for VLANs that it has asked for, so it comes last.
        for fixed in [true, false] {
            let policies = VfIndex::all().zip(wanted).filter(|(_, policy)| policy.vlan.is_some() == fixed);
            policies.for_each(|(vf, policy)| self.apply_policy(hal, vf, *policy));
        }
        Ok(())
    }

    /// Takes a VF's address away if it is to have another.
    fn give_up_mac<H: Hal>(&mut self, hal: &mut H, vf: VfIndex, next: Option<MacAddress>) {
        if self.state(vf).policy.mac == next {
            return;
        }
        self.state_mut(vf).policy.mac = None;
        if vf.get() < self.enabled {
            self.use_mac(hal, vf, None);
        }
    }

    /// Changes how many VFs there are. Unlike [`Pf::enable_vfs`], it leaves VFs alone that were there before and still
    /// are. A new VF has the policy that was set for it before; one that goes loses its policy.
    ///
    /// # Errors
    /// [`ResizeError`].
    pub fn resize<H: Hal>(&mut self, hal: &mut H, count: u8) -> Result<(), ResizeError> {
        if usize::from(count) > MAX_VFS {
            return Err(ResizeError::TooManyVfs(count));
        }
        let before = self.enabled;
        if count > before && !self.filters.make_room(hal, before, count) {
            return Err(ResizeError::NoFilter);
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
        self.follow_vlans(hal);
        Ok(())
    }
}

/// Does something with each policy until one is refused. Returns its VF, and the reason.
fn each(
    policies: &[VfPolicy],
    mut act: impl FnMut(VfIndex, &VfPolicy) -> Result<(), PolicyError>,
) -> Result<(), RefusedVf> {
    VfIndex::all()
        .zip(policies)
        .try_for_each(|(vf, policy)| act(vf, policy).map_err(|error| (vf.into(), error)))
}
