//! `softiov lab`: lists, runs and reports the experiments of the crate `lab`, which run in virtual time.

mod calibrate;
mod compare;
mod explain;
mod host;
mod list;
mod machine;
mod progress;
mod report;
mod run;
mod table;
#[cfg(test)]
mod tests;

use std::num::{NonZeroU8, NonZeroU16, NonZeroU32, NonZeroUsize};
use std::path::PathBuf;
use std::process::ExitCode;

use compare::LabCompareArgs;
use explain::LabExplainArgs;
use lab::catalogue::ExperimentCatalogue;
use lab::runner::DEFAULT_SEED;
use lab::runner::plan::{RunShard, SettingAssignment};
use lab::runner::sweep::{ParameterSweep, SampledRange};
use machine::LabMachineSubcommand;

/// Subcommands of `softiov lab`.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum LabSubcommand {
    /// List experiments and settings, or describe experiments with the values of their parameters and their metrics.
    List {
        /// Experiments to describe (default: list all, and the settings).
        #[arg(value_name = "NAME")]
        names: Vec<String>,
        /// Print JSON instead of text.
        #[arg(long, conflicts_with = "names")]
        json: bool,
    },
    /// Run experiments and print a row for each point.
    Run(LabRunArgs),
    /// Show where the cycles of a row went by domain, port and category, or what differs between two rows.
    Explain(LabExplainArgs),
    /// Compare two models over all values that papers state: two versions, hypotheses or machines.
    Compare(LabCompareArgs),
    /// List, print and check machine files for `lab run --machine`.
    #[command(subcommand)]
    Machine(LabMachineSubcommand),
    /// Write rows as figures and tables to an HTML file, with CSV and JSON beside it.
    Report(LabReportArgs),
    /// Fit constants to published values, and print constants and residuals.
    Calibrate(LabCalibrateArgs),
    /// Measure this machine, and predict SR-IOV and paravirtualized I/O on it.
    Host(LabHostArgs),
}

/// Arguments of `lab run`.
#[derive(Debug, clap::Args)]
pub(crate) struct LabRunArgs {
    /// Experiments to run, such as fig06, or all.
    #[arg(required = true, value_name = "NAME")]
    names: Vec<String>,
    /// Print rows as JSON, one object per line, in the order of the points.
    #[arg(long)]
    json: bool,
    /// Store rows in this directory; points stored there with the same inputs are not run again.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Write the rows of all seeds as CSV to this file, and units and constants to FILE-columns.csv and
    /// FILE-constants.csv (without the extension of FILE).
    #[arg(long, value_name = "FILE")]
    csv: Option<PathBuf>,
    #[command(flatten)]
    options: LabRunOptions,
    /// Fix a parameter at one value, or change a setting; may be given several times.
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<SettingAssignment>,
    /// Give a parameter several values: KEY=VALUE,VALUE or KEY=FIRST..LAST or KEY=FIRST..LAST:STEP. Several sweeps are
    /// combined.
    #[arg(long, value_name = "KEY=VALUES")]
    sweep: Vec<ParameterSweep>,
    /// Take samples of an integer parameter from a range, KEY=FIRST..LAST, together with those of other such options. A
    /// constant without a range (cost.NAME) has the one that its cost table states.
    #[arg(long, value_name = "KEY[=RANGE]", requires = "samples")]
    sample: Vec<SampledRange>,
    /// Number of samples of the ranges, a Latin hypercube; --seed selects them.
    #[arg(long, value_name = "N", requires = "sample")]
    samples: Option<NonZeroU32>,
    /// Run on the machine of this file (TOML), or on a paper's machine by its name; --set overrides its values.
    #[arg(long, value_name = "FILE|NAME")]
    machine: Option<String>,
    /// Read settings from this file, one KEY=VALUE per line; --set overrides them.
    #[arg(long, value_name = "FILE")]
    settings: Option<PathBuf>,
    /// Print rows also of points on which a changed setting has no effect.
    #[arg(long)]
    unaffected: bool,
    /// Run only the I-th of N parts of the points.
    #[arg(long, value_name = "I/N")]
    shard: Option<RunShard>,
}

/// Arguments of `lab report`.
#[derive(Debug, clap::Args)]
pub(crate) struct LabReportArgs {
    /// Directory where `lab run --out` stored rows (default: run all experiments first).
    #[arg(long = "in", value_name = "DIR", conflicts_with = "jobs")]
    folder: Option<PathBuf>,
    /// HTML file to write; CSV and JSON have the same name with other extensions.
    #[arg(long, value_name = "FILE", default_value = "lab-report.html")]
    out: PathBuf,
    /// Seed whose rows are reported, if the directory has several; otherwise as for `lab run`.
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Points to run at a time (default: the number of processors).
    #[arg(long, value_name = "N")]
    jobs: Option<NonZeroUsize>,
}

