//! Errors of a configuration, and checks that several parts of it share.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// Why a configuration is refused. Nothing has been changed then.
#[derive(Debug, Error)]
pub enum ConfigError {
    /// The file could not be read.
    #[error("cannot read {path}: {source}")]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The file is not what a configuration looks like; the message names place and key.
    #[error("{path}: {message}")]
    Syntax {
        /// The file.
        path: PathBuf,
        /// What and where.
        message: String,
    },
    /// A value makes no sense.
    #[error("{key}: {problem}")]
    Value {
        /// The key, with the port and VF it stands in.
        key: String,
        /// What is wrong, and what would be right.
        problem: String,
    },
}

/// Refuses the value of a key.
pub(super) fn value(key: impl Into<String>, problem: impl Into<String>) -> ConfigError {
    ConfigError::Value { key: key.into(), problem: problem.into() }
}

/// Longest name: with "vf63/vf.sock" it still fits anywhere.
const MAX_NAME: usize = 32;

/// Values that may be given once only, with the key that gave them.
#[derive(Default)]
pub(super) struct Unique(HashMap<String, String>);

impl Unique {
    /// Takes a value for a key.
    ///
    /// # Errors
    /// [`ConfigError::Value`] if another key has it.
    pub(super) fn claim(&mut self, kind: &str, what: &str, key: &str) -> Result<(), ConfigError> {
        match self.0.insert(format!("{kind} {what}"), key.to_owned()) {
            Some(other) => Err(value(key, format!("{kind} {what} is also given to {other}; choose another"))),
            None => Ok(()),
        }
    }
}

/// Checks the name of a port or wire.
pub(super) fn well_formed(name: &str) -> Result<(), String> {
    let fits = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    if (1..=MAX_NAME).contains(&name.len()) && name.chars().all(fits) {
        return Ok(());
    }
    Err(format!("1 to {MAX_NAME} letters, digits, - or _"))
}

/// Checks that a path is absolute: a relative one would mean another place for each command that reads it.
pub(super) fn check_absolute(path: &Path, key: &str) -> Result<(), ConfigError> {
    if path.is_absolute() {
        return Ok(());
    }
    Err(value(key, format!("{} is a relative path; write it from / on", path.display())))
}
