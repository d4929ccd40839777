//! Notation that names one row: an experiment, and values of the parameters that select one of its rows, such as
//! `fig08:policy=aic`.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

use crate::experiment::ExperimentPoint;
use crate::runner::plan::SettingAssignment;

/// Experiment and parameters that select a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowSelector {
    /// Name of the row's experiment.
    pub experiment: String,
    /// Values of axes and settings.
    pub set: Vec<SettingAssignment>,
}

/// Error: a text does not name a row.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[error("expected a row of the form EXPERIMENT or EXPERIMENT:KEY=VALUE,KEY=VALUE, such as fig08:policy=aic")]
pub struct InvalidRowSelector;

impl RowSelector {
    /// Returns the selector of an experiment's point.
    pub(crate) fn of(point: &ExperimentPoint) -> Self {
        let params = point.params();
        Self {
            experiment: point.experiment.to_owned(),
            set: params.iter().map(SettingAssignment::from).collect(),
        }
    }
}

impl FromStr for RowSelector {
    type Err = InvalidRowSelector;

    fn from_str(text: &str) -> Result<Self, InvalidRowSelector> {
        let (experiment, set) = text.split_once(':').map_or((text, None), |(name, set)| (name, Some(set)));
        let parse = |assignment: &str| assignment.parse().map_err(|_| InvalidRowSelector);
        let set = set.map_or(Ok(Vec::new()), |set| set.split(',').map(parse).collect())?;
        if experiment.is_empty() {
            Err(InvalidRowSelector)
        } else {
            Ok(Self { experiment: experiment.to_owned(), set })
        }
    }
}

impl fmt::Display for RowSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.experiment)?;
        for (at, SettingAssignment { key, value }) in self.set.iter().enumerate() {
            let separator = if at == 0 { ':' } else { ',' };
            write!(f, "{separator}{key}={value}")?;
        }
        Ok(())
    }
}
