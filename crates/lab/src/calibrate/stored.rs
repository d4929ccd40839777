//! The calibration as data: a file in the sources that every run uses, and one with what predictions hang on, which
//! only reports use. Left out: making them ([`super::calibrate`], [`super::sensitivity`]).

use std::collections::BTreeMap;
use std::sync::LazyLock;

use hypervisor::cost::CostTable;
use serde::{Deserialize, Serialize};

use crate::catalogue::{Residual, Sensitivity};

const FILE: &str = include_str!("../../data/nehalem.toml");

/// The table that the file is for.
const TABLE: &str = "nehalem";

const HEADER: &str = "\
# Constants of the nehalem cost table as the calibration found them, and what the model makes of its targets then.
# Made by a program; to make it again: softiov lab calibrate --out crates/lab/data/nehalem.toml

";

const SENSITIVITY: &str = include_str!("../../data/sensitivity.toml");

const SENSITIVITY_HEADER: &str = "\
# Which constants predictions hang on, and the version of the model that found it. It changes no row, so it has no
# part in the version. Made by a program; to make it again:
# softiov lab calibrate --sensitivity predictions --out crates/lab/data/sensitivity.toml

";

/// What the file holds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Stored {
    /// Constants by name.
    #[serde(default)]
    pub constants: BTreeMap<String, u64>,
    /// What is left over.
    #[serde(default, rename = "residual")]
    pub residuals: Vec<Residual>,
}

impl Stored {
    /// The file's text.
    ///
    /// # Errors
    /// A number in it has no TOML.
    pub fn to_toml(&self) -> Result<String, toml::ser::Error> {
        Ok(HEADER.to_owned() + &toml::to_string(self)?)
    }
}

/// What the file holds.
///
/// # Errors
/// It is not what it should be; a test sees to it that it is.
pub fn stored() -> Result<&'static Stored, String> {
    static STORED: LazyLock<Result<Stored, String>> =
        LazyLock::new(|| toml::from_str(FILE).map_err(|error| format!("data/nehalem.toml: {error}")));
    STORED.as_ref().map_err(Clone::clone)
}

impl Sensitivity {
    /// The file's text.
    ///
    /// # Errors
    /// A number in it has no TOML.
    pub fn to_toml(&self) -> Result<String, toml::ser::Error> {
        Ok(SENSITIVITY_HEADER.to_owned() + &toml::to_string(self)?)
    }
}

/// What predictions hang on.
///
/// # Errors
/// The file is not what it should be; a test sees to it that it is.
pub fn sensitivity() -> Result<&'static Sensitivity, String> {
    static STORED: LazyLock<Result<Sensitivity, String>> = LazyLock::new(|| {
        toml::from_str(SENSITIVITY).map_err(|error| format!("data/sensitivity.toml: {error}"))
    });
    STORED.as_ref().map_err(Clone::clone)
}

/// The table with the constants that were fitted for it.
pub(crate) fn fitted(mut table: CostTable) -> Result<CostTable, String> {
    if table.name() == TABLE {
        for (name, &value) in &stored()?.constants {
            table.fit(name, value).map_err(|error| format!("data/nehalem.toml: {name}: {error}"))?;
        }
    }
    Ok(table)
}
