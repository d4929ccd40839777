//! A setting and its values, whatever thing it is of. Left out: the settings of ports and VFs.

use policy::PolicyError;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use thiserror::Error;

/// Values by the setting's name, such as `vlan` or `storm.broadcast`.
pub type Leaves = BTreeMap<String, Value>;

/// A value that makes no sense.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{key}: {problem}")]
pub struct SettingError {
    /// The setting.
    pub key: &'static str,
    /// What is wrong, and what would be right.
    pub problem: String,
}

/// The setting whose policy is refused.
impl From<PolicyError> for SettingError {
    fn from(error: PolicyError) -> Self {
        Self { key: error.setting(), problem: error.to_string() }
    }
}

/// Refuses the value of a setting.
pub(super) fn refuse<T>(key: &'static str, problem: impl Into<String>) -> Result<T, SettingError> {
    Err(SettingError { key, problem: problem.into() })
}

/// Settings of one thing. A field that is not set says nothing.
pub trait Settings: Serialize + DeserializeOwned + Default {
    /// How many levels of names lie below a field, before its single values. 0: the field is one value.
    fn depth(field: &str) -> usize;

    /// The values that are set, each under its name, such as `vlan` or `storm.broadcast`.
    #[must_use]
    fn leaves(&self) -> Leaves {
        let mut leaves = Leaves::new();
        if let Ok(Value::Object(fields)) = serde_json::to_value(self) {
            for (field, value) in fields {
                let depth = Self::depth(&field);
                collect(&mut leaves, field, value, depth);
            }
        }
        leaves
    }

    /// Settings with these values.
    ///
    /// # Errors
    /// A name that is no setting's, or a value of the wrong type.
    fn from_leaves(leaves: &Leaves) -> Result<Self, serde_json::Error> {
        let mut fields = Map::new();
        for (name, value) in leaves {
            insert(&mut fields, name, value.clone());
        }
        serde_json::from_value(Value::Object(fields))
    }
}

fn collect(leaves: &mut Leaves, name: String, value: Value, depth: usize) {
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
