//! What things cost: a table for each CPU model, each constant with its unit, the range it may lie in, its kind
//! and its source. Left out: fitting (the lab's), which gives constants other values by name.
//!
//! Looking a constant up is an array access, `table[Cost::EoiFast]`; names are for files and command lines. One
//! table is never another one scaled by the clock. No exit costs less than the processor's own transition. Two rows are
//! charged to nobody; [`Cost::uncharged`] says why.

use core::ops::Index;

use crate::exit::Features;
use looked_up::LookedUp;

mod looked_up;
mod modern;
mod nehalem;
pub mod observed;
mod others;
pub mod row;
#[cfg(test)]
mod tests;

pub use observed::{OBSERVATIONS, Observation};
pub use row::{Cost, Kind, Row, SetError, Unit};

/// What things cost on one CPU model. It remembers which of its constants were looked up; its copies share that memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CostTable {
    name: &'static str,
    features: Features,
    rows: [Row; Cost::COUNT],
    looked_up: LookedUp,
}

impl CostTable {
    /// The Xeon 5500 of the paper, under Xen 3.4.
    pub fn nehalem() -> CostTable {
        CostTable::new("nehalem", nehalem::FEATURES, nehalem::ROWS)
    }

    /// A current server processor (of the Sapphire Rapids kind), under KVM.
    pub fn modern() -> CostTable {
        CostTable::new("modern", modern::FEATURES, modern::ROWS)
    }

    fn new(name: &'static str, features: Features, rows: [Row; Cost::COUNT]) -> CostTable {
        CostTable { name, features, rows, looked_up: LookedUp::default() }
    }

    /// The Opteron 250 of CDNA's paper, under Xen 2.0.6.
    pub fn opteron() -> CostTable {
        CostTable::nehalem().moved("opteron", others::OPTERON)
    }

    /// A Skylake-class machine with a 10 Gb/s card, under a thin hypervisor.
    pub fn skylake() -> CostTable {
        CostTable::modern().moved("skylake", others::SKYLAKE)
    }

    /// The Xeon E5405 of multi-core netback's paper, under a Xen of its time.
    pub fn harpertown() -> CostTable {
        CostTable::nehalem().moved("harpertown", others::HARPERTOWN)
    }

    /// The Xeon at 2.4 GHz of the smart virtual NIC's paper, under Xen 2.0.6.
    pub fn prestonia() -> CostTable {
        CostTable::nehalem().moved("prestonia", others::PRESTONIA)
    }

    /// A server of 2009 with an IOMMU and a 10 Gb/s card, under Xen 3.
    pub fn server_2009() -> CostTable {
        CostTable::nehalem().moved("server-2009", others::SERVER_2009)
    }

    /// All tables.
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

    /// The table called `name`.
    pub fn named(name: &str) -> Option<CostTable> {
        CostTable::all().into_iter().find(|table| table.name == name)
    }

    /// Another processor's table: its own values, and for what its experiments charge nothing those that there are.
    fn moved(mut self, name: &'static str, values: &[others::Value]) -> CostTable {
        self.name = name;
        for (cost, value, range, kind, source) in values {
            let row = &mut self.rows[*cost as usize];
            (row.value, row.range, row.kind, row.source) = (*value, *range, *kind, source);
        }
        self
    }

    /// What it is called.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// What the processor spares its guests.
    pub fn features(&self) -> Features {
        self.features
    }

    /// The same costs on a processor with other features.
    #[must_use]
    pub fn with_features(self, features: Features) -> CostTable {
        CostTable { features, ..self }
    }

    /// All constants, in order.
    pub fn iter(&self) -> impl Iterator<Item = &Row> {
        self.rows.iter()
    }

    /// A constant with all that is known of it.
    pub fn row(&self, cost: Cost) -> &Row {
        &self.rows[cost as usize]
    }

    /// Gives the constant called `name` another value.
    ///
    /// # Errors
    ///
    /// If there is none of that name, or the value is out of all proportion.
    pub fn set(&mut self, name: &str, value: u64) -> Result<(), SetError> {
        self.replace(name, value, Kind::Given)
    }

    /// Gives the constant called `name` the value that a calibration found.
    ///
    /// # Errors
    ///
    /// As [`CostTable::set`].
    pub fn fit(&mut self, name: &str, value: u64) -> Result<(), SetError> {
        self.replace(name, value, Kind::Fitted)
    }

    /// Gives a constant the value that was measured on the machine at hand; `source` says how.
    ///
    /// # Errors
    ///
    /// As [`CostTable::set`].
    pub fn measure(&mut self, cost: Cost, value: u64, source: &'static str) -> Result<(), SetError> {
        self.replace(self.row(cost).name, value, Kind::Measured)?;
        self.rows[cost as usize].source = source;
        Ok(())
    }

    /// Whether the table or a copy of it was asked for the value of the constant called `name`; `None` if there is none.
    pub fn was_looked_up(&self, name: &str) -> Option<bool> {
        let row = self.rows.iter().find(|row| row.name == name)?;
        Some(self.looked_up.contains(row.cost))
    }

    /// What copying `bytes` costs, in cycles, rounded up; `rate` is one of the rows in cycles per 1,000 bytes.
    #[inline]
    pub fn bytes(&self, rate: Cost, bytes: u64) -> u64 {
        (bytes * self[rate]).div_ceil(1_000)
    }

    fn replace(&mut self, name: &str, value: u64, kind: Kind) -> Result<(), SetError> {
        let row = self.rows.iter().find(|row| row.name == name).ok_or(SetError::Unknown)?;
        let range = row.allowed();
        if !range.contains(&value) {
            return Err(SetError::OutOfRange { unit: row.unit, least: *range.start(), most: *range.end() });
        }
        let (cost, least) = (row.cost, self.row(Cost::VmTransition).value);
        if Cost::EXITS.contains(&cost) && value < least {
            return Err(SetError::BelowTransition { least });
        }
        let row = &mut self.rows[cost as usize];
        row.value = value;
        row.kind = kind;
        Ok(())
    }
}

impl Index<Cost> for CostTable {
    type Output = u64;

    #[inline]
    fn index(&self, cost: Cost) -> &u64 {
        self.looked_up.insert(cost);
        &self.rows[cost as usize].value
    }
}
