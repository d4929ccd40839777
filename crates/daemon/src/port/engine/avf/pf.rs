//! Runs the PF driver of an AVF card, and charges VFs for the changes that their requests cause.

use super::AvfCard;
use super::hal::AvfPfHal;
use crate::port::engine::bus::GuestBus;
use crate::port::engine::decided::VfPolicyState;
use driver::avf::pf::AvfPf;
use i82576::Time;
use pcie::{VfIndex, VfSet};
use plane::guard::GuardedPlane;
use policy::{PolicyError, RefusedVf, VfPolicy};
use units::WorkCost;

impl AvfCard {
    /// Calls `act` with the PF driver and the driver's access to the card.
    pub(super) fn with_pf<R>(
        &mut self,
        guests: &mut GuestBus,
        now: Time,
        act: impl FnOnce(&mut AvfPf, &mut AvfPfHal<'_>) -> R,
    ) -> R {
        let Self { card, pf, pf_memory, plane, .. } = self;
        let guards = &mut **plane;
        act(pf, &mut AvfPfHal { card: &mut card.nic, pf_memory, guests, guards, now, charges: false })
    }

    /// Has the PF driver apply the policy of a VF to the card.
    pub(super) fn enforce(
        &mut self,
        vf: VfIndex,
        guests: &mut GuestBus,
        now: Time,
    ) -> Result<(), PolicyError> {
        let policy = self.decided[vf.index()].in_force();
        self.with_pf(guests, now, |pf, hal| pf.set_policy(hal, vf.get(), policy))
    }

    /// Has the PF driver apply the policies of VFs, by index, to the card: all of them or none.
    pub(super) fn enforce_all(
        &mut self,
        vfs: &[VfPolicy],
        guests: &mut GuestBus,
        now: Time,
    ) -> Result<(), RefusedVf> {
        let decided = self.decided.iter().zip(vfs);
        let decided: Vec<_> =
            decided.map(|(old, policy)| VfPolicyState { policy: *policy, ..*old }).collect();
        let in_force: Vec<_> = decided.iter().map(VfPolicyState::in_force).collect();
        self.with_pf(guests, now, |pf, hal| pf.set_policies(hal, &in_force))?;
        self.decided[..decided.len()].copy_from_slice(&decided);
        Ok(())
    }

    /// Returns true if the switch's tables have to be computed again. The VFs whose requests have changed them share the cost.
    /// The tables have `more` addresses of VFs that belong to cards of other families, of which `others` have changed theirs.
    pub(in crate::port::engine) fn take_changed(&mut self, more: usize, others: VfSet) -> bool {
        let changed_by = std::mem::take(&mut self.pf_memory.changed_by).or(others);
        if !changed_by.is_empty() {
            let (addresses, vlans) = self.card.nic.table_size();
            // The plane decides on the addresses that VFs hold while they reset, too.
            let WorkCost(cost) = WorkCost::of_tables(addresses + more + self.plane.absent_addresses(), vlans);
            let share = WorkCost(cost.div_ceil(changed_by.count()));
            changed_by.iter().for_each(|vf| self.card.nic.owe(vf, share));
        }
        std::mem::take(&mut self.pf_memory.changed)
    }
}
