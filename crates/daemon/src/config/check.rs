//! Errors of a configuration, and checks that several configuration keys share.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// Reason why the host refuses a configuration. A refused configuration changes nothing.
#[derive(Debug, Error)]
pub enum ConfigError {
    /// The configuration file could not be read.
    #[error("cannot read the configuration file {path}: {source}")]
    Read {
        /// Path of the unreadable configuration file.
        path: PathBuf,
        /// Error from the kernel when reading the file.
        source: std::io::Error,
    },
    /// The configuration file is not valid TOML, or has an unknown key or a value of the wrong type.
    #[error("the configuration file {path} is invalid: {message}")]
    Syntax {
        /// Path of the configuration file that cannot be parsed.
        path: PathBuf,
        /// Error of the TOML parser, with line and key.
        message: String,
    },
    /// A value in the configuration is out of range, or conflicts with another value.
    #[error("invalid setting {key}: {problem}")]
    Value {
        /// Key of the invalid value, with the names of its port and VF.
        key: String,
        /// Problem of the value, and its remedy.
        problem: String,
    },
}

/// Creates the error for an invalid value of a configuration key.
pub(super) fn value(key: impl Into<String>, problem: impl Into<String>) -> ConfigError {
    ConfigError::Value { key: key.into(), problem: problem.into() }
}

/// Maximum characters of the name of a port or wire. Socket paths that add "vf63/vf.sock" to the name still fit the
/// kernel's limit.
const MAX_NAME: usize = 32;

/// Values that only one configuration key may have, such as socket paths, each with the key that has the value.
#[derive(Default)]
pub(super) struct UniqueConfigValues(HashMap<String, String>);

impl UniqueConfigValues {
    /// Claims a value for a configuration key, so that no other key may have the same value.
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

/// Checks the characters and the length of a port's or wire's name. The error describes valid names, and continues a
/// message that ends with "is not".
pub(super) fn well_formed(name: &str) -> Result<(), String> {
    let fits = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    if (1..=MAX_NAME).contains(&name.len()) && name.chars().all(fits) {
        return Ok(());
    }
    Err(format!("1 to {MAX_NAME} letters, digits, - or _"))
}

/// Returns an absolute path without doubled slashes, "." and a slash at its end, which may be compared as text. A relative path
/// would depend on the working directory of each command.
pub(super) fn absolute_path(path: &Path, key: &str) -> Result<PathBuf, ConfigError> {
    if path.is_absolute() {
        return Ok(path.components().collect());
    }
    Err(value(key, format!("{} is a relative path; write an absolute path", path.display())))
}
