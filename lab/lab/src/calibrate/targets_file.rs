//! Calibration targets of a file (TOML): values of your own, each with its points and metrics.

use serde::Deserialize;
use thiserror::Error;

use super::target::{CalibrationTarget, CalibrationTargetFormula, GivenValue};
use crate::catalogue::{ExperimentCatalogue, ExperimentPointRef, PointRelation};

/// File of calibration targets.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct TargetsFile {
    target: Vec<FileTarget>,
}

/// Target of a file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct FileTarget {
    name: String,
    /// Experiment and axis values of each point: `fig16 vms=10 backend_threads=1`.
    points: Vec<String>,
    /// Metrics whose sum has the value.
    metrics: Vec<String>,
    relation: Option<FileRelation>,
    /// Number of steps between the points of a difference.
    #[serde(default = "one")]
    steps: f64,
    value: f64,
    /// Weight of the relative residual; 0 only reports the target.
    #[serde(default = "one")]
    weight: f64,
    #[serde(default)]
    source: String,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
enum FileRelation {
    Ratio,
    Difference,
    Saving,
}

const fn one() -> f64 {
    1.0
}

/// Error of a file of calibration targets.
#[derive(Debug, Error)]
pub enum TargetsFileError {
    /// The file is no TOML, or has unknown or missing keys.
    #[error(transparent)]
    Toml(#[from] toml::de::Error),
    /// A target cannot be computed or compared.
    #[error("target `{name}`: {why}")]
    Target {
        /// Name of the target.
        name: String,
        /// Reason.
        why: String,
    },
}

/// Reads calibration targets from the text of a file. They stay in memory until the program ends, as those of the
/// program do.
///
/// # Errors
/// [`TargetsFileError`] with the target that is wrong.
pub fn read_targets(
    text: &str,
    catalogue: &ExperimentCatalogue,
) -> Result<Vec<&'static CalibrationTarget>, TargetsFileError> {
    let file: TargetsFile = toml::from_str(text)?;
    let read = |target: FileTarget| {
        let name = target.name.clone();
        target.read(catalogue).map_err(|why| TargetsFileError::Target { name, why })
    };
    file.target.into_iter().map(read).collect()
}

impl FileTarget {
    fn read(self, catalogue: &ExperimentCatalogue) -> Result<&'static CalibrationTarget, String> {
        if !self.value.is_finite() || self.value == 0.0 {
            return Err(format!("its value is {}; a relative residual needs another number", self.value));
        }
        if !self.weight.is_finite() || self.weight < 0.0 {
            return Err(format!("its weight is {}; it must not be negative", self.weight));
        }
        let needed = if self.relation.is_some() { 2 } else { 1 };
        if self.points.len() != needed || self.metrics.is_empty() {
            return Err(format!("it needs {needed} points and at least one metric"));
        }
        let points: Vec<_> =
            self.points.iter().map(|text| self.point(text, catalogue)).collect::<Result<_, _>>()?;
        let metrics: Vec<&'static str> = self.metrics.into_iter().map(|name| &*name.leak()).collect();
        let metrics: &'static [&'static str] = metrics.leak();
        let formula = match self.relation {
            None => CalibrationTargetFormula::Sum(metrics),
            Some(FileRelation::Ratio) => CalibrationTargetFormula::Relation(PointRelation::Ratio, metrics),
            Some(FileRelation::Saving) => CalibrationTargetFormula::Relation(PointRelation::Saving, metrics),
            Some(FileRelation::Difference) => {
                CalibrationTargetFormula::Relation(PointRelation::Difference(self.steps), metrics)
            }
        };
        let given = Some(GivenValue { value: self.value, source: self.source.leak() });
        let (name, points) = (self.name.leak(), points.leak());
        Ok(Box::leak(Box::new(CalibrationTarget { name, points, formula, weight: self.weight, given })))
    }

    /// Reads a point: an experiment that has the metrics, with a value for each axis, and settings after them.
    fn point(&self, text: &str, catalogue: &ExperimentCatalogue) -> Result<ExperimentPointRef, String> {
        let mut words = text.split_whitespace();
        let name = words.next().ok_or("a point is empty")?;
        let experiment =
            catalogue.experiment(name).ok_or_else(|| format!("there is no experiment {name}"))?;
        let pairs = words.map(|word| word.split_once('=').ok_or_else(|| format!("{word} is no key=value")));
        let pairs: Vec<_> = pairs.collect::<Result<_, _>>()?;
        let is_given = |axis: &&str| pairs.iter().any(|(key, _)| key == axis);
        if let Some(axis) = experiment.axes.iter().map(|axis| axis.name).find(|axis| !is_given(axis)) {
            return Err(format!("point `{text}` has no value for {axis}"));
        }
        let has = |metric: &&String| experiment.metrics.iter().any(|known| known.name == **metric);
        if let Some(metric) = self.metrics.iter().find(|metric| !has(metric)) {
            return Err(format!("{name} has no metric {metric}"));
        }
        let leaked = |text: &str| -> &'static str { text.to_owned().leak() };
        let axes: Vec<_> = pairs.into_iter().map(|(key, value)| (leaked(key), leaked(value))).collect();
        Ok(ExperimentPointRef { experiment: experiment.name, axes: axes.leak() })
    }
}
