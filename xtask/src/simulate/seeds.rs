//! Builds the simulation, runs seeds in processes, and reads their reports.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::sync::Mutex;
use std::thread;

use anyhow::{Context, Result, ensure};

use crate::explore::properties::{self, TestProgram};

/// Test that simulates hosts, with its module.
const TEST: &str = "port::run::tests::simulation::simulated_hosts_keep_their_promises";
/// Name of the figure of simulated time.
pub(super) const TIME: &str = "simulated seconds";
/// Name of the figure of seeds.
const SEEDS: &str = "seeds";
/// Seeds of one process.
const SEEDS_OF_PROCESS: u64 = 50;
/// Seeds of one process of a search that the first fault ends.
const SEEDS_UNTIL_FAULT: u64 = 10;

/// Figures and faults of the seeds so far.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct SimulationReport {
    /// Sums of the figures that the processes print, by their names.
    pub(super) figures: BTreeMap<String, u64>,
    /// Faults, each a line that begins with its seed.
    pub(super) faults: Vec<String>,
}

impl SimulationReport {
    /// Returns the fault of the least seed, and its seeds. Workers end in any order, and each ends the seeds that it has begun.
    pub(super) fn first_fault(&self) -> Option<((u64, u64), &str)> {
        let faults = self.faults.iter().filter_map(|line| Some((seeds_of(line)?, line.as_str())));
        faults.min_by_key(|(seeds, _)| *seeds)
    }

    /// Returns the number of seeds whose figures are in the report.
    fn seeds(&self) -> u64 {
        self.figures.get(SEEDS).copied().unwrap_or(0)
    }

    /// Adds the output of a process: a line of figures, and a line for each fault. Returns true if the report has passed a
    /// hundredth of `all` seeds by it.
    fn add(&mut self, output: &str, all: u64) -> bool {
        let before = self.seeds();
        self.faults.extend(output.lines().filter(|line| line.starts_with("seed ")).map(str::to_owned));
        let figures = output.lines().find_map(|line| line.strip_prefix("simulated: "));
        for figure in figures.into_iter().flat_map(|line| line.split(", ")) {
            if let Some((Ok(value), name)) =
                figure.split_once(' ').map(|(value, name)| (value.parse::<u64>(), name))
            {
                *self.figures.entry(name.to_owned()).or_insert(0u64) += value;
            }
        }
        let hundredths = |seeds: u64| seeds * 100 / all.max(1);
        hundredths(self.seeds()) > hundredths(before)
    }
}

/// Returns the seeds of a fault's line, `seed 7: …` or `seed 7 to 9: …`, from the first to before the end.
fn seeds_of(line: &str) -> Option<(u64, u64)> {
    let (seeds, _) = line.strip_prefix("seed ")?.split_once(':')?;
    let (first, last) = seeds.split_once(" to ").unwrap_or((seeds, seeds));
    Some((first.parse().ok()?, last.parse::<u64>().ok()? + 1))
}

/// Runs the seeds from the first to before `end`, in as many processes at once as there are processors. Prints what is found, and
/// how many seeds have run. In a program with seeded faults, `fault` chooses one or none: prints nothing then, and begins no further process after a seed
/// has failed.
pub(super) fn run_seeds(
    program: &TestProgram,
    (first, end): (u64, u64),
    fault: Option<Option<usize>>,
) -> Result<SimulationReport> {
    let (until_fault, all) = (fault.is_some(), end - first);
    let seeds = if until_fault { SEEDS_UNTIL_FAULT } else { SEEDS_OF_PROCESS };
    let waiting = Mutex::new((first..end).step_by(seeds as usize));
    let report = Mutex::new(SimulationReport::default());
    let work = || -> Result<()> {
        loop {
            // The lock is free again before the process runs.
            let next = waiting.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).next();
            let Some(first) = next else { return Ok(()) };
            let output = simulate(program, (first, seeds.min(end - first)), fault)?;
            let mut report = report.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
            let passed = report.add(&output, all);
            if until_fault && !report.faults.is_empty() {
                return Ok(());
            }
            if !until_fault {
                print_faults(&output);
            }
            if !until_fault && passed {
                println!("{} of {all} seeds, {} failures", report.seeds(), report.faults.len());
            }
        }
    };
    let workers = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| {
        let workers: Vec<_> = (0..workers).map(|_| scope.spawn(work)).collect();
        workers.into_iter().try_for_each(|worker| {
            worker.join().unwrap_or_else(|_| Err(anyhow::anyhow!("a thread that runs seeds panicked")))
        })
    })?;
    Ok(report.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner()))
}

/// Prints the seeds that have failed in a process, and the tests that repeat their faults.
fn print_faults(output: &str) {
    let report = output.lines().skip_while(|line| !line.starts_with("simulated: ")).skip(1);
    let report = report.take_while(|line| *line != "the end of the report");
    report.filter(|line| !line.is_empty()).for_each(|line| println!("{line}"));
}

/// Builds the simulation's test program in a workspace, with these arguments of cargo.
pub(super) fn build(root: &Path, arguments: &[&str]) -> Result<TestProgram> {
    let selection = [arguments, &["--package", "daemon", "--lib"]].concat();
    let programs = properties::built(root, &selection)?;
    programs.into_iter().next().context("cargo has built no test program of the package daemon")
}

/// Runs seeds in one process, and returns its output. A process that ends without figures is a fault of its seeds. Shrinks lives
/// that fail, unless a seeded fault may be the reason.
fn simulate(
    program: &TestProgram,
    (first, count): (u64, u64),
    fault: Option<Option<usize>>,
) -> Result<String> {
    let mut command = Command::new(&program.path);
    command.args(["--exact", TEST, "--nocapture"]).current_dir(&program.folder);
    command.env("SOFTIOV_SEED", first.to_string()).env("SOFTIOV_SEEDS", count.to_string());
    command.env("SOFTIOV_SHRINK", u8::from(fault.is_none()).to_string());
    if let Some(number) = fault.flatten() {
        command.env("SOFTIOV_FAULT", number.to_string());
    }
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
    use super::{SEEDS, SimulationReport, TIME};

    #[test]
    fn first_fault_is_that_of_the_least_seed() {
        let lines =
            ["seed 21: guest 1 is lost", "seed 9 to 11: the process ended", "seed 100: guest 2 is lost"];
        let report =
            SimulationReport { faults: lines.map(str::to_owned).to_vec(), ..SimulationReport::default() };
        assert_eq!(report.first_fault(), Some(((9, 12), lines[1])));
        assert_eq!(SimulationReport::default().first_fault(), None);
    }

    #[test]
    fn simulate_adds_figures_of_all_processes() {
        let mut report = SimulationReport::default();
        let passed = report.add(
            "running 1 test\nsimulated: 50 seeds, 640 simulated seconds, 9 deaths\ntest ... ok\n",
            6_000,
        );
        assert!(!passed, "a hundredth of the seeds is 60");
        assert!(
            report.add(
                "simulated: 10 seeds, 100 simulated seconds, 0 deaths\nseed 57: guest 1 is lost\n",
                6_000
            )
        );
        let figures: Vec<_> = report.figures.iter().map(|(name, value)| (name.as_str(), *value)).collect();
        assert_eq!(figures, [("deaths", 9), (SEEDS, 60), (TIME, 740)]);
        assert_eq!(report.faults, ["seed 57: guest 1 is lost"]);
    }
}
