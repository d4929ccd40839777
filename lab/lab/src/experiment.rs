//! Declares an experiment as data: axes, metrics and figures. Only running one point is code. [`crate::runner`] runs
//! sweeps, [`figure`] draws.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use thiserror::Error;

use hypervisor::cost::CostTable;

use crate::machine::CycleBreakdown;
use crate::named::{Metrics, NoSuchValue, Params};
use crate::value::ParameterValue;

/// Experiment of the lab, declared as data.
#[derive(Clone, Copy, Debug)]
pub struct Experiment {
    /// Name of the experiment on the command line and in rows, such as `fig06`.
    pub name: &'static str,
    /// Heading of the experiment in reports.
    pub title: &'static str,
    /// Description of the experiment in one or two sentences: the set-up, and the effect to look for.
    pub shows: &'static str,
    /// Parameters that the experiment varies, the slowest first.
    pub axes: &'static [ExperimentAxis],
    /// Combinations of axis values that the experiment runs.
    pub points: AxisCombinations,
    /// Metrics of every point of the experiment, in the order of a result row.
    pub metrics: &'static [Metric],
    /// Figures drawn from the experiment's rows.
    pub figures: &'static [FigureDefinition],
    /// Function that runs one point of the experiment. Equal points and contexts give bit-identical outcomes.
    pub run: fn(&ExperimentPoint, &PointRunInputs) -> Result<PointOutcome, PointRunError>,
}

/// Parameter that an experiment varies, with its values.
#[derive(Clone, Copy, Debug)]
pub struct ExperimentAxis {
    /// Name of the axis in rows and for `--set`; an axis named like a setting varies the setting.
    pub name: &'static str,
    /// Short description of the axis, for help and reports.
    pub what: &'static str,
    /// Values of the axis, in the order of the rows.
    pub values: ExperimentAxisValues,
    /// Labels of the axis values in figures; empty to show the values themselves.
    pub labels: &'static [&'static str],
}

impl ExperimentAxis {
    /// Returns the label of one of the axis's values in figures.
    #[must_use]
    pub fn label(&self, value: &ParameterValue) -> String {
        let at = self.values.list().iter().position(|known| known == value);
        at.and_then(|at| self.labels.get(at)).map_or_else(|| value.to_string(), |&label| label.to_owned())
    }
}

/// Values of an axis: at least one, all of one kind.
#[derive(Clone, Copy, Debug)]
pub enum ExperimentAxisValues {
    /// Axis values: the integers from `first` up to `last`.
    Range {
        /// First of the axis values.
        first: i64,
        /// Upper bound of the axis values.
        last: i64,
        /// Difference of consecutive axis values, at least 1.
        step: i64,
    },
    /// Axis values that are listed one by one.
    List(&'static [ParameterValue]),
}

impl ExperimentAxisValues {
    /// Returns the values of the axis.
    #[must_use]
    pub fn list(&self) -> Vec<ParameterValue> {
        match *self {
            Self::Range { first, last, step } => {
                let step = usize::try_from(step).unwrap_or(1).max(1);
                (first..=last).step_by(step).map(ParameterValue::Int).collect()
            }
            Self::List(values) => values.to_vec(),
        }
    }
}

/// Combinations of axis values that are points of the experiment.
#[derive(Clone, Copy, Debug)]
pub enum AxisCombinations {
    /// All combinations of axis values, the last axis varying fastest.
    All,
    /// Listed combinations of axis values, each with a value for every axis.
    Listed(&'static [&'static [ParameterValue]]),
}

/// Quantity that every point of an experiment reports as a number.
#[derive(Clone, Copy, Debug)]
pub struct Metric {
    /// Name of the metric in rows.
    pub name: &'static str,
    /// Unit of the metric as shown: `Mb/s`, `%`.
    pub unit: &'static str,
    /// Short description of the metric, for help and reports.
    pub what: &'static str,
}

/// Figure that is drawn from an experiment's rows.
#[derive(Clone, Copy, Debug)]
pub struct FigureDefinition {
    /// Heading of the experiment's figure.
    pub title: &'static str,
    /// Drawing style of the series on the left scale.
    pub kind: FigureKind,
    /// Axes of the experiment along the figure's x axis, the outermost first. Lines are true to scale only with a
    /// single integer axis.
    pub x: &'static [&'static str],
    /// Title of the figure's x axis, as shown.
    pub x_title: &'static str,
    /// Axis of the experiment whose values a figure draws side by side, with one line or bar each.
    pub split: Option<&'static str>,
    /// Left scale of the figure, with its series.
    pub left: FigureScale,
    /// Right scale of the figure; its series are always lines.
    pub right: Option<FigureScale>,
}

/// Drawing style of a scale's series.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FigureKind {
    /// Line with a marker at each point of the series.
    Lines,
    /// Bars on top of each other, for series that are parts of a whole.
    StackedBars,
    /// Bars of the series side by side.
    GroupedBars,
}

/// Vertical scale of a figure, with its series.
#[derive(Clone, Copy, Debug)]
pub struct FigureScale {
    /// Quantity that the figure's scale measures.
    pub title: &'static str,
    /// Unit of the quantity on the figure's scale.
    pub unit: &'static str,
    /// Metrics drawn as series, with their labels, the lowest of a stack first.
    pub series: &'static [(&'static str, &'static str)],
}

