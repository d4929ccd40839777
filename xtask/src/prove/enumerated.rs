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
        finished(&result(program, test, &[], "proved by a test of all cases")?);
    }
    Ok(())
}

/// Builds the models of shared atomics, runs each with its controls, and passes each result to `finished`.
///
/// # Errors
/// If the models do not build.
pub(super) fn check_interleavings(
    root: &Path,
    models: &[(&str, &[&str], &str)],
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
    for (model, controls, _) in models {
        finished(&result(program, model, controls, "proved in all orders")?);
    }
    Ok(())
}

/// Settings of loom that would end a model before it has run every order.
const LOOM_LIMITS: [&str; 4] =
    ["LOOM_MAX_PREEMPTIONS", "LOOM_MAX_PERMUTATIONS", "LOOM_MAX_DURATION", "LOOM_CHECKPOINT_FILE"];

/// Runs a test and then its controls up to the first failure, and returns the result under the test's name. A control passes if its
/// model is refuted.
fn result(program: &TestProgram, test: &str, controls: &[&str], proved: &str) -> Result<BoundResult> {
    let began = Instant::now();
    let mut words = failure(program, test, "REFUTED")?;
    for control in controls {
        if words.is_none() {
            words = failure(program, control, &format!("THE CONTROL {control} WAS NOT FOUND"))?;
        }
    }
    Ok(BoundResult {
        name: test.rsplit("::").next().unwrap_or_default().to_owned(),
        is_good: words.is_none(),
        words: words.unwrap_or_else(|| proved.to_owned()),
        paths: None,
        seconds: began.elapsed().as_secs_f64(),
    })
}

/// Runs a test. Returns why it has failed: `what` with its output, or that the program does not have it.
fn failure(program: &TestProgram, test: &str, what: &str) -> Result<Option<String>> {
    let mut command = Command::new(&program.path);
    LOOM_LIMITS.iter().for_each(|limit| {
        command.env_remove(limit);
    });
    let output = command.arg("--exact").arg(test).current_dir(&program.folder).output()?;
    let text = String::from_utf8_lossy(&output.stdout);
    Ok(if !text.contains("running 1 test") {
        Some(format!("NOT PROVED: {} has no test {test}", program.package))
    } else if !output.status.success() {
        Some(format!("{what}:\n{text}"))
    } else {
        None
    })
}
