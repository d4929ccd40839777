//! Names of the tidy rules that have a budget, and a place that breaks one of them. Finds no places.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::metadata;

/// Names of the rules that have a budget, in the order of the table.
pub(super) const RULES: [&str; 7] = [OPENINGS, RIDDLES, TEST_NAMES, TYPE_NAMES, CIRCLES, ARGUMENTS, SOURCES];
/// Name of the rule against summaries that open with a question word or a pronoun.
pub(super) const OPENINGS: &str = "openings";
/// Name of the rule against the phrases of `riddles.txt`.
pub(super) const RIDDLES: &str = "riddles";
/// Name of the rule against test names that are too long or ask a question.
pub(super) const TEST_NAMES: &str = "test_names";
/// Name of the rule against type names that more than two crates define.
pub(super) const TYPE_NAMES: &str = "type_names";
/// Name of the rule against files that import each other in a circle.
pub(super) const CIRCLES: &str = "in_circles";
/// Name of the rule against long argument lists.
pub(super) const ARGUMENTS: &str = "arguments";

/// Name of the rule against registers whose row names no source.
pub(super) const SOURCES: &str = "sources";

/// Place that breaks a rule with a budget.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct BudgetedFinding {
    /// Path of the file with the finding, relative to the workspace.
    pub(super) file: PathBuf,
    pub(super) line: usize,
    pub(super) text: String,
}

/// Number of findings, by crate and rule.
pub(super) type FindingCounts = BTreeMap<(String, &'static str), usize>;

/// Returns the crate that a file belongs to; `pages` for files outside the crates.
pub(super) fn owner(path: &Path) -> String {
    if let Some(name) = metadata::crate_of(path) {
        return name.to_owned();
    }
    match path.iter().next().and_then(|folder| folder.to_str()) {
        Some(name @ ("xtask" | "fuzz" | "proofs")) => name.to_owned(),
        _ => "pages".to_owned(),
    }
}
