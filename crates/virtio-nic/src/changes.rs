//! Changes of rules and addresses after which the switch's tables must be computed again, and the VFs whose guests have caused
//! them.

use pcie::{VfIndex, VfSet};

/// Changes since the switch's tables were computed.
#[derive(Debug)]
pub(crate) struct TableChanges {
    /// VFs whose guests have changed their address or have reset their device. `None` without a change.
    by: Option<VfSet>,
}

/// The tables of a new card have not been computed.
impl Default for TableChanges {
    fn default() -> Self {
        Self { by: Some(VfSet::NONE) }
    }
}

impl TableChanges {
    /// Records a change that no guest has caused.
    pub(crate) fn note(&mut self) {
        self.by.get_or_insert(VfSet::NONE);
    }

    /// Records a change that the guest of a VF has caused.
    pub(crate) fn note_by(&mut self, vf: u8) {
        let by: VfSet = [VfIndex::of_field(vf.into())].into_iter().collect();
        self.by = Some(self.by.unwrap_or(VfSet::NONE).or(by));
    }

    /// Returns true if there are changes.
    pub(crate) fn are_pending(&self) -> bool {
        self.by.is_some()
    }

    /// Forgets the changes. Returns the VFs whose guests have caused some, or `None` without a change.
    pub(crate) fn take(&mut self) -> Option<VfSet> {
        self.by.take()
    }
}
