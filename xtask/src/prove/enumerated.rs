//! Runs the tests that try all cases of a small domain.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result};

use super::result::BoundResult;
use crate::explore::properties;
use crate::tidy::doors::package_name;

/// Builds the tests' programs, runs the tests, and passes each result to `finished`.
///
/// # Errors
/// If a test does not build or is not in its program.
pub(super) fn check(
    root: &Path,
    tests: &[(&str, &str, &str)],
    mut finished: impl FnMut(&BoundResult),
) -> Result<()> {
    if tests.is_empty() {
        return Ok(());
    }
    let packages: BTreeSet<_> = tests.iter().map(|(package, ..)| *package).collect();
    let selection: Vec<_> =
        packages.iter().map(|package| format!("--package={}", package_name(package))).collect();
    let selection: Vec<_> = ["--lib"].into_iter().chain(selection.iter().map(String::as_str)).collect();
    let programs = properties::built(root, &selection)?;
    for (package, test, _) in tests {
        let program = programs.iter().find(|program| program.package == *package);
        let program = program.with_context(|| format!("{package} has no tests in its library"))?;
        let began = Instant::now();
        let mut command = Command::new(&program.path);
        let output = command.args(["--exact", test]).current_dir(&program.folder).output()?;
        let text = String::from_utf8_lossy(&output.stdout);
        let words = match (output.status.success(), text.contains("running 1 test")) {
            (_, false) => format!("NOT PROVED: {package} has no test {test}"),
            (true, true) => "proved by a test of all cases".to_owned(),
            (false, true) => format!("REFUTED:\n{text}"),
        };
        finished(&BoundResult {
            name: test.rsplit("::").next().unwrap_or_default().to_owned(),
            is_good: words.starts_with("proved"),
            words,
            paths: None,
            seconds: began.elapsed().as_secs_f64(),
        });
    }
    Ok(())
}
