//! The report of experiments: one self-contained HTML file, with CSV and JSON beside it.
//!
//! | module | contents |
//! |---|---|
//! | `html` | the page |
//! | [`figures`] | an experiment's rows as charts |
//! | `model` | the page's tables about the model: residuals, sensitivity, parameters |
//! | `plain` | CSV and JSON |
//! | `seeds` | merges rows of several seeds |
//!
//! Equal rows give equal bytes, so a report has no date. Versions are not compared.

#[cfg(test)]
mod browser_tests;
pub mod figures;
mod html;
mod model;
mod plain;
pub(crate) mod seeds;
#[cfg(test)]
pub(crate) mod tests;

use std::path::{Path, PathBuf};
use std::{fs, io};

use thiserror::Error;

use crate::calibrate::prediction;
use crate::catalogue::{
    ExperimentCatalogue, ModelConstant, ModelSensitivity, PredictedRange, PublishedValue, Residual,
};
use crate::experiment::{AxisCombinations, Experiment};
use crate::named::{Metrics, Params};
use crate::row::ResultRow;
use crate::runner::plan;
use crate::runner::store::StoredResultRow;
use crate::value::ParameterValue;
use seeds::ConfidenceIntervals;

/// Report of result rows: a section per experiment, and the model's constants, residuals and sensitivity.
#[derive(Clone, Debug)]
pub struct ExperimentReport {
    version: String,
    /// First of the seeds of the report's rows.
    seed: u64,
    seeds: usize,
    sections: Vec<ReportSection>,
    /// Confidence intervals of each row's metrics, if there are several seeds.
    spreads: Vec<ConfidenceIntervals>,
    stated: Vec<PublishedValue>,
    parameters: Vec<ModelConstant>,
    residuals: Vec<Residual>,
    sensitivity: ModelSensitivity,
    ranges: Vec<PredictedRange>,
}

/// Section of the report: an experiment with one set of changed settings.
#[derive(Clone, Debug)]
struct ReportSection {
    experiment: &'static Experiment,
    changed: Params,
    /// Rows of the section, in the order of the experiment's points.
    rows: Vec<ResultRow>,
    /// Number of points in the experiment's sweep without a result row.
    missing: usize,
}

/// Error of creating or writing a report.
#[derive(Debug, Error)]
pub enum ReportError {
    /// The report has no result rows.
    #[error("no rows to report: run `softiov lab run all --out DIR` first")]
    Empty,
    /// No row has the selected seed.
    #[error("no rows with seed {0}: run `softiov lab run all --seed {0} --out DIR` first")]
    NoSuchSeed(u64),
    /// The rows are of different versions, which cannot share a figure.
    #[error(
        "the rows come from different versions of the model: {0}; run again with the same --out to replace \
         the old rows"
    )]
    Versions(String),
    /// Some rows are of an experiment that this version does not have.
    #[error(
        "experiment `{0}` of some rows is unknown to this version: remove the rows, or use the version that \
         made them"
    )]
    UnknownExperiment(String),
    /// The page would be overwritten by the CSV or JSON file.
    #[error("{}: the page's name must not end in .csv or .json, which are written beside it; use .html", .0.display())]
    Ending(PathBuf),
    /// A file of the report cannot be written.
    #[error("cannot write {}: {error}", .path.display())]
    Write {
        /// Path of the report's file that was not written.
        path: PathBuf,
        /// Error that the system returned for the report's file.
        error: io::Error,
    },
}

impl ExperimentReport {
    /// Sorts result rows into a report. Rows of several seeds are merged to their means, unless one seed is
    /// selected.
    ///
    /// # Errors
    /// [`ReportError`] if there is no row of the selected seed, or rows are of different versions or unknown
    /// experiments.
    pub fn new(
        catalogue: &ExperimentCatalogue,
        mut records: Vec<StoredResultRow>,
        seed: Option<u64>,
    ) -> Result<Self, ReportError> {
        if records.is_empty() {
            return Err(ReportError::Empty);
        }
        if let Some(seed) = seed {
            records.retain(|record| record.seed == seed);
        }
        let seeds = different(records.iter().map(|record| record.seed));
        let versions = different(records.iter().map(|record| record.version.as_str()));
        let Some(&first) = seeds.first() else {
            return Err(ReportError::NoSuchSeed(seed.unwrap_or_default()));
        };
        let [version] = versions.as_slice() else { return Err(ReportError::Versions(listed(&versions))) };
        let unknown = records.iter().find(|record| catalogue.experiment(&record.row.experiment).is_none());
        if let Some(record) = unknown {
            return Err(ReportError::UnknownExperiment(record.row.experiment.clone()));
        }
        let version = (*version).to_owned();
        let count = seeds.len();
        let (records, spreads) = if count > 1 { seeds::merge(records) } else { (records, Vec::new()) };
        Ok(Self {
            version,
            seed: first,
            seeds: count,
            spreads,
            sections: catalogue
                .experiments
                .iter()
                .flat_map(|experiment| sections(experiment, &records))
                .collect(),
            stated: catalogue.stated.clone(),
            parameters: catalogue.parameters.clone(),
            residuals: catalogue.residuals.clone(),
            sensitivity: catalogue.sensitivity.clone(),
            ranges: prediction::ranges(&catalogue.sensitivity),
        })
    }

