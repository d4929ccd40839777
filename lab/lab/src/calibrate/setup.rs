//! Inputs of a calibration: the table to start from, the knobs to fit, the targets to fit them to, and the settings of
//! all runs.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::num::{NonZeroU8, NonZeroUsize};

use hypervisor::cost::{CostConstant, CostEvidenceKind, CostRow, CostTable, SetCostError};
use thiserror::Error;

use super::knob::{ConstantGroup, KNOBS};
use super::stored::stored;
use super::target::{CalibrationTarget, TARGETS};
use crate::runner::plan::SettingAssignment;
use crate::similar::similar;

/// Prefix of the settings that change cost constants.
const CONSTANT: &str = "cost.";

/// Inputs of a calibration.
#[derive(Clone, Debug)]
pub struct CalibrationSetup {
    /// Values that the search starts from, with the range of each constant.
    pub table: CostTable,
    /// Values of a machine file, for all runs.
    pub machine: Vec<SettingAssignment>,
    /// Settings of all runs.
    pub set: Vec<SettingAssignment>,
    /// Groups of constants to fit.
    pub knobs: Vec<ConstantGroup>,
    /// Published values to fit to, and those that are only reported.
    pub targets: Vec<&'static CalibrationTarget>,
    /// Constants of the stored calibration, if it has these inputs: a fit replaces them only if it meets the targets better.
    pub stored: Option<BTreeMap<String, u64>>,
    /// Number of seeds of each run, from the default one on; a target's value is the mean.
    pub seeds: NonZeroU8,
    /// Number of points to run at a time; the result does not depend on it.
    pub jobs: NonZeroUsize,
}

