//! An experiment as data: what is varied, what is measured, how it is shown. Only running one point is code.
//! Left out: running a sweep ([`crate::runner`]) and drawing ([`crate::figure`]).

use std::collections::BTreeSet;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use thiserror::Error;

use hypervisor::cost::CostTable;

use crate::named::{Metrics, NoSuchValue, Params};
use crate::value::Value;

/// One experiment.
#[derive(Clone, Copy, Debug)]
pub struct Experiment {
    /// What it is called on the command line and in rows, such as `fig06`.
    pub name: &'static str,
    /// A heading.
    pub title: &'static str,
    /// A sentence or two: the set-up, and what one should look at.
    pub shows: &'static str,
    /// What is varied, the slowest first.
    pub axes: &'static [Axis],
    /// Which combinations of the axes' values are run.
    pub points: Points,
    /// What every point measures, in the order of a row.
    pub metrics: &'static [Metric],
    /// How the rows are shown.
    pub figures: &'static [Figure],
    /// Runs one point: the same point and context give the same outcome, to the last bit.
    pub run: fn(&Point, &Context) -> Result<Outcome, RunError>,
}

/// One parameter that is varied.
#[derive(Clone, Copy, Debug)]
pub struct Axis {
    /// Its name in rows and for `--set`; that of a setting varies the setting.
    pub name: &'static str,
    /// What it is, in a few words.
    pub what: &'static str,
    /// Its values, in the order of the rows.
    pub values: Values,
    /// What figures call each value; empty for the values themselves.
    pub labels: &'static [&'static str],
}

impl Axis {
    /// What figures call a value.
    #[must_use]
    pub fn label(&self, value: &Value) -> String {
        let at = self.values.list().iter().position(|known| known == value);
        at.and_then(|at| self.labels.get(at)).map_or_else(|| value.to_string(), |&label| label.to_owned())
    }
}

/// The values of an axis: at least one, all of one kind.
#[derive(Clone, Copy, Debug)]
pub enum Values {
    /// Integers from the first to at most the last.
    Range {
        /// The first value.
        first: i64,
        /// No value is beyond this.
        last: i64,
        /// From one value to the next, at least 1.
        step: i64,
    },
    /// These.
    List(&'static [Value]),
}

impl Values {
    /// The values themselves.
    #[must_use]
    pub fn list(&self) -> Vec<Value> {
        match *self {
            Self::Range { first, last, step } => {
                let step = usize::try_from(step).unwrap_or(1).max(1);
                (first..=last).step_by(step).map(Value::Int).collect()
            }
            Self::List(values) => values.to_vec(),
        }
    }
}

/// Which combinations of the axes' values are points.
#[derive(Clone, Copy, Debug)]
pub enum Points {
    /// All, the last axis varying fastest.
    All,
    /// These, each with a value for every axis.
    Listed(&'static [&'static [Value]]),
}

/// One number that every point finds.
#[derive(Clone, Copy, Debug)]
pub struct Metric {
    /// Its name in rows.
    pub name: &'static str,
    /// Its unit, as shown: `Mb/s`, `%`.
    pub unit: &'static str,
    /// What it is, in a few words.
    pub what: &'static str,
}

/// How rows become a figure.
#[derive(Clone, Copy, Debug)]
pub struct Figure {
    /// A heading of its own.
    pub title: &'static str,
    /// How the left scale's series are drawn.
    pub kind: Kind,
    /// The axes along x, the outermost first. Lines need one axis of integers to be true to distance.
    pub x: &'static [&'static str],
    /// What stands below x.
    pub x_title: &'static str,
    /// The axis whose values are drawn beside each other: a line or a bar for each.
    pub split: Option<&'static str>,
    /// The scale to the left.
    pub left: Scale,
    /// A second scale to the right; its series are lines whatever the kind.
    pub right: Option<Scale>,
}

/// How series are drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A line with a marker at each point.
    Lines,
    /// Bars on top of each other, which makes sense for parts of a whole.
    StackedBars,
    /// Bars beside each other.
    GroupedBars,
}