    /// Returns the report's page as HTML.
    #[must_use]
    pub fn to_html(&self) -> String {
        html::page(self)
    }

    /// Returns all rows as one CSV table; cells without a value are empty.
    #[must_use]
    pub fn to_csv(&self) -> String {
        plain::csv(self)
    }

    /// Returns all rows with units, commands and the model's tables as one JSON object.
    #[must_use]
    pub fn to_json(&self) -> String {
        plain::json(self)
    }

    /// Returns half of the 95 % confidence interval of a row's metric, if there are several seeds.
    fn half(&self, row: &ResultRow, metric: &str) -> Option<f64> {
        self.interval(row)?.get(metric).copied().filter(|half| *half > 0.0)
    }

    fn interval(&self, row: &ResultRow) -> Option<&Metrics> {
        self.spreads.iter().find(|spread| spread.is_of(row)).map(|spread| &spread.half)
    }

    /// Returns the range of seeds of the rows, for the command line.
    fn seeds(&self) -> SeedRange {
        SeedRange { first: self.seed, count: self.seeds }
    }

    /// Returns the values that papers state for a section. They apply only to unchanged settings.
    fn stated_of(&self, section: &ReportSection) -> &[PublishedValue] {
        if section.changed.is_empty() { &self.stated } else { &[] }
    }

    /// Returns the ranges of a section's predictions. They apply only to unchanged settings.
    fn ranges_of(&self, section: &ReportSection) -> &[PredictedRange] {
        if section.changed.is_empty() { &self.ranges } else { &[] }
    }

    /// Returns the commands that reproduce all rows: one command per set of changed settings, and one per
    /// point that is not in its experiment's sweep.
    fn commands(&self) -> Vec<String> {
        let mut choices: Vec<(&Params, Vec<&str>)> = Vec::new();
        for section in self.sections.iter().filter(|section| section.sweeps()) {
            match choices.iter_mut().find(|(changed, _)| **changed == section.changed) {
                Some((_, names)) => names.push(section.experiment.name),
                None => choices.push((&section.changed, vec![section.experiment.name])),
            }
        }
        let sweeps = choices.iter().map(|(changed, names)| command(&names.join(" "), self.seeds(), changed));
        sweeps.chain(self.sections.iter().flat_map(|section| section.beyond(self.seeds()))).collect()
    }

    /// Returns the paths of a report's page, CSV and JSON.
    ///
    /// # Errors
    /// [`ReportError::Ending`] if two of them are equal.
    pub fn places(page: &Path) -> Result<[PathBuf; 3], ReportError> {
        let paths = [page.to_owned(), page.with_extension("csv"), page.with_extension("json")];
        if paths[1..].contains(&paths[0]) {
            return Err(ReportError::Ending(page.to_owned()));
        }
        Ok(paths)
    }

    /// Writes the report's page with CSV and JSON beside it. Returns the paths of the three files.
    ///
    /// # Errors
    /// [`ReportError`] if a file cannot be written.
    pub fn write(&self, page: &Path) -> Result<[PathBuf; 3], ReportError> {
        let paths = Self::places(page)?;
        for (path, text) in paths.iter().zip([self.to_html(), self.to_csv(), self.to_json()]) {
            fs::write(path, text).map_err(|error| ReportError::Write { path: path.clone(), error })?;
        }
        Ok(paths)
    }
}

impl ReportSection {
    /// Returns the section's identifier in the HTML page.
    fn id(&self) -> String {
        let name = format!("{} {}", self.experiment.name, self.changed);
        let plain = |character: char| if character.is_ascii_alphanumeric() { character } else { '-' };
        name.trim().chars().map(plain).collect()
    }

