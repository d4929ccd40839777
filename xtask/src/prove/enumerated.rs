//! Runs the tests that try all cases of a small domain, and the models that loom runs in every order.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result};

use super::checker::MANIFEST;
use super::result::BoundResult;
use crate::explore::properties::{self, TestProgram};
use crate::metadata;
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
        finished(&result(program, (test, test), "proved by a test of all cases")?);
    }
    Ok(())
}

/// Builds the models of shared words, runs each with its control, and passes each result to `finished`.
///
/// # Errors
/// If the models do not build.
pub(super) fn check_interleavings(
    root: &Path,
    models: &[(&str, &str, &str)],
    mut finished: impl FnMut(&BoundResult),
) -> Result<()> {
    if models.is_empty() {
        return Ok(());
    }
    let target = format!("--target-dir={}", metadata::target_folder()?.join("proofs").display());
    let package = "--package=softiov-interleavings";
    let manifest = format!("--manifest-path={MANIFEST}");
    let selection = ["--locked", "--release", "--lib", package, manifest.as_str(), target.as_str()];
    let programs = properties::built(root, &selection)?;
    let program = programs.first().context("cargo has built no models")?;
    for (model, control, _) in models {
        finished(&result(program, (model, control), "proved in all orders")?);
    }
    Ok(())
}

/// Runs a test with its control, and returns the result under the test's name.
fn result(program: &TestProgram, (test, control): (&str, &str), proved: &str) -> Result<BoundResult> {
    let began = Instant::now();
    let mut words = proved.to_owned();
    let tests = if test == control { vec![test] } else { vec![test, control] };
    for test in &tests {
        let mut command = Command::new(&program.path);
        let output = command.arg("--exact").arg(test).current_dir(&program.folder).output()?;
        let text = String::from_utf8_lossy(&output.stdout);
        if !text.contains("running 1 test") {
            words = format!("NOT PROVED: {} has no test {test}", program.package);
        } else if !output.status.success() {
            words = format!("REFUTED:\n{text}");
        }
    }
    Ok(BoundResult {
        name: test.rsplit("::").next().unwrap_or_default().to_owned(),
        is_good: words == proved,
        words,
        paths: None,
        seconds: began.elapsed().as_secs_f64(),
    })
}
