//! Work that a card does for VFs outside the messages of their clients, until the port charges it to the VFs' accounts.

use pcie::{VfIndex, VfSet};
use units::WorkCost;

/// Cost of work for each VF that the port has not charged yet.
#[derive(Debug, Default)]
pub(super) struct OwedWork {
    costs: Vec<WorkCost>,
}

impl OwedWork {
    /// Adds the cost of work for a VF, which the next call of [`Self::settle`] charges.
    pub(super) fn owe(&mut self, vf: VfIndex, cost: WorkCost) {
        if self.costs.len() <= vf.index() {
            self.costs.resize(vf.index() + 1, WorkCost::default());
        }
        self.costs[vf.index()] = self.costs[vf.index()] + cost;
    }

    /// Adds the cost of the switch's tables, which the port computes again after changes for these VFs. The VFs share the cost.
    /// `addresses` and `vlans` are the sums over all VFs of the port.
    pub(super) fn owe_tables(&mut self, vfs: VfSet, addresses: usize, vlans: usize) {
        if !vfs.is_empty() {
            let WorkCost(cost) = WorkCost::of_tables(addresses, vlans);
            let share = WorkCost(cost.div_ceil(vfs.count()));
            vfs.iter().for_each(|vf| self.owe(vf, share));
        }
    }

    /// Calls `charge` for each VF with the cost of the work for it since the last call.
    pub(super) fn settle(&mut self, charge: &mut dyn FnMut(VfIndex, WorkCost)) {
        for (vf, cost) in self.costs.iter_mut().enumerate().filter(|(_, cost)| **cost != WorkCost::default())
        {
            charge(VfIndex::of_field(vf as u32), std::mem::take(cost));
        }
    }
}
