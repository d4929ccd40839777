//! Builds the compiled bounds, and runs the checker on them.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use super::result::BoundResult;
use crate::metadata;
use crate::tidy::proofs::CompiledBound;

/// Manifest of the bounds, a workspace of its own.
pub(super) const MANIFEST: &str = "proofs/Cargo.toml";

/// Builds the library, checks the bounds, and passes each result to `finished`. `limits` are the number of bounds at the same
/// time, and the most seconds for each.
///
/// # Errors
/// If the library does not build, or the checker ends without a result for each bound.
pub(super) fn check(
    root: &Path,
    (python, limits): (&Path, [u16; 2]),
    bounds: &[CompiledBound],
    mut finished: impl FnMut(&BoundResult),
) -> Result<()> {
    let library = build(root)?;
    let mut command = Command::new(python);
    command.arg(root.join("proofs/check.py")).arg(&library);
    command.args(limits.map(|limit| limit.to_string()));
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
    let list: Vec<_> =
        bounds.iter().map(|bound| json!({"name": bound.name, "numbers": bound.numbers})).collect();
    let mut input = child.stdin.take().context("the checker has no standard input")?;
    input.write_all(json!(list).to_string().as_bytes())?;
    drop(input);
    let output = child.stdout.take().context("the checker has no standard output")?;
    let mut results = 0;
    for line in BufReader::new(output).lines() {
        let line: Value = serde_json::from_str(&line?).context("the checker printed no JSON")?;
        let result = BoundResult::of_checker(&line, bounds);
        finished(&result.with_context(|| format!("unexpected result of the checker: {line}"))?);
        results += 1;
    }
    let status = child.wait()?;
    let all = bounds.len();
    ensure!(results == all, "the checker ended after {results} of {all} bounds: {status}");
    Ok(())
}

/// Builds the library of the bounds, with the settings of its manifest, and returns its path.
fn build(root: &Path) -> Result<PathBuf> {
    let target = metadata::target_folder()?.join("proofs");
    let mut command = metadata::cargo();
    command.args(["build", "--quiet", "--locked", "--release", "--manifest-path", MANIFEST, "--target-dir"]);
    let status = command.arg(&target).current_dir(root).status()?;
    ensure!(status.success(), "the bounds do not build");
    Ok(target.join("release/libsoftiov_proofs.so"))
}