/// Point of an experiment: one combination of axis values, with changed settings.
#[derive(Clone, Debug, PartialEq)]
pub struct ExperimentPoint {
    /// Name of the experiment that the point belongs to.
    pub experiment: &'static str,
    /// Value of the point for each axis of its experiment.
    pub axes: Params,
    /// Settings of the point that differ from their defaults.
    pub changed: Params,
}

impl ExperimentPoint {
    /// Returns the parameters in the point's result row: axis values, then changed settings.
    #[must_use]
    pub fn params(&self) -> Params {
        let all = self.axes.iter().chain(self.changed.iter());
        all.map(|(name, value)| (name.to_owned(), value.clone())).collect()
    }
}

impl fmt::Display for ExperimentPoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.experiment, self.params())
    }
}

/// Context in which an experiment point is run: seed and settings.
#[derive(Clone, Debug)]
pub struct PointRunInputs {
    /// Seed of every named random generator of the point. It depends on the run's seed, the experiment and the axes but
    /// not on settings, so that runs with different settings use the same random numbers.
    pub seed: u64,
    /// All settings of the point's run, changed or not. A setting varied by an axis has the axis value.
    pub settings: RunSettings,
}

/// Prefix of the settings that are constants of the cost table.
pub(crate) const CONSTANT: &str = "cost.";
/// Prefix of the settings that are features of the cost table's processor.
pub(crate) const FEATURE: &str = "features.";

/// Settings of one point's run, with a record of the settings that the run has read. A setting that is not read has no
/// effect on the run.
#[derive(Clone, Debug)]
pub struct RunSettings {
    values: Params,
    read: Arc<Mutex<BTreeSet<String>>>,
    /// Cost tables that were handed to experiment runs.
    tables: Arc<Mutex<Vec<CostTable>>>,
}

impl RunSettings {
    /// Creates settings that no run has read.
    #[must_use]
    pub fn new(values: Params) -> Self {
        Self { values, read: Arc::default(), tables: Arc::default() }
    }

    /// Returns the integer setting called `name`.
    ///
    /// # Errors
    /// [`NoSuchValue`] if there is no such integer.
    pub fn int(&self, name: &str) -> Result<i64, NoSuchValue> {
        self.look(name).int(name)
    }

    /// Returns the numeric setting called `name`.
    ///
    /// # Errors
    /// [`NoSuchValue`] if there is no such number.
    pub fn real(&self, name: &str) -> Result<f64, NoSuchValue> {
        self.look(name).real(name)
    }

    /// Returns the text setting called `name`.
    ///
    /// # Errors
    /// [`NoSuchValue`] if there is no such text.
    pub fn text(&self, name: &str) -> Result<&str, NoSuchValue> {
        self.look(name).text(name)
    }

    /// Registers a cost table that an experiment run receives. From then on, a look-up of a constant in the table
    /// counts as a read of the constant's setting.
    pub(crate) fn hand_out(&self, table: &CostTable) {
        self.tables.lock().unwrap_or_else(PoisonError::into_inner).push(table.clone());
    }

    /// Returns `true` if a run has read the setting, or has looked up in a registered table the cost constant that the
    /// setting changes.
    pub(crate) fn was_read(&self, name: &str) -> bool {
        let tables = self.tables.lock().unwrap_or_else(PoisonError::into_inner);
        let constant = name.strip_prefix(CONSTANT).unwrap_or_default();
        let feature = name.strip_prefix(FEATURE).unwrap_or_default();
        let used =
            |table: &CostTable| table.was_looked_up(constant).or_else(|| table.was_feature_used(feature));
        let mut looked_up = tables.iter().filter_map(used).peekable();
        if looked_up.peek().is_some() {
            return looked_up.any(|is_looked_up| is_looked_up);
        }
        self.read.lock().unwrap_or_else(PoisonError::into_inner).contains(name)
    }

    fn look(&self, name: &str) -> &Params {
        let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        if !read.contains(name) {
            read.insert(name.to_owned());
        }
        &self.values
    }
}

/// Result of running one experiment point.
#[derive(Clone, Debug, PartialEq)]
pub struct PointOutcome {
    /// All metrics of the point, in the experiment's order, finite.
    pub metrics: Metrics,
    /// Hash of all events traced while the point was run, for comparing two runs.
    pub trace: u64,
    /// Virtual time that the run simulated, in picoseconds.
    pub simulated_ps: u64,
    /// Number of events that the simulation of the point handled.
    pub events: u64,
    /// Cycles of the point's last measured interval, or `None` if the experiment does not account for cycles.
    pub cycles: Option<CycleBreakdown>,
}

/// Error of running a point: the point cannot be run, or its result is invalid.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum PointRunError {
    /// The experiment read a value that is not declared.
    #[error(transparent)]
    Value(#[from] NoSuchValue),
    /// The point's values do not describe a valid machine.
    #[error("{0}")]
    Refused(String),
    /// The point has changed settings that the run did not read.
    #[error(
        "settings without effect on this point: {0}; remove them, or keep points without effect with --unaffected"
    )]
    NoEffect(String),
    /// The model failed to conserve cycles or packets: it has a defect.
    #[error("invariant of the model violated: {0}")]
    Invariant(String),
}
