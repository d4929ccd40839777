//! `cargo xtask simulate`: builds the simulation of hosts (`docs/decisions/46-simulated-host.md`) for release, and runs many
//! seeds, in as many processes at once as there are processors.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, ExitCode};
use std::sync::Mutex;
use std::thread;

use anyhow::{Context, Result, ensure};

use crate::explore::properties::{self, TestProgram};
use crate::metadata;

/// Test that simulates hosts, with its module.
const TEST: &str = "port::run::tests::simulation::simulated_hosts_keep_their_promises";
/// Seeds of one process.
const SEEDS_OF_PROCESS: u64 = 50;

/// Arguments of `cargo xtask simulate`.
#[derive(Debug, clap::Args)]
pub(crate) struct SimulateArgs {
    /// Number of seeds to run.
    #[arg(long, value_name = "N", default_value_t = 1_000, value_parser = clap::value_parser!(u64).range(1..))]
    seeds: u64,
    /// First seed; the others count up from it. With `--seeds 1`, repeats one seed.
    #[arg(long, value_name = "S", default_value_t = 0)]
    seed: u64,
}

/// Figures and faults of the seeds so far.
#[derive(Debug, Default, PartialEq, Eq)]
struct SimulationReport {
    /// Sums of the figures that the processes print, by their names.
    figures: BTreeMap<String, u64>,
    /// Faults, each a line that begins with its seed.
    faults: Vec<String>,
}

impl SimulationReport {
    /// Adds the output of a process: a line of figures, and a line for each fault.
    fn add(&mut self, output: &str) {
        self.faults.extend(output.lines().filter(|line| line.starts_with("seed ")).map(str::to_owned));
        let figures = output.lines().find_map(|line| line.strip_prefix("simulated: "));
        for figure in figures.into_iter().flat_map(|line| line.split(", ")) {
            if let Some((Ok(value), name)) =
                figure.split_once(' ').map(|(value, name)| (value.parse::<u64>(), name))
            {
                *self.figures.entry(name.to_owned()).or_insert(0u64) += value;
            }
        }
    }
}

/// Runs the seeds, and prints faults as they are found and the figures at the end.
///
/// # Errors
/// If the simulation does not build, or its process cannot be started.
pub(crate) fn run(options: &SimulateArgs) -> Result<ExitCode> {
    let root = metadata::workspace_root()?;
    let program = build(&root)?;
    let end = options.seed.checked_add(options.seeds).context("the last seed is too large")?;
    let waiting = Mutex::new((options.seed..end).step_by(SEEDS_OF_PROCESS as usize));
    let report = Mutex::new(SimulationReport::default());
    let work = || -> Result<()> {
        loop {
            // The lock is free again before the process runs.
            let next = waiting.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).next();
            let Some(first) = next else { return Ok(()) };
            let output = simulate(&program, first, SEEDS_OF_PROCESS.min(end - first))?;
            output.lines().filter(|line| line.starts_with("seed ")).for_each(|line| println!("{line}"));
            report.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).add(&output);
        }
    };
    let workers = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| {
        let workers: Vec<_> = (0..workers).map(|_| scope.spawn(work)).collect();
        workers.into_iter().try_for_each(|worker| {
            worker.join().unwrap_or_else(|_| Err(anyhow::anyhow!("a thread that runs seeds panicked")))
        })
    })?;
    let SimulationReport { figures, faults } =
        report.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner());
    let figures: Vec<_> = figures.iter().map(|(name, value)| format!("{value} {name}")).collect();
    println!("{}; {} failures", figures.join(", "), faults.len());
    if faults.is_empty() {
        return Ok(ExitCode::SUCCESS);
    }
    println!("repeat one with `cargo xtask simulate --seeds 1 --seed N`");
    Ok(ExitCode::FAILURE)
}

/// Builds the simulation's test program.
fn build(root: &Path) -> Result<TestProgram> {
    let programs = properties::built(root, &["--release", "--package", "daemon", "--lib"])?;
    programs.into_iter().next().context("cargo has built no test program of the package daemon")
}

/// Runs seeds in one process, and returns its output. A process that ends without figures is a fault of its seeds.
fn simulate(program: &TestProgram, first: u64, count: u64) -> Result<String> {
    let mut command = Command::new(&program.path);
    command.args(["--exact", TEST, "--nocapture"]).current_dir(&program.folder);
    command.env("SOFTIOV_SEED", first.to_string()).env("SOFTIOV_SEEDS", count.to_string());
    let output = command.output().with_context(|| format!("cannot run {}", program.path.display()))?;
    let text = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    ensure!(text.contains("running 1 test"), "the simulation is no longer the test {TEST}");
    let mut text = text.into_owned();
    if !text.contains("\nsimulated: ") {
        let last = first + count - 1;
        text += &format!("\nseed {first} to {last}: the process ended without figures: {}\n", output.status);
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::SimulationReport;

    #[test]
    fn simulate_adds_figures_of_all_processes() {
        let mut report = SimulationReport::default();
        report.add("running 1 test\nsimulated: 50 seeds, 640 seconds, 9 deaths\ntest ... ok\n");
        report.add("simulated: 10 seeds, 100 seconds, 0 deaths\nseed 57: guest 1 is lost\n");
        let figures: Vec<_> = report.figures.iter().map(|(name, value)| (name.as_str(), *value)).collect();
        assert_eq!(figures, [("deaths", 9), ("seconds", 740), ("seeds", 60)]);
        assert_eq!(report.faults, ["seed 57: guest 1 is lost"]);
    }
}
