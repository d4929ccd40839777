//! Work that the card and the PF driver do for VFs outside the messages of their clients, until the port charges it to the
//! VFs' accounts. A VF without credit keeps its messages in its own mailbox.

use crate::card::Nic;
use crate::scratch::OwedWork;
use pcie::{VfIndex, VfSet};
use units::WorkCost;

impl Nic {
    /// Adds the cost of work for a VF, which the next call of [`Nic::settle_work`] charges.
    pub fn owe(&mut self, vf: VfIndex, cost: WorkCost) {
        let OwedWork { costs, vfs, .. } = &mut self.scratch.owed;
        if let Some(owed) = costs.get_mut(vf.index()) {
            *owed = *owed + cost;
            *vfs = vfs.or([vf].into_iter().collect());
        }
    }

    /// Calls `charge` for each VF with the cost of the work for it since the last call.
    pub fn settle_work(&mut self, charge: &mut dyn FnMut(VfIndex, WorkCost)) {
        let OwedWork { costs, vfs, .. } = &mut self.scratch.owed;
        for vf in core::mem::take(vfs).iter() {
            charge(vf, core::mem::take(&mut costs[vf.index()]));
        }
    }

    /// Leaves the messages of these VFs in their mailboxes, and takes those of all other VFs. [`Nic::poll`] returns that
    /// more is to do while a message is left.
    pub fn hold_mail(&mut self, vfs: VfSet) {
        self.scratch.owed.held = vfs;
    }
}