/// Error of a calibration's inputs.
#[derive(Debug, Error)]
pub enum CalibrationSetupError {
    /// No knob and no constant has this name.
    #[error("unknown knob or constant `{name}`{hint}")]
    UnknownKnob {
        /// Name as written.
        name: String,
        /// Similar names, or all knobs.
        hint: String,
    },
    /// The value of a constant is known, so it is not fitted.
    #[error("cannot fit {name}: its value is {kind}; --set cost.{name}=VALUE changes it")]
    KnownConstant {
        /// Name of the constant.
        name: &'static str,
        /// Kind of evidence for the value.
        kind: &'static str,
    },
    /// The range of a constant has no width.
    #[error("cannot fit {0}: its range has no width")]
    NoRange(&'static str),
    /// Fewer targets than knobs are fitted.
    #[error("{knobs} knobs cannot be fitted to {targets} targets; fit fewer knobs, or give more targets")]
    TooFewTargets {
        /// Number of knobs.
        knobs: usize,
        /// Number of targets that constants are fitted to.
        targets: usize,
    },
    /// No cost table has the name that a machine file gives.
    #[error("unknown cost table {0}")]
    UnknownTable(String),
    /// A constant of a machine file has no such value.
    #[error(transparent)]
    Cost(#[from] SetCostError),
    /// A constant of a machine file is no number.
    #[error("{0} is no number")]
    NoNumber(String),
}

impl CalibrationSetup {
    /// Returns the calibration of the nehalem cost table to the values of Dong et al., HPCA 2010.
    #[must_use]
    pub fn of_paper(jobs: NonZeroUsize) -> Self {
        Self {
            table: CostTable::nehalem(),
            machine: Vec::new(),
            set: Vec::new(),
            knobs: KNOBS.to_vec(),
            targets: TARGETS.iter().collect(),
            stored: stored().ok().map(|stored| stored.constants.clone()),
            seeds: NonZeroU8::MIN,
            jobs,
        }
    }

    /// Starts from the table of a machine file, and runs all points on that machine.
    ///
    /// # Errors
    /// [`CalibrationSetupError`] if the file's table or a constant is unknown or out of range.
    pub fn use_machine(&mut self, values: Vec<SettingAssignment>) -> Result<(), CalibrationSetupError> {
        if let Some(named) = values.iter().find(|value| value.key == "table") {
            let unknown = || CalibrationSetupError::UnknownTable(named.value.clone());
            self.table = CostTable::named(&named.value).ok_or_else(unknown)?;
        }
        for value in &values {
            if let Some(name) = value.key.strip_prefix(CONSTANT) {
                let no_number = |_| CalibrationSetupError::NoNumber(value.key.clone());
                self.table.set(name, value.value.parse().map_err(no_number)?)?;
            }
        }
        self.machine = values;
        self.stored = None;
        Ok(())
    }

    /// Fits to other targets.
    pub fn use_targets(&mut self, targets: Vec<&'static CalibrationTarget>) {
        self.targets = targets;
        self.stored = None;
    }

    /// Fits only these knobs: groups or single constants, by name.
    ///
    /// # Errors
    /// [`CalibrationSetupError`] if a name is unknown, or the value of a constant is known.
    pub fn fit_only(&mut self, names: &[String]) -> Result<(), CalibrationSetupError> {
        let knobs = names.iter().map(|name| {
            if let Some(known) = KNOBS.iter().find(|knob| knob.name == name) {
                return Ok(known.clone());
            }
            let row = self.constant(name)?;
            let members = Cow::Owned(vec![row.cost]);
            Ok(ConstantGroup { name: row.name, members, alone: None, at_wall: None })
        });
        self.knobs = knobs.collect::<Result<_, CalibrationSetupError>>()?;
        self.stored = None;
        self.check_rows()
    }

    /// Holds a knob, or a constant of a knob, at the value that runs have.
    ///
    /// # Errors
    /// [`CalibrationSetupError::UnknownKnob`] if the name is unknown.
    pub fn hold(&mut self, name: &str) -> Result<(), CalibrationSetupError> {
        self.stored = None;
        if KNOBS.iter().any(|knob| knob.name == name) {
            self.knobs.retain(|knob| knob.name != name);
            return Ok(());
        }
        let cost = self.constant(name)?.cost;
        self.hold_constant(cost);
        Ok(())
    }

    /// Adds settings to all runs. A constant that is set is not fitted.
    pub fn set(&mut self, set: &[SettingAssignment]) {
        for name in set.iter().filter_map(|assignment| assignment.key.strip_prefix(CONSTANT)) {
            // An unknown name is refused when a point is planned.
            let known = self.table.iter().find(|row| row.name == name).map(|row| row.cost);
            known.into_iter().for_each(|cost| self.hold_constant(cost));
        }
        self.set.extend_from_slice(set);
        if !set.is_empty() {
            self.stored = None;
        }
    }

    /// Returns the number of targets that constants are fitted to.
    #[must_use]
    pub fn fitted_targets(&self) -> usize {
        self.targets.iter().filter(|target| target.is_fitted()).count()
    }

    /// Checks that the targets determine the knobs.
    ///
    /// # Errors
    /// [`CalibrationSetupError::TooFewTargets`] if there are more knobs than targets.
    pub fn check(&self) -> Result<(), CalibrationSetupError> {
        let (knobs, targets) = (self.knobs.len(), self.fitted_targets());
        if targets > 0 && knobs <= targets {
            Ok(())
        } else {
            Err(CalibrationSetupError::TooFewTargets { knobs, targets })
        }
    }

    fn hold_constant(&mut self, cost: CostConstant) {
        for knob in &mut self.knobs {
            if knob.members.contains(&cost) {
                knob.members.to_mut().retain(|member| *member != cost);
            }
        }
        self.knobs.retain(|knob| !knob.members.is_empty());
    }

    fn constant(&self, name: &str) -> Result<&CostRow, CalibrationSetupError> {
        let unknown = || {
            let knobs: Vec<_> = KNOBS.iter().map(|knob| knob.name).collect();
            let known: Vec<_> = self.table.iter().map(|row| row.name).chain(knobs.iter().copied()).collect();
            let hint = match similar(name, &known).as_slice() {
                [] => format!("; knobs are {}", knobs.join(", ")),
                names => format!("; did you mean {}?", names.join(", ")),
            };
            CalibrationSetupError::UnknownKnob { name: name.to_owned(), hint }
        };
        self.table.iter().find(|row| row.name == name).ok_or_else(unknown)
    }

    /// Checks that the values of all constants to fit are unknown, and have ranges.
    fn check_rows(&self) -> Result<(), CalibrationSetupError> {
        for row in self.knobs.iter().flat_map(|knob| knob.members.iter()).map(|cost| self.table.row(*cost)) {
            if matches!(row.kind, CostEvidenceKind::Published | CostEvidenceKind::Stated) {
                return Err(CalibrationSetupError::KnownConstant { name: row.name, kind: row.kind.name() });
            }
            if row.range.0 == row.range.1 {
                return Err(CalibrationSetupError::NoRange(row.name));
            }
        }
        Ok(())
    }
}
