//! One HTML file that shows it all and needs nothing else, CSV and JSON beside it.
//!
//! | module | what it is |
//! |---|---|
//! | `html` | the page |
//! | `model` | the page's tables about the model: residuals, what predictions hang on, parameters |
//! | `plain` | CSV and JSON |
//! | `seeds` | rows of several seeds as one |
//!
//! The same rows give the same bytes: there is no date in a report. Left out: comparing versions.

#[cfg(test)]
mod browser_tests;
mod html;
mod model;
mod plain;
mod seeds;
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};
use std::{fs, io};

use thiserror::Error;

use crate::catalogue::{Catalogue, Parameter, Residual, Sensitivity, Stated};
use crate::experiment::{Experiment, Points};
use crate::named::{Metrics, Params};
use crate::row::Row;
use crate::runner::plan;
use crate::runner::store::Record;
use crate::value::Value;
use seeds::Spread;

/// What is reported.
#[derive(Clone, Debug)]
pub struct Report {
    version: String,
    /// The first seed, and how many there are.
    seed: u64,
    seeds: usize,
    sections: Vec<Section>,
    /// Of several seeds, how sure each row is.
    spreads: Vec<Spread>,
    stated: Vec<Stated>,
    parameters: Vec<Parameter>,
    residuals: Vec<Residual>,
    sensitivity: Sensitivity,
}

/// An experiment under one choice of settings.
#[derive(Clone, Debug)]
struct Section {
    experiment: &'static Experiment,
    changed: Params,
    /// In the order of the points.
    rows: Vec<Row>,
    /// Points of the sweep that have no row.
    missing: usize,
}

/// There is no report.
#[derive(Debug, Error)]
pub enum ReportError {
    /// There are no rows.
    #[error("there are no rows to report; make some with `softiov lab run all --out DIR`")]
    Empty,
    /// No row has the seed that was chosen.
    #[error("there are no rows of seed {0}")]
    NoSuchSeed(u64),
    /// Rows of several versions do not make one figure.
    #[error("there are rows of the versions {0}; run again with the same --out to renew the old ones")]
    Versions(String),
    /// A row is of an experiment that is not known.
    #[error(
        "there are rows of `{0}`, which this version does not know; remove them, or report them with theirs"
    )]
    UnknownExperiment(String),
    /// The page would be overwritten by what is written beside it.
    #[error("{}: CSV and JSON go beside the page under the same name; give it another ending, such as .html", .0.display())]
    Ending(PathBuf),
    /// A file cannot be written.
    #[error("cannot write {}: {error}", .path.display())]
    Write {
        /// Which.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
}

impl Report {
    /// Puts rows in order. Rows of several seeds, if none is chosen, become one of their means.
    ///
    /// # Errors
    /// There are no rows of the seed that is chosen, or rows are not of one version and known experiments.
    pub fn new(
        catalogue: &Catalogue,
        mut records: Vec<Record>,
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
        })
    }

    /// The page.
    #[must_use]
    pub fn to_html(&self) -> String {
        html::page(self)
    }

    /// All rows under one heading; what an experiment does not have is left empty.
    #[must_use]
    pub fn to_csv(&self) -> String {
        plain::csv(self)
    }

    /// All rows and all that explains them, as one object.
    #[must_use]
    pub fn to_json(&self) -> String {
        plain::json(self)
    }

    /// Half of the interval in which a row's metric lies with 95 %, if there are several seeds.
    fn half(&self, row: &Row, metric: &str) -> Option<f64> {
        self.interval(row)?.get(metric).copied().filter(|half| *half > 0.0)
    }

    fn interval(&self, row: &Row) -> Option<&Metrics> {
        self.spreads.iter().find(|spread| spread.is_of(row)).map(|spread| &spread.half)
    }

    /// The seeds, as the command line has them.
    fn seeds(&self) -> Seeds {
        Seeds { first: self.seed, count: self.seeds }
    }

    /// What papers state of a section: of their machine, and not of another.
    fn stated_of(&self, section: &Section) -> &[Stated] {
        if section.changed.is_empty() { &self.stated } else { &[] }
    }

    /// The commands that find all rows again: one for each choice of settings, and those of points beyond sweeps.
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

    /// Where the page, CSV and JSON of a report go.
    ///
    /// # Errors
    /// Two of them are one.
    pub fn places(page: &Path) -> Result<[PathBuf; 3], ReportError> {
        let paths = [page.to_owned(), page.with_extension("csv"), page.with_extension("json")];
        if paths[1..].contains(&paths[0]) {
            return Err(ReportError::Ending(page.to_owned()));
        }
        Ok(paths)
    }

    /// Writes the page, and CSV and JSON beside it; answers where.
    ///
    /// # Errors
    /// A file cannot be written.
    pub fn write(&self, page: &Path) -> Result<[PathBuf; 3], ReportError> {
        let paths = Self::places(page)?;
        for (path, text) in paths.iter().zip([self.to_html(), self.to_csv(), self.to_json()]) {
            fs::write(path, text).map_err(|error| ReportError::Write { path: path.clone(), error })?;
        }
        Ok(paths)
    }
}