    /// Returns the commands that reproduce the section's rows.
    fn commands(&self, seeds: SeedRange) -> Vec<String> {
        let sweep = self.sweeps().then(|| command(self.experiment.name, seeds, &self.changed));
        sweep.into_iter().chain(self.beyond(seeds)).collect()
    }

    /// Returns `true` if the section has a row for a point of its experiment's sweep.
    fn sweeps(&self) -> bool {
        self.missing < plan::points(self.experiment).len()
    }

    /// Returns the commands that reproduce rows of the section at points that are not in the experiment's sweep, one
    /// per row.
    fn beyond(&self, seeds: SeedRange) -> Vec<String> {
        let points = plan::points(self.experiment);
        let beyond = self.rows.iter().filter(|row| !points.contains(&axes(self.experiment, &row.params)));
        beyond.map(|row| command(self.experiment.name, seeds, &row.params)).collect()
    }

    fn rows(&self) -> Vec<&ResultRow> {
        self.rows.iter().collect()
    }
}

/// Returns the command that runs the experiments `names`.
fn command(names: &str, SeedRange { first, count }: SeedRange, changed: &Params) -> String {
    let set = changed.iter().map(|(name, value)| format!(" --set {name}={value}")).collect::<String>();
    let several = if count > 1 { format!(" --seeds {count}") } else { String::new() };
    format!("softiov lab run {names} --seed {first}{several}{set}")
}

/// Range of consecutive seeds of a report's rows.
#[derive(Clone, Copy, Debug)]
struct SeedRange {
    first: u64,
    count: usize,
}

fn different<T: Ord>(values: impl Iterator<Item = T>) -> Vec<T> {
    let mut values: Vec<_> = values.collect();
    values.sort();
    values.dedup();
    values
}

fn listed<T: ToString>(values: &[T]) -> String {
    values.iter().map(T::to_string).collect::<Vec<_>>().join(", ")
}

/// Groups the rows of an experiment by changed settings, rows without changed settings first.
fn sections(experiment: &'static Experiment, records: &[StoredResultRow]) -> Vec<ReportSection> {
    let points = plan::points(experiment);
    let mut sections: Vec<ReportSection> = Vec::new();
    for record in records.iter().filter(|record| record.row.experiment == experiment.name) {
        let changed = changed(experiment, &record.row.params);
        let row = record.row.clone();
        match sections.iter_mut().find(|section| section.changed == changed) {
            Some(section) => section.rows.push(row),
            None => sections.push(ReportSection { experiment, changed, rows: vec![row], missing: 0 }),
        }
    }
    for section in &mut sections {
        section.rows.sort_by_cached_key(|row| order(experiment, &points, &row.params));
        section.rows.dedup_by(|one, other| one.params == other.params);
        let found = |point: &&Params| section.rows.iter().any(|row| axes(experiment, &row.params) == **point);
        section.missing = points.len() - points.iter().filter(found).count();
    }
    sections.sort_by_cached_key(|section| section.changed.to_string());
    sections
}

fn axes(experiment: &Experiment, params: &Params) -> Params {
    let is_axis = |name: &str| experiment.axes.iter().any(|axis| axis.name == name);
    params
        .iter()
        .filter(|(name, _)| is_axis(name))
        .map(|(name, value)| (name.to_owned(), value.clone()))
        .collect()
}

fn changed(experiment: &Experiment, params: &Params) -> Params {
    let is_axis = |name: &str| experiment.axes.iter().any(|axis| axis.name == name);
    params
        .iter()
        .filter(|(name, _)| !is_axis(name))
        .map(|(name, value)| (name.to_owned(), value.clone()))
        .collect()
}

/// Returns the position of an experiment point in the report: listed points in their listed order, others ordered by
/// their axis values.
fn order(experiment: &Experiment, points: &[Params], params: &Params) -> (usize, Vec<i64>) {
    let listed = match experiment.points {
        AxisCombinations::All => 0,
        AxisCombinations::Listed(_) => {
            let axes = axes(experiment, params);
            points.iter().position(|point| *point == axes).unwrap_or(points.len())
        }
    };
    let place = |axis: &crate::experiment::ExperimentAxis| match params.get(axis.name) {
        Some(ParameterValue::Int(int)) => *int,
        value => {
            let at = axis.values.list().iter().position(|known| Some(known) == value);
            at.and_then(|at| i64::try_from(at).ok()).unwrap_or(i64::MAX)
        }
    };
    (listed, experiment.axes.iter().map(place).collect())
}
