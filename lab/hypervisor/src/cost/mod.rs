//! Cost tables: one table with a column for each machine. Each constant has a unit, a plausible range, a kind of
//! evidence and a source. The lab's calibration sets other values by name.
//!
//! | module | contents |
//! |---|---|
//! | [`machine`] | the columns: machines, and those whose values they share |
//! | `cell` | value of a constant on one machine |
//! | `table` | the rows: values by constant and machine |
//! | [`row`] | names and units of the constants, kinds of evidence |
//! | [`observed`] | observations that the model may not use as costs |
//!
//! Reading a constant is an array access, `table[CostConstant::EoiFast]`; names are for files and command lines. No
//! table is another one scaled by its clock. No exit costs less than the processor's own transition. Three
//! constants are never charged; [`CostConstant::uncharged`] gives the reasons.

use core::ops::Index;

use crate::exit::{VirtualizationFeature, VirtualizationFeatures, VmExitReason};
use looked_up::UsedCostConstants;

mod cell;
mod looked_up;
pub mod machine;
pub mod observed;
pub mod row;
mod table;
#[cfg(test)]
mod tests;

pub use machine::MachineModel;
pub use observed::{OBSERVATIONS, PublishedObservation};
pub use row::{CostConstant, CostEvidenceKind, CostRow, CostUnit, SetCostError};

/// Rows of all machines, in the order of [`MachineModel::ALL`].
static ROWS: [[CostRow; CostConstant::COUNT]; MachineModel::ALL.len()] = {
    let mut all = [table::rows(MachineModel::ALL[0]); MachineModel::ALL.len()];
    let mut at = 1;
    while at < all.len() {
        all[at] = table::rows(MachineModel::ALL[at]);
        at += 1;
    }
    all
};

/// Costs of operations on one CPU model. A table and its copies share a record of the constants that were read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CostTable {
    name: &'static str,
    features: VirtualizationFeatures,
    rows: [CostRow; CostConstant::COUNT],
    looked_up: UsedCostConstants,
}

impl CostTable {
    /// Returns the cost table of a machine.
    pub fn of(machine: MachineModel) -> CostTable {
        CostTable {
            name: machine.name(),
            features: features(machine),
            rows: ROWS[machine as usize],
            looked_up: UsedCostConstants::default(),
        }
    }

    /// Returns the cost table of the Xeon 5500 (Nehalem-EP) under Xen 3.4 (Dong et al., HPCA 2010).
    pub fn nehalem() -> CostTable {
        CostTable::of(MachineModel::Nehalem)
    }

    /// Returns the cost table of a Sapphire Rapids server processor under KVM.
    pub fn modern() -> CostTable {
        CostTable::of(MachineModel::Modern)
    }

    /// Returns the cost tables of all machines.
    pub fn all() -> [CostTable; MachineModel::ALL.len()] {
        MachineModel::ALL.map(CostTable::of)
    }

    /// Returns the cost table called `name`.
    pub fn named(name: &str) -> Option<CostTable> {
        MachineModel::ALL.into_iter().find(|machine| machine.name() == name).map(CostTable::of)
    }

    /// Returns the name of the cost table.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Returns the virtualization features of the table's processor.
    pub fn features(&self) -> VirtualizationFeatures {
        self.features
    }

    /// Returns the reason of the VM exit that a guest's end-of-interrupt write causes on the table's processor, or
    /// `None` without an exit.
    pub fn on_eoi(&self) -> Option<VmExitReason> {
        self.looked_up.insert_feature(VirtualizationFeature::ApicVirtualization as usize);
        let reason = self.features.on_eoi();
        if reason.is_some() {
            self.looked_up.insert_feature(VirtualizationFeature::X2apic as usize);
        }
        reason
    }

    /// Returns the reason of the VM exit that a write to an APIC register other than EOI causes on the table's processor.
    pub fn on_apic_write(&self) -> VmExitReason {
        self.looked_up.insert_feature(VirtualizationFeature::X2apic as usize);
        self.features.on_apic_write()
    }

    /// Returns the reason of the VM exit that a device interrupt to a running guest causes on the table's processor, or
    /// `None` without an exit.
    pub fn on_device_interrupt(&self) -> Option<VmExitReason> {
        self.looked_up.insert_feature(VirtualizationFeature::PostedInterrupts as usize);
        self.features.on_device_interrupt()
    }

