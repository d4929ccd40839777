//! Asks the measured program for the lab's model: `softiov lab list --json` has the points of experiments and the values that
//! papers state, and `softiov lab run --json` runs a point. The benchmark so needs nothing of the lab to be built.

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
    /// Returns the points of an experiment; none without the experiment.
    pub(crate) fn points(&self, experiment: &str) -> &[ModelPoint] {
        self.experiment(experiment).map_or(&[], |found| &found.points)
    }

    /// Returns the values that papers state for an experiment; none without the experiment.
    pub(crate) fn stated(&self, experiment: &str) -> &[StatedValue] {
        self.experiment(experiment).map_or(&[], |found| &found.stated)
    }

    /// Returns the default of a setting that is a number.
    pub(crate) fn number(&self, setting: &str) -> Option<f64> {
        self.settings.iter().find(|found| found.name == setting)?.default.as_f64()
    }

    fn experiment(&self, name: &str) -> Option<&ListedExperiment> {
        self.experiments.iter().find(|found| found.name == name)
    }
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
        let what = || format!("cannot read what `{} {}` prints", self.program.display(), words.join(" "));
        let output = Command::new(&self.program).args(words).output().with_context(what)?;
        ensure!(
            output.status.success(),
            "`{} {}` failed: {}",
            self.program.display(),
            words.join(" "),
            String::from_utf8_lossy(&output.stderr).trim_end()
        );
        serde_json::from_slice(&output.stdout).with_context(what)
    }
}
