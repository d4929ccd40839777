//! Asks the measured program for the lab's model: `softiov lab list --json` has the points of experiments and the values that
//! papers state, and `softiov lab run --json` runs a point. The benchmark does not build the lab.

use crate::options::BenchmarkOptions;
use anyhow::{Context, Result, ensure};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Command;

/// The lab of a `softiov` program.
#[derive(Debug)]
pub(crate) struct LabModel {
    program: PathBuf,
    /// Milliseconds of virtual time for the warm-up and the measurement; `None` for the experiments' own.
    milliseconds: Option<u32>,
    listing: LabListing,
}

/// Part of a lab's listing that the benchmark reads.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct LabListing {
    experiments: Vec<ListedExperiment>,
    settings: Vec<ListedSetting>,
}

#[derive(Debug, Deserialize)]
struct ListedExperiment {
    name: String,
    points: Vec<ModelPoint>,
    stated: Vec<StatedValue>,
}

#[derive(Debug, Deserialize)]
struct ListedSetting {
    name: String,
    default: Value,
}

/// Parameters of an experiment's point, by name: numbers, texts or booleans.
pub(crate) type ModelPoint = BTreeMap<String, Value>;

/// Value that a paper states for a point of an experiment.
#[derive(Debug, Deserialize)]
pub(crate) struct StatedValue {
    /// Parameters of the point, by name, as text.
    pub(crate) point: BTreeMap<String, String>,
    /// Name of the metric.
    pub(crate) metric: String,
    /// Value in the metric's unit.
    pub(crate) value: f64,
}

/// Part of a point's result row that the benchmark reads.
#[derive(Deserialize)]
struct ModelRow {
    metrics: BTreeMap<String, f64>,
}

impl LabListing {
    /// Returns the points of an experiment.
    ///
    /// # Errors
    /// The lab has no such experiment.
    pub(crate) fn points(&self, experiment: &str) -> Result<&[ModelPoint]> {
        Ok(&self.experiment(experiment)?.points)
    }

    /// Returns the values that papers state for an experiment.
    ///
    /// # Errors
    /// The lab has no such experiment.
    pub(crate) fn stated(&self, experiment: &str) -> Result<&[StatedValue]> {
        Ok(&self.experiment(experiment)?.stated)
    }

    /// Returns the default of a setting that is a number.
    ///
    /// # Errors
    /// The lab has no such setting, or its default is no number.
    pub(crate) fn numeric_default(&self, setting: &str) -> Result<f64> {
        let found = self.settings.iter().find(|found| found.name == setting);
        found.and_then(|found| found.default.as_f64()).with_context(|| other_version("setting", setting))
    }

    fn experiment(&self, name: &str) -> Result<&ListedExperiment> {
        self.experiments
            .iter()
            .find(|found| found.name == name)
            .with_context(|| other_version("experiment", name))
    }
}

/// Returns the error text for a name that the program's lab does not have.
fn other_version(what: &str, name: &str) -> String {
    format!("the program's lab has no {what} {name}; measure a program of this version")
}

impl LabModel {
    /// Reads the listing of the lab of the options' program.
    ///
    /// # Errors
    /// The program does not run, or prints no such listing.
    pub(crate) fn of(options: &BenchmarkOptions) -> Result<Self> {
        let mut model = Self {
            program: options.program()?,
            milliseconds: options.model_ms,
            listing: LabListing::default(),
        };
        model.listing = model.json(&["lab", "list", "--json"])?;
        Ok(model)
    }

    /// Returns the lab's experiments and settings.
    pub(crate) fn listing(&self) -> &LabListing {
        &self.listing
    }

    /// Runs one point of an experiment, given by its parameters. Returns its throughput in Gb/s; `None` if the experiment does
    /// not measure it.
    ///
    /// # Errors
    /// The program refuses the point.
    pub(crate) fn throughput(&self, experiment: &str, point: &[(&str, String)]) -> Result<Option<f64>> {
        let times = ["warm_up_ms", "measure_ms"].into_iter().zip(self.milliseconds.into_iter().cycle());
        let times = times.map(|(name, milliseconds)| format!("{name}={milliseconds}"));
        let point = point.iter().map(|(name, value)| format!("{name}={value}"));
        let set: Vec<String> = times.chain(point).collect();
        let mut words = vec!["lab", "run", experiment, "--json"];
        words.extend(set.iter().flat_map(|assignment| ["--set", assignment]));
        let row: ModelRow = self.json(&words)?;
        Ok(row.metrics.get("throughput_gbps").copied())
    }

    /// Runs the program with `words`, and reads the JSON that it prints.
    fn json<T: DeserializeOwned>(&self, words: &[&str]) -> Result<T> {
        let command = format!("{} {}", self.program.display(), words.join(" "));
        let output = Command::new(&self.program).args(words).output();
        let output = output
            .with_context(|| format!("cannot run `{command}`: build it, or name another by --softiov"))?;
        let error = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "`{command}` failed with {}: {}", output.status, error.trim_end());
        serde_json::from_slice(&output.stdout).with_context(|| {
            format!("`{command}` prints no JSON of this version; measure a program of this version")
        })
    }
}
