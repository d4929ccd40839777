//! `cargo xtask fuzz`: builds the fuzz targets (`fuzz/fuzz_targets`) with libFuzzer, runs them, and prints a table. It needs
//! no cargo-fuzz.

mod build;
mod coverage;
mod drivers;
mod keep;
mod report;
mod session;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Mutex;
use std::thread;

use anyhow::{Result, ensure};

use crate::metadata;
use report::TargetReport;
use session::FuzzFolders;

/// Arguments of `cargo xtask fuzz`.
#[derive(Debug, clap::Args)]
pub(crate) struct FuzzArgs {
    /// Targets to run. Default: all.
    #[arg(value_name = "TARGET")]
    targets: Vec<String>,
    /// Time for each target in seconds.
    #[arg(long, value_name = "N", default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..))]
    seconds: u64,
    /// Targets that run at once. Default: one for each processor.
    #[arg(long, value_name = "J", value_parser = clap::value_parser!(u16).range(1..))]
    jobs: Option<u16>,
    /// Have the fuzzer learn the values of comparisons too. It finds inputs with magic numbers sooner, and runs most targets two to
    /// five times slower.
    #[arg(long, conflicts_with = "coverage")]
    comparisons: bool,
    /// Print the targets, and run none.
    #[arg(long)]
    list: bool,
    /// Print the table as JSON.
    #[arg(long)]
    json: bool,
    /// Replace the kept corpora of these targets (`fuzz/corpus`) by some small inputs that reach the most code. Runs no
    /// target.
    #[arg(long)]
    keep: bool,
    /// Run the corpora that earlier runs have found, and print which functions of the product they reach, by crate. Fuzzes
    /// nothing. Needs LLVM's tools: `rustup component add llvm-tools --toolchain nightly`.
    #[arg(long, conflicts_with = "keep")]
    coverage: bool,
    /// Choose the inputs of stock drivers (`fuzz/corpus/drivers`) among the present ones and those of the recordings in a folder,
    /// which the checks with Linux guests write with `SOFTIOV_RECORD_DRIVERS=FOLDER`. Fuzzes nothing.
    #[arg(long, value_name = "FOLDER", conflicts_with_all = ["keep", "coverage"])]
    drivers: Option<PathBuf>,
}

/// Runs fuzz targets, and prints what they reached and the crashes.
///
/// # Errors
/// If a target is unknown, the targets do not build, or a process cannot be started.
pub(crate) fn run(options: &FuzzArgs) -> Result<ExitCode> {
    let root = metadata::workspace_root()?;
    let mut targets = chosen(&root, &options.targets)?;
    if options.list {
        targets.iter().for_each(|target| println!("{target}"));
        return Ok(ExitCode::SUCCESS);
    }
    if options.coverage {
        coverage::report(&root, &targets, options.json)?;
        return Ok(ExitCode::SUCCESS);
    }
    if options.drivers.is_some() {
        targets.retain(|target| drivers::has_inputs(target));
    }
    let programs = build::build(&root, &targets, options.comparisons)?;
    let folders = FuzzFolders { root: &root, programs: &programs };
    if options.keep {
        targets.iter().try_for_each(|target| keep::keep(&folders, target))?;
        return Ok(ExitCode::SUCCESS);
    }
    if let Some(recordings) = &options.drivers {
        targets.iter().try_for_each(|target| drivers::keep_inputs(&folders, target, recordings))?;
        return Ok(ExitCode::SUCCESS);
    }
    let waiting = Mutex::new(targets.iter());
    let reports = Mutex::new(Vec::new());
    let work = || -> Result<()> {
        loop {
            // The lock is free again before the target runs.
            let next = waiting.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).next();
            let Some(target) = next else { return Ok(()) };
            let report = session::run(&folders, target, options.seconds, options.json)?;
            reports.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).push(report);
        }
    };
    let processors = thread::available_parallelism().map_or(1, usize::from);
    let jobs = options.jobs.map_or(processors, usize::from).min(targets.len());
    thread::scope(|scope| {
        let workers: Vec<_> = (0..jobs).map(|_| scope.spawn(work)).collect();
        workers.into_iter().try_for_each(|worker| {
            worker.join().unwrap_or_else(|_| Err(anyhow::anyhow!("a thread that runs targets panicked")))
        })
    })?;
    let mut reports = reports.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner());
    reports.sort_by(|a: &TargetReport, b| a.target.cmp(&b.target));
    print!("{}", if options.json { report::json(&reports) } else { report::table(&reports) });
    let failed = reports.iter().any(|report| report.crash.is_some());
    Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// Returns the wanted fuzz targets, all without a wish, in the order of their names.
fn chosen(root: &Path, wanted: &[String]) -> Result<Vec<String>> {
    let packages = metadata::members(&root.join("fuzz/Cargo.toml"))?;
    let programs = packages.iter().flat_map(|package| &package.targets).filter(|target| target.kind == "bin");
    let mut all: Vec<String> = programs.map(|target| target.name.clone()).collect();
    all.sort();
    let unknown = wanted.iter().find(|wanted| !all.contains(wanted));
    ensure!(
        unknown.is_none(),
        "unknown fuzz target {}: one of {}",
        unknown.map_or("", String::as_str),
        all.join(", ")
    );
    all.retain(|target| wanted.is_empty() || wanted.contains(target));
    Ok(all)
}