impl Section {
    /// What is unique to the section: a place in the page.
    fn id(&self) -> String {
        let name = format!("{} {}", self.experiment.name, self.changed);
        let plain = |character: char| if character.is_ascii_alphanumeric() { character } else { '-' };
        name.trim().chars().map(plain).collect()
    }

    /// The commands that find these rows again.
    fn commands(&self, seeds: Seeds) -> Vec<String> {
        let sweep = self.sweeps().then(|| command(self.experiment.name, seeds, &self.changed));
        sweep.into_iter().chain(self.beyond(seeds)).collect()
    }

    /// Whether there is a row of the sweep.
    fn sweeps(&self) -> bool {
        self.missing < plan::points(self.experiment).len()
    }

    /// The commands that find the rows again whose points are beyond the sweep.
    fn beyond(&self, seeds: Seeds) -> Vec<String> {
        let points = plan::points(self.experiment);
        let beyond = self.rows.iter().filter(|row| !points.contains(&axes(self.experiment, &row.params)));
        beyond.map(|row| command(self.experiment.name, seeds, &row.params)).collect()
    }

    fn rows(&self) -> Vec<&Row> {
        self.rows.iter().collect()
    }
}

/// The command that runs the experiments of these names.
fn command(names: &str, Seeds { first, count }: Seeds, changed: &Params) -> String {
    let set = changed.iter().map(|(name, value)| format!(" --set {name}={value}")).collect::<String>();
    let several = if count > 1 { format!(" --seeds {count}") } else { String::new() };
    format!("softiov lab run {names} --seed {first}{several}{set}")
}

/// Seeds one after the other.
#[derive(Clone, Copy, Debug)]
struct Seeds {
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

/// The rows of an experiment by what was changed, the plain ones first.
fn sections(experiment: &'static Experiment, records: &[Record]) -> Vec<Section> {
    let points = plan::points(experiment);
    let mut sections: Vec<Section> = Vec::new();
    for record in records.iter().filter(|record| record.row.experiment == experiment.name) {
        let changed = changed(experiment, &record.row.params);
        let row = record.row.clone();
        match sections.iter_mut().find(|section| section.changed == changed) {
            Some(section) => section.rows.push(row),
            None => sections.push(Section { experiment, changed, rows: vec![row], missing: 0 }),
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

/// Listed points as they are listed; others by their values, also those beyond the sweep.
fn order(experiment: &Experiment, points: &[Params], params: &Params) -> (usize, Vec<i64>) {
    let listed = match experiment.points {
        Points::All => 0,
        Points::Listed(_) => {
            let axes = axes(experiment, params);
            points.iter().position(|point| *point == axes).unwrap_or(points.len())
        }
    };
    let place = |axis: &crate::experiment::Axis| match params.get(axis.name) {
        Some(Value::Int(int)) => *int,
        value => {
            let at = axis.values.list().iter().position(|known| Some(known) == value);
            at.and_then(|at| i64::try_from(at).ok()).unwrap_or(i64::MAX)
        }
    };
    (listed, experiment.axes.iter().map(place).collect())
}
