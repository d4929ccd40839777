//! Work of the PF driver and the card for VFs, for which the port charges them.

use super::I82576Card;
use driver::pf::PfWork;
use i82576::VfIndex;
use i82576::ids::{RECEIVE_ADDRESSES, VLAN_FILTERS};
use pcie::VfSet;
use units::WorkCost;

impl I82576Card {
    /// Adds the work of a run of the PF driver to what VFs owe. VFs whose requests have changed the switch's tables share the
    /// cost of computing them again.
    pub(super) fn note_work(&mut self, work: &PfWork) {
        for (vf, cost) in VfIndex::all().zip(work.costs).filter(|(_, cost)| *cost != WorkCost::default()) {
            self.owed.owe(vf.into(), cost);
        }
        if self.nic.has_stale_tables() {
            let addresses = RECEIVE_ADDRESSES + self.nic.guards().absent_addresses();
            self.owed.owe_tables(VfSet::new(work.changed.into()), addresses, VLAN_FILTERS);
        }
    }
}
