//! `cargo xtask simulate`: builds the simulation of hosts (`docs/decisions/46-simulated-host.md`) for release, and runs many
//! seeds, in as many processes at once as there are processors. `--mutants` tests the simulation itself.

mod faults;
mod ledger;
mod mutants;
mod seeds;

use std::process::ExitCode;

use anyhow::{Context, Result};

use crate::metadata;
use ledger::SimulationRun;
use seeds::SimulationReport;
use std::time::Instant;

/// Arguments of `cargo xtask simulate`.
#[derive(Debug, clap::Args)]
pub(crate) struct SimulateArgs {
    /// Number of seeds to run.
    #[arg(long, value_name = "N", default_value_t = 1_000, value_parser = clap::value_parser!(u64).range(1..))]
    seeds: u64,
    /// First seed; the others count up from it. With `--seeds 1`, repeats one seed.
    #[arg(long, value_name = "S", default_value_t = 0)]
    seed: u64,
    /// Seeds known faults in a copy of the sources instead, one at a time, and tells which of them the seeds find. With NAME, only
    /// the faults whose names contain it.
    #[arg(long, value_name = "NAME", num_args = 0..=1, default_missing_value = "")]
    mutants: Option<String>,
}

/// Runs the seeds, and prints faults as they are found and the figures at the end.
///
/// # Errors
/// If the simulation does not build, or its process cannot be started.
pub(crate) fn run(options: &SimulateArgs) -> Result<ExitCode> {
    let root = metadata::workspace_root()?;
    let end = options.seed.checked_add(options.seeds).context("the last seed is too large")?;
    if let Some(only) = &options.mutants {
        return mutants::run(&root, (options.seed, end), only);
    }
    // Before the build: the tree may change during a run of hours.
    let commit = ledger::commit(&root)?;
    let program = seeds::build(&root, &["--release"])?;
    let began = Instant::now();
    let SimulationReport { figures, faults } = seeds::run_seeds(&program, (options.seed, end), None)?;
    let run = SimulationRun {
        commit,
        first: options.seed,
        seeds: options.seeds,
        simulated_seconds: figures.get(seeds::TIME).copied().unwrap_or(0),
        failures: faults.len(),
        took: began.elapsed(),
    };
    let figures: Vec<_> = figures.iter().map(|(name, value)| format!("{value} {name}")).collect();
    println!("{}; {} failures", figures.join(", "), faults.len());
    println!("{:.1} seeds a second, commit {}", run.seeds_per_second(), run.commit);
    println!("row for docs/simulation-runs.md:\n{run}");
    if faults.is_empty() {
        return Ok(ExitCode::SUCCESS);
    }
    println!("repeat one with `cargo xtask simulate --seeds 1 --seed N`");
    Ok(ExitCode::FAILURE)
}
