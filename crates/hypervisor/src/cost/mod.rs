//! Cost tables, one per CPU model. Each constant has a unit, a plausible range, a kind of evidence and a source. The
//! lab's calibration sets other values by name.
//!
//! Reading a constant is an array access, `table[CostConstant::EoiFast]`; names are for files and command lines. No
//! table is another one scaled by its clock. No exit costs less than the processor's own transition. Two
//! constants are never charged; [`CostConstant::uncharged`] gives the reasons.

use core::ops::Index;

use crate::exit::VirtualizationFeatures;
use looked_up::UsedCostConstants;

mod looked_up;
mod modern;
mod nehalem;
pub mod observed;
mod others;
pub mod row;
#[cfg(test)]
mod tests;

pub use observed::{OBSERVATIONS, PublishedObservation};
use row::CostEntry;
pub use row::{CostConstant, CostEvidenceKind, CostRow, CostUnit, SetCostError};

/// Costs of operations on one CPU model. A table and its copies share a record of the constants that were read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CostTable {
    name: &'static str,
    features: VirtualizationFeatures,
    rows: [CostRow; CostConstant::COUNT],
    looked_up: UsedCostConstants,
}

impl CostTable {
    /// Returns the cost table of the Xeon 5500 (Nehalem-EP) under Xen 3.4 (Dong et al., HPCA 2010).
    pub fn nehalem() -> CostTable {
        CostTable::new("nehalem", nehalem::FEATURES, nehalem::ROWS)
    }

    /// Returns the cost table of a Sapphire Rapids server processor under KVM.
    pub fn modern() -> CostTable {
        CostTable::new("modern", modern::FEATURES, modern::ROWS)
    }

    fn new(
        name: &'static str,
        features: VirtualizationFeatures,
        entries: [CostEntry; CostConstant::COUNT],
    ) -> CostTable {
        CostTable { name, features, rows: entries.map(CostRow::of), looked_up: UsedCostConstants::default() }
    }

    /// Returns the cost table of the Opteron 250 under Xen 2.0.6 (Willmann et al., HPCA 2007).
    pub fn opteron() -> CostTable {
        CostTable::nehalem().derived("opteron", others::OPTERON)
    }

    /// Returns the cost table of a Skylake-class machine, derived from the modern one.
    pub fn skylake() -> CostTable {
        CostTable::modern().derived("skylake", others::SKYLAKE)
    }

    /// Returns the cost table of the Xeon E5405 under Xen (Zhang et al.).
    pub fn harpertown() -> CostTable {
        CostTable::nehalem().derived("harpertown", others::HARPERTOWN)
    }

    /// Returns the cost table of a 2.4 GHz Xeon under Xen 2.0.6 (Menon et al., ATC 2006).
    pub fn prestonia() -> CostTable {
        CostTable::nehalem().derived("prestonia", others::PRESTONIA)
    }

    /// Returns the cost table of a 2009 server with an IOMMU and a 10 Gb/s card under Xen 3 (Dong et al., SYSTOR 2009).
    pub fn server_2009() -> CostTable {
        CostTable::nehalem().derived("server-2009", others::SERVER_2009)
    }

    /// Returns the cost tables of all CPU models.
    pub fn all() -> [CostTable; 7] {
        [
            CostTable::nehalem(),
            CostTable::modern(),
            CostTable::opteron(),
            CostTable::skylake(),
            CostTable::harpertown(),
            CostTable::prestonia(),
            CostTable::server_2009(),
        ]
    }

    /// Returns the cost table called `name`.
    pub fn named(name: &str) -> Option<CostTable> {
        CostTable::all().into_iter().find(|table| table.name == name)
    }

    /// Derives another processor's cost table from this one. Constants that `values` omits keep this table's values; no
    /// experiment on that processor charges them.
    fn derived(mut self, name: &'static str, values: &[CostEntry]) -> CostTable {
        self.name = name;
        values.iter().for_each(|entry| self.rows[entry.0 as usize] = CostRow::of(*entry));
        self
    }

    /// Returns the name of the cost table.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Returns the virtualization features of the table's processor.
    pub fn features(&self) -> VirtualizationFeatures {
        self.features
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

impl Index<CostConstant> for CostTable {
    type Output = u64;

    #[inline]
    fn index(&self, cost: CostConstant) -> &u64 {
        self.looked_up.insert(cost);
        &self.rows[cost as usize].value
    }
}
