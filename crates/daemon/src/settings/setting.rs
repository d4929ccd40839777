//! Settings as values by name, for VFs and ports alike (`port` and `vf` have the settings themselves).

use policy::PolicyError;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use thiserror::Error;

/// Values by setting name, such as `vlan` or `storm.broadcast`.
pub type SettingValues = BTreeMap<String, Value>;

/// Error of an invalid value of a setting.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("invalid setting {key}: {problem}")]
pub struct SettingError {
    /// Name of the setting with the invalid value.
    pub key: &'static str,
    /// Problem of the value, and its remedy.
    pub problem: String,
}

/// Converts the error of an invalid policy to an error that names the invalid setting.
impl From<PolicyError> for SettingError {
    fn from(error: PolicyError) -> Self {
        Self { key: error.setting(), problem: error.to_string() }
    }
}

/// Returns the error for an invalid value of a setting.
pub(super) fn refuse<T>(key: &'static str, problem: impl Into<String>) -> Result<T, SettingError> {
    Err(SettingError { key, problem: problem.into() })
}

/// Settings of one VF or port that convert to values by name and back. An unset field changes nothing.
pub trait SettingsGroup: Serialize + DeserializeOwned + Default {
    /// Returns the number of levels of setting names below a field: 0 if the field is a single setting.
    fn depth(field: &str) -> usize;

    /// Returns the values of the settings that are set, by name, such as `vlan` or `storm.broadcast`.
    #[must_use]
    fn leaves(&self) -> SettingValues {
        let mut leaves = SettingValues::new();
        if let Ok(Value::Object(fields)) = serde_json::to_value(self) {
            for (field, value) in fields {
                let depth = Self::depth(&field);
                collect(&mut leaves, field, value, depth);
            }
        }
        leaves
    }

    /// Creates a group of settings from values by name.
    ///
    /// # Errors
    /// A name is unknown, or a value has the wrong type.
    fn from_leaves(leaves: &SettingValues) -> Result<Self, serde_json::Error> {
        let mut fields = Map::new();
        for (name, value) in leaves {
            insert(&mut fields, name, value.clone());
        }
        serde_json::from_value(Value::Object(fields))
    }
}

/// Adds the value of a setting to `leaves`, or for a JSON object, down to `depth` levels, the values of its
/// fields.
fn collect(leaves: &mut SettingValues, name: String, value: Value, depth: usize) {
    match value {
        Value::Object(fields) if depth > 0 => {
            for (field, value) in fields {
                collect(leaves, format!("{name}.{field}"), value, depth - 1);
            }
        }
        value => {
            leaves.insert(name, value);
        }
    }
}

/// Inserts a setting's value into nested JSON objects at its dotted name. Creates missing objects.
fn insert(fields: &mut Map<String, Value>, name: &str, value: Value) {
    match name.split_once('.') {
        None => {
            fields.insert(name.to_owned(), value);
        }
        Some((first, rest)) => {
            let below = fields.entry(first).or_insert_with(|| Value::Object(Map::new()));
            if let Value::Object(below) = below {
                insert(below, rest, value);
            }
        }
    }
}