/// Arguments of `lab calibrate`.
#[derive(Debug, clap::Args)]
pub(crate) struct LabCalibrateArgs {
    /// Print JSON instead of tables.
    #[arg(long)]
    json: bool,
    /// Store constants and residuals in this file, or with --sensitivity the effects of constants. The build reads
    /// lab/lab/data/nehalem.toml and lab/lab/data/sensitivity.toml (of predictions).
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Show how each constant, at -20 % and at +20 %, changes values; fit nothing.
    #[arg(long, value_name = "VALUES", num_args = 0..=1, default_missing_value = "targets")]
    sensitivity: Option<SensitivityValueKind>,
    #[command(flatten)]
    inputs: LabCalibrationInputs,
    /// Points to run at a time (default: the number of processors).
    #[arg(long, value_name = "N")]
    jobs: Option<NonZeroUsize>,
}

/// Inputs of a calibration other than that of the nehalem table.
#[derive(Debug, clap::Args)]
pub(crate) struct LabCalibrationInputs {
    /// Start from the cost table of this machine file, and run on its machine; or a paper's machine by name.
    #[arg(long, value_name = "FILE|NAME", conflicts_with = "sensitivity")]
    table: Option<String>,
    /// Fit to the targets of this file (TOML) instead of the SR-IOV paper's.
    #[arg(long, value_name = "FILE", conflicts_with = "sensitivity")]
    targets: Option<PathBuf>,
    /// Fit only these knobs: groups by name, or single constants.
    #[arg(long, value_name = "NAMES", value_delimiter = ',', conflicts_with = "sensitivity")]
    knobs: Vec<String>,
    /// Leave a knob, or a constant of a knob, at the value that runs have; may be given several times.
    #[arg(long, value_name = "NAME", conflicts_with = "sensitivity")]
    hold: Vec<String>,
    /// Change a setting in all runs; a constant that is set (cost.NAME=VALUE) is not fitted.
    #[arg(long, value_name = "KEY=VALUE", conflicts_with = "sensitivity")]
    set: Vec<SettingAssignment>,
    /// Run each point with this many seeds, and fit to the means; residuals then have intervals of 95 %. The time grows
    /// in proportion (default: 1).
    #[arg(long, value_name = "N", conflicts_with = "sensitivity")]
    seeds: Option<NonZeroU8>,
    /// Fit again without each target, and print the value that the others predict for it.
    #[arg(long, conflicts_with = "sensitivity")]
    leave_one_out: bool,
    /// Fit the other knobs with this one at five places of its range, and print the residuals; all: each knob in turn.
    #[arg(long, value_name = "KNOB|all", conflicts_with = "sensitivity")]
    profile: Option<String>,
}

/// Arguments of `lab host`.
#[derive(Debug, clap::Args)]
pub(crate) struct LabHostArgs {
    /// Print JSON instead of tables.
    #[arg(long)]
    json: bool,
    /// Store the measurements in this file, as settings for `lab run --settings`.
    #[arg(long, value_name = "FILE")]
    save: Option<PathBuf>,
    /// Points to run at a time (default: the number of processors).
    #[arg(long, value_name = "N")]
    jobs: Option<NonZeroUsize>,
}

/// Kind of values whose dependence on the lab's constants `softiov lab calibrate --sensitivity` shows.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
pub(crate) enum SensitivityValueKind {
    /// Published values that constants are fitted to.
    Targets,
    /// Predictions: up to two numbers of each figure.
    Predictions,
}

/// Options of a run of experiments: seeds and parallelism.
#[derive(Debug, clap::Args)]
struct LabRunOptions {
    /// Seed of random numbers; the same seed gives the same rows.
    #[arg(long, value_name = "N", default_value_t = DEFAULT_SEED)]
    seed: u64,
    /// Number of seeds to run, --seed and those after it: a report shows means and intervals. Needs --out or --csv.
    #[arg(long, value_name = "N")]
    seeds: Option<NonZeroU16>,
    /// Points to run at a time; rows do not depend on it (default: the number of processors).
    #[arg(long, value_name = "N")]
    jobs: Option<NonZeroUsize>,
}

/// Runs a subcommand on the experiments of the crate `lab`.
///
/// # Errors
/// The arguments are refused, or a point failed.
pub(crate) fn run(command: &LabSubcommand) -> anyhow::Result<ExitCode> {
    run_with(&lab::experiments::catalogue(), command)
}

fn run_with(catalogue: &ExperimentCatalogue, command: &LabSubcommand) -> anyhow::Result<ExitCode> {
    match command {
        LabSubcommand::List { names, json } => list::list(catalogue, names, *json)?,
        LabSubcommand::Run(args) => run::run(catalogue, args)?,
        LabSubcommand::Explain(args) => explain::explain(catalogue, args)?,
        LabSubcommand::Compare(args) => compare::compare(catalogue, args)?,
        LabSubcommand::Machine(command) => machine::machine(&catalogue.settings, command)?,
        LabSubcommand::Report(args) => report::report(catalogue, args)?,
        LabSubcommand::Calibrate(args) => calibrate::calibrate(args)?,
        LabSubcommand::Host(args) => host::host(args)?,
    }
    Ok(ExitCode::SUCCESS)
}
