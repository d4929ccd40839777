//! Runs the tests of a package under a checker.

use std::fmt;
use std::path::Path;
use std::time::Instant;

use anyhow::{Context, Result};

use super::checker::Checker;
use super::skipped::skipped;
use crate::tidy::doors::package_name;

/// Result of a package's tests under a checker.
#[derive(Debug)]
pub(super) struct PackageResult {
    package: &'static str,
    skipped: usize,
    /// The last lines of the test programs.
    summary: String,
    seconds: f64,
    /// Output of a run that failed.
    pub(super) failure: Option<String>,
}

impl fmt::Display for PackageResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { package, skipped, summary, seconds, .. } = self;
        write!(f, "{package:<10} {seconds:>7.0} s  {skipped} skipped by the table  {summary}")
    }
}

/// Builds a package's tests with the checker, and runs them but those of the table of skipped tests.
pub(super) fn run(root: &Path, checker: Checker, package: &'static str) -> Result<PackageResult> {
    let skipped = skipped(checker, package);
    let mut command = checker.test(root, &package_name(package));
    command.args(["--", "--exact"]).args(skipped.iter().flat_map(|test| ["--skip", test.path]));
    let began = Instant::now();
    let output = command.current_dir(root).output().context("cannot run cargo")?;
    let (text, errors) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    let summaries: Vec<_> = text.lines().filter(|line| line.starts_with("test result: ")).collect();
    let summary = if summaries.is_empty() { "no test has run".to_owned() } else { summaries.join("; ") };
    Ok(PackageResult {
        package,
        skipped: skipped.len(),
        summary,
        seconds: began.elapsed().as_secs_f64(),
        failure: (!output.status.success()).then(|| format!("{text}\n{errors}\n")),
    })
}
