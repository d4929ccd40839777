//! Breach of a rule, as `cargo xtask tidy` prints it. Holds no rules.

use std::fmt;
use std::path::PathBuf;

/// Breach of a tidy rule, with its file and line.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct TidyFinding {
    /// Path of the file that breaks the rule, relative to the workspace.
    pub(super) file: PathBuf,
    pub(super) line: usize,
    pub(super) rule: &'static str,
    pub(super) what: String,
    pub(super) remedy: &'static str,
}

impl fmt::Display for TidyFinding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { file, line, rule, what, remedy } = self;
        write!(f, "{}:{line}: {rule}: {what}\n    remedy: {remedy}", file.display())
    }
}
