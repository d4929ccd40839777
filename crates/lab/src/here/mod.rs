//! The machine at hand: a cost table of what was measured on it, the rest as on a current machine, and what that
//! table predicts of SR-IOV and of paravirtualized I/O.
//!
//! | module | what it is |
//! |---|---|
//! | `rules` | which constant each measurement is |
//! | `predict` | the set-ups that are compared, and what they hang on |
//!
//! Left out: measuring, which takes a clock; whoever calls brings the readings.

mod predict;
mod rules;
#[cfg(test)]
mod tests;

use hypervisor::cost::{CostTable, Kind};

pub use predict::{Prediction, predict};

use crate::calibrate::sensitivity::Constants;
use crate::catalogue::Parameter;
use crate::runner::plan::Assignment;

/// A measured number, by name: nanoseconds, nanoseconds for 1,000 bytes, or a second.
pub type Reading<'a> = (&'a str, f64);

/// The table that measured constants are put into.
const BASE: &str = "modern";

/// The table of the machine at hand.
#[must_use]
pub fn table(readings: &[Reading]) -> CostTable {
    let mut table = CostTable::modern();
    rules::apply(&mut table, readings);
    table
}

/// The settings that give a run these constants: what was measured, in a table of the rest.
#[must_use]
pub fn settings(table: &CostTable) -> Vec<Assignment> {
    let measured = table.iter().filter(|row| row.kind == Kind::Measured);
    let constants = measured.map(|row| Assignment::from((format!("cost.{}", row.name), row.value)));
    std::iter::once(Assignment::from(("table", BASE))).chain(constants).collect()
}

/// The constants, for people.
#[must_use]
pub fn parameters(table: &CostTable) -> Vec<Parameter> {
    let of = |row: &hypervisor::cost::Row| if row.kind == Kind::Measured { "this machine" } else { BASE };
    table.iter().map(|row| Parameter::of(of(row), row)).collect()
}

fn constants(table: &CostTable) -> Constants {
    Constants { table: table.clone(), set: settings(table) }
}
