//! Row of a run in the ledger of `docs/simulation-runs.md`.

use anyhow::{Context, Result, ensure};
use std::fmt;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// Mark of a commit whose tree has changes. No commit repeats such a run.
const CHANGED: &str = "+changes";

/// Run of the simulation.
#[derive(Debug)]
pub(super) struct SimulationRun {
    /// Commit of the sources, with [`CHANGED`] behind it if they differ.
    pub(super) commit: String,
    /// First seed.
    pub(super) first: u64,
    /// Number of seeds.
    pub(super) seeds: u64,
    pub(super) simulated_seconds: u64,
    pub(super) failures: usize,
    pub(super) took: Duration,
}

impl SimulationRun {
    pub(super) fn seeds_per_second(&self) -> f64 {
        self.seeds as f64 / self.took.as_secs_f64()
    }
}

/// Prints the row of the ledger.
impl fmt::Display for SimulationRun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { commit, first, seeds, simulated_seconds, failures, .. } = self;
        write!(f, "| {commit} | {first} | {seeds} | {:.1} | {failures} |", *simulated_seconds as f64 / 3600.0)
    }
}

/// Returns the commit of the sources, marked if they have changes.
pub(super) fn commit(root: &Path) -> Result<String> {
    let commit = git(root, &["rev-parse", "--short=8", "HEAD"])?;
    let changes = git(root, &["status", "--porcelain"])?;
    Ok(if changes.is_empty() { commit } else { commit + CHANGED })
}

fn git(root: &Path, arguments: &[&str]) -> Result<String> {
    let output = Command::new("git").args(arguments).current_dir(root).output().context("cannot run git")?;
    ensure!(output.status.success(), "git {} fails: {}", arguments.join(" "), output.status);
    Ok(String::from_utf8(output.stdout)?.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::SimulationRun;
    use std::time::Duration;

    #[test]
    fn row_of_a_run_has_the_columns_of_the_ledger() {
        let run = SimulationRun {
            commit: "80a3bec6".to_owned(),
            first: 1_000,
            seeds: 500,
            simulated_seconds: 5_400,
            failures: 0,
            took: Duration::from_secs(100),
        };
        assert_eq!(run.to_string(), "| 80a3bec6 | 1000 | 500 | 1.5 | 0 |");
        assert_eq!(run.seeds_per_second(), 5.0);
    }
}
