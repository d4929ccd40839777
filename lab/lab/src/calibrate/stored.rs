//! Stored calibration: a data file of cost constants that every run uses, and one with sensitivities that
//! only reports use. [`super::calibrate`] and [`super::sensitivity::sensitivity`] create them.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use hypervisor::cost::CostTable;
use serde::{Deserialize, Serialize};

use crate::catalogue::{ModelSensitivity, Residual};

const FILE: &str = include_str!("../../data/nehalem.toml");

/// Name of the cost table that the calibration file belongs to.
const TABLE: &str = "nehalem";

const HEADER: &str = "\
# Constants of a cost table as a calibration found them, and what the model makes of its targets then. Where a residual
# has a value `left_out`, it is the model's after a fit without that target. Made by a program; to make it again:
# ";

const SENSITIVITY: &str = include_str!("../../data/sensitivity.toml");

const SENSITIVITY_HEADER: &str = "\
# Which constants predictions hang on, and the version of the model that found it. It changes no row, so it has no
# part in the version. Made by a program; to make it again:
# softiov lab calibrate --sensitivity predictions --out lab/lab/data/sensitivity.toml

";

/// Contents of the stored calibration file.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StoredCalibration {
    /// Values of the fitted cost constants, by name.
    #[serde(default)]
    pub constants: BTreeMap<String, u64>,
    /// Relative residuals of the calibration targets.
    #[serde(default, rename = "residual")]
    pub residuals: Vec<Residual>,
}

impl StoredCalibration {
    /// Returns the text of the calibration file, which names the command that made it.
    ///
    /// # Errors
    /// If a number has no TOML form.
    pub fn to_toml(&self, command: &str) -> Result<String, toml::ser::Error> {
        Ok(format!("{HEADER}{command}\n\n") + &toml::to_string(self)?)
    }
}

/// Returns the calibration that the build includes, parsed from its file.
///
/// # Errors
/// If the file is malformed, which a test excludes.
pub fn stored() -> Result<&'static StoredCalibration, String> {
    static STORED: LazyLock<Result<StoredCalibration, String>> =
        LazyLock::new(|| toml::from_str(FILE).map_err(|error| format!("data/nehalem.toml: {error}")));
    STORED.as_ref().map_err(Clone::clone)
}

impl ModelSensitivity {
    /// Returns the text of the sensitivity file.
    ///
    /// # Errors
    /// If a number has no TOML form.
    pub fn to_toml(&self) -> Result<String, toml::ser::Error> {
        Ok(SENSITIVITY_HEADER.to_owned() + &toml::to_string(self)?)
    }
}

/// Returns the stored sensitivity of predictions to cost constants.
///
/// # Errors
/// If the file is malformed, which a test excludes.
pub fn sensitivity() -> Result<&'static ModelSensitivity, String> {
    static STORED: LazyLock<Result<ModelSensitivity, String>> = LazyLock::new(|| {
        toml::from_str(SENSITIVITY).map_err(|error| format!("data/sensitivity.toml: {error}"))
    });
    STORED.as_ref().map_err(Clone::clone)
}

/// Sets the constants of the nehalem cost table to their fitted values, and leaves other tables unchanged.
pub(crate) fn fitted(mut table: CostTable) -> Result<CostTable, String> {
    if table.name() == TABLE {
        for (name, &value) in &stored()?.constants {
            table.fit(name, value).map_err(|error| format!("data/nehalem.toml: {name}: {error}"))?;
        }
    }
    Ok(table)
}
