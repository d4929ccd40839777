//! Remedies: what keeps an attack from harming others, and what an administrator can set against it.

use serde::Serialize;
use std::fmt;

/// Remedy of cases on one part of the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Remedy {
    /// Action of the host.
    pub host: &'static str,
    /// Setting with which an administrator limits or ends the attack, or `None` if there is nothing to set.
    pub setting: Option<&'static str>,
    /// File to look at if a case fails.
    pub code: &'static str,
}

impl Remedy {
    /// Creates a remedy without a setting.
    pub(crate) const fn new(host: &'static str, code: &'static str) -> Self {
        Self { host, setting: None, code }
    }

    /// Returns the remedy with a setting.
    pub(crate) const fn or_set(self, setting: &'static str) -> Self {
        Self { setting: Some(setting), ..self }
    }
}

impl fmt::Display for Remedy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.host)?;
        self.setting.map_or(Ok(()), |setting| write!(f, "; set {setting}"))
    }
}
