//! Runs the PF driver of an AVF card, and charges VFs for the changes that their requests cause.

use super::AvfCard;
use super::hal::AvfPfHal;
use crate::port::engine::bus::GuestBus;
use driver::avf::pf::AvfPf;
use i82576::Time;
use pcie::VfIndex;
use policy::PolicyError;
use units::WorkCost;

impl AvfCard {
    /// Calls `act` with the PF driver and the driver's access to the card.
    pub(super) fn with_pf<R>(
        &mut self,
        guests: &mut GuestBus,
        now: Time,
        act: impl FnOnce(&mut AvfPf, &mut AvfPfHal<'_>) -> R,
    ) -> R {
        let Self { card, pf, pf_memory, .. } = self;
        act(pf, &mut AvfPfHal { card: &mut card.nic, pf_memory, guests, now, charges: false })
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

    /// Returns true if the switch's tables have to be computed again, at the cost of the VFs whose requests have changed
    /// them.
    pub(in crate::port::engine) fn take_changed(&mut self) -> bool {
        for vf in std::mem::take(&mut self.pf_memory.changed_by).iter() {
            self.card.nic.owe(vf, WorkCost::TABLES);
        }
        std::mem::take(&mut self.pf_memory.changed)
    }
}