    /// Returns `true` if a run of this table or a copy of it depended on the feature called `name`. Returns `None` for
    /// an unknown name.
    pub fn was_feature_used(&self, name: &str) -> Option<bool> {
        let feature = VirtualizationFeature::ALL.into_iter().find(|feature| feature.name() == name)?;
        Some(self.looked_up.contains_feature(feature as usize))
    }

    /// Returns the cost table for a processor with other virtualization features.
    #[must_use]
    pub fn with_features(self, features: VirtualizationFeatures) -> CostTable {
        CostTable { features, ..self }
    }

    /// Returns the rows of all cost constants, in order.
    pub fn iter(&self) -> impl Iterator<Item = &CostRow> {
        self.rows.iter()
    }

    /// Returns the row of a cost constant, with its unit, range, evidence and source.
    pub fn row(&self, cost: CostConstant) -> &CostRow {
        &self.rows[cost as usize]
    }

    /// Sets the cost constant called `name` to a value that the user gives, and marks the constant as given.
    ///
    /// # Errors
    ///
    /// [`SetCostError`] if the name is unknown or the value is out of range.
    pub fn set(&mut self, name: &str, value: u64) -> Result<(), SetCostError> {
        self.replace(name, value, CostEvidenceKind::Given)
    }

    /// Sets the cost constant called `name` to a calibrated value.
    ///
    /// # Errors
    ///
    /// [`SetCostError`] if the name is unknown or the value is out of range.
    pub fn fit(&mut self, name: &str, value: u64) -> Result<(), SetCostError> {
        self.replace(name, value, CostEvidenceKind::Fitted)
    }

    /// Sets a cost constant to a value measured on this machine; `source` describes the measurement.
    ///
    /// # Errors
    ///
    /// [`SetCostError`] if the value is out of range.
    pub fn measure(
        &mut self,
        cost: CostConstant,
        value: u64,
        source: &'static str,
    ) -> Result<(), SetCostError> {
        self.replace(self.row(cost).name, value, CostEvidenceKind::Measured)?;
        self.rows[cost as usize].source = source;
        Ok(())
    }

    /// Returns `true` if the constant called `name` was read in this table or a copy of it. Returns `None` for an
    /// unknown name.
    pub fn was_looked_up(&self, name: &str) -> Option<bool> {
        let row = self.rows.iter().find(|row| row.name == name)?;
        Some(self.looked_up.contains(row.cost))
    }

    /// Returns the cost of copying `bytes`, in cycles, rounded up. `rate` is a constant in cycles per 1,000
    /// bytes.
    #[inline]
    pub fn bytes(&self, rate: CostConstant, bytes: u64) -> u64 {
        (bytes * self[rate]).div_ceil(1_000)
    }

    fn replace(&mut self, name: &str, value: u64, kind: CostEvidenceKind) -> Result<(), SetCostError> {
        let row = self.rows.iter().find(|row| row.name == name).ok_or(SetCostError::Unknown)?;
        let range = row.allowed();
        if !range.contains(&value) {
            return Err(SetCostError::OutOfRange {
                unit: row.unit,
                least: *range.start(),
                most: *range.end(),
            });
        }
        let (cost, least) = (row.cost, self.row(CostConstant::VmTransition).value);
        if CostConstant::EXITS.contains(&cost) && value < least {
            return Err(SetCostError::BelowTransition { least });
        }
        let row = &mut self.rows[cost as usize];
        row.value = value;
        row.kind = kind;
        Ok(())
    }
}

/// Returns the virtualization features of a machine's processor. Without any, APIC accesses, interrupts and MSI-X table
/// writes cause VM exits. With all, an assigned device's interrupt and the guest's end of interrupt need no VM exit.
const fn features(machine: MachineModel) -> VirtualizationFeatures {
    let all = matches!(machine, MachineModel::Modern | MachineModel::Skylake);
    VirtualizationFeatures { apic_virtualization: all, posted_interrupts: all, x2apic: all }
}

impl Index<CostConstant> for CostTable {
    type Output = u64;

    #[inline]
    fn index(&self, cost: CostConstant) -> &u64 {
        self.looked_up.insert(cost);
        &self.rows[cost as usize].value
    }
}