/// A vertical scale and what is drawn on it.
#[derive(Clone, Copy, Debug)]
pub struct Scale {
    /// What it measures.
    pub title: &'static str,
    /// In which unit.
    pub unit: &'static str,
    /// Metrics and what figures call them, the lowest of a stack first.
    pub series: &'static [(&'static str, &'static str)],
}

/// One combination of values of one experiment.
#[derive(Clone, Debug, PartialEq)]
pub struct Point {
    /// The experiment's name.
    pub experiment: &'static str,
    /// A value for each axis.
    pub axes: Params,
    /// The settings that are not at their default.
    pub changed: Params,
}

impl Point {
    /// What a row calls the point: its place on the axes, and what was changed.
    #[must_use]
    pub fn params(&self) -> Params {
        let all = self.axes.iter().chain(self.changed.iter());
        all.map(|(name, value)| (name.to_owned(), value.clone())).collect()
    }
}

impl fmt::Display for Point {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.experiment, self.params())
    }
}

/// What a run of one point is given besides the point.
#[derive(Clone, Debug)]
pub struct Context {
    /// For every named generator of the run. Follows from the run's seed, the experiment and the axes, not from
    /// settings: runs that differ in a setting are compared on the same random numbers.
    pub seed: u64,
    /// Every setting, changed or not; one that an axis varies has its value there.
    pub settings: Settings,
}

/// What names of settings begin with that are constants of the cost table.
pub(crate) const CONSTANT: &str = "cost.";

/// Settings that remember which of them were looked at: what a run does not look at has no effect on it.
#[derive(Clone, Debug)]
pub struct Settings {
    values: Params,
    read: Arc<Mutex<BTreeSet<String>>>,
    /// Cost tables that runs were given.
    tables: Arc<Mutex<Vec<CostTable>>>,
}

impl Settings {
    /// Settings that no run has looked at yet.
    #[must_use]
    pub fn new(values: Params) -> Self {
        Self { values, read: Arc::default(), tables: Arc::default() }
    }

    /// The integer of that name.
    ///
    /// # Errors
    /// There is none.
    pub fn int(&self, name: &str) -> Result<i64, NoSuchValue> {
        self.look(name).int(name)
    }

    /// The number of that name.
    ///
    /// # Errors
    /// There is none.
    pub fn real(&self, name: &str) -> Result<f64, NoSuchValue> {
        self.look(name).real(name)
    }

    /// The text of that name.
    ///
    /// # Errors
    /// There is none.
    pub fn text(&self, name: &str) -> Result<&str, NoSuchValue> {
        self.look(name).text(name)
    }

    /// Makes a table one of those whose constants count as read only when a run has looked them up.
    pub(crate) fn hand_out(&self, table: &CostTable) {
        self.tables.lock().unwrap_or_else(PoisonError::into_inner).push(table.clone());
    }

    /// Whether a run has looked at the setting; if it is a constant of a table that was handed out, in the table.
    pub(crate) fn was_read(&self, name: &str) -> bool {
        let tables = self.tables.lock().unwrap_or_else(PoisonError::into_inner);
        let constant = name.strip_prefix(CONSTANT).unwrap_or_default();
        let mut looked_up = tables.iter().filter_map(|table| table.was_looked_up(constant)).peekable();
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

/// What a run of one point gives back.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// All metrics of the experiment, in its order, finite.
    pub metrics: Metrics,
    /// The hash over everything that happened: what two runs of the same are compared by.
    pub trace: u64,
    /// How much virtual time passed, picoseconds.
    pub simulated_ps: u64,
    /// How many events were handled.
    pub events: u64,
}

/// A point cannot be run, or what ran is not to be believed.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum RunError {
    /// The experiment asked for what is not declared.
    #[error(transparent)]
    Value(#[from] NoSuchValue),
    /// The values do not describe a machine that there is.
    #[error("{0}")]
    Refused(String),
    /// Settings that were changed, and that the run has not looked at.
    #[error("{0}: without effect here; leave it out, or ask for such rows too with --unaffected")]
    NoEffect(String),
    /// Cycles, packets or the like were not conserved: the model is wrong.
    #[error("invariant violated: {0}")]
    Invariant(String),
}
