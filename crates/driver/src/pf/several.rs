//! Changes of several VFs at once: how many there are, and policies that only make sense together, such as two VFs
//! that swap addresses. Left out: what one policy does (`policy`).

use super::{LIMITS, Pf};
use crate::hal::Hal;
use i82576::VfIndex;
use i82576::ids::MAX_VFS;
use policy::{PolicyError, VfPolicy};

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
    /// Checks that policies of different VFs, each of which makes sense by itself, could all be set now by [`Pf::set_policies`].
    ///
    /// # Errors
    /// The first VF that could not have its policy, and why.
    pub fn check_policies(&self, wanted: &[(VfIndex, VfPolicy)]) -> Result<(), (VfIndex, PolicyError)> {
        let leaves =
            |vf| wanted.iter().any(|(other, new)| *other == vf && self.state(vf).policy.mac != new.mac);
        wanted
            .iter()
            .try_for_each(|(vf, policy)| self.admit(*vf, policy, leaves).map_err(|error| (*vf, error)))
    }

    /// Sets policies of different VFs, all of them or none.
    ///
    /// # Errors
    /// The first VF that cannot have its policy, and why: nothing is changed.
    pub fn set_policies<H: Hal>(
        &mut self,
        hal: &mut H,
        wanted: &[(VfIndex, VfPolicy)],
    ) -> Result<(), (VfIndex, PolicyError)> {
        wanted.iter().try_for_each(|(vf, policy)| policy.check(&LIMITS).map_err(|error| (*vf, error)))?;
        self.check_policies(wanted)?;
        let before: [VfPolicy; MAX_VFS] = core::array::from_fn(|n| self.vfs[n].policy);
        let outcome = self.set_all(hal, wanted);
        if outcome.is_err() {
            // What held before holds again: it is not refused.
            for (vf, _) in wanted {
                self.give_up_mac(hal, *vf, None);
            }
            for (vf, _) in wanted {
                let _ = self.put_to_work(hal, *vf, before[vf.index()]);
            }
        }
        outcome
    }

    fn set_all<H: Hal>(
        &mut self,
        hal: &mut H,
        wanted: &[(VfIndex, VfPolicy)],
    ) -> Result<(), (VfIndex, PolicyError)> {
        // Addresses are free before others get them.
        for (vf, policy) in wanted {
            self.give_up_mac(hal, *vf, policy.mac);
        }
        wanted
            .iter()
            .try_for_each(|(vf, policy)| self.put_to_work(hal, *vf, *policy).map_err(|error| (*vf, error)))
    }

    /// Takes a VF's address away if it is to have another.
    fn give_up_mac<H: Hal>(&mut self, hal: &mut H, vf: VfIndex, next: Option<i82576::MacAddress>) {
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
