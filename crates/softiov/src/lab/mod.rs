//! `softiov lab`: experiments in virtual time, listed, run and reported. Left out: everything that an experiment
//! is; that is the crate `lab`'s.

mod calibrate;
mod host;
mod list;
mod report;
mod run;
mod table;
#[cfg(test)]
mod tests;

use std::num::{NonZeroU16, NonZeroUsize};
use std::path::PathBuf;
use std::process::ExitCode;

use lab::catalogue::Catalogue;
use lab::runner::plan::{Assignment, Shard};

/// What to do in the lab.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Command {
    /// The experiments and what can be set.
    List {
        /// JSON instead of text.
        #[arg(long)]
        json: bool,
    },
    /// Run experiments; a row for each point.
    Run(RunArgs),
    /// Show rows as figures and tables: one HTML file, with CSV and JSON beside it.
    Report(ReportArgs),
    /// Fit constants to published values; what is fitted, and what is left over.
    Calibrate(CalibrateArgs),
    /// Measure this machine, and predict SR-IOV and paravirtualized I/O on it.
    Host(HostArgs),
}

/// Which experiments, and how.
#[derive(Debug, clap::Args)]
pub(crate) struct RunArgs {
    /// The experiments, such as fig06, or all.
    #[arg(required = true, value_name = "NAME")]
    names: Vec<String>,
    /// Print rows as JSON, one object a line, in the order of the points.
    #[arg(long)]
    json: bool,
    /// Keep rows in this folder; what is there already with the same inputs is not run again.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    #[command(flatten)]
    how: How,
    /// Hold a parameter at one value, or change a setting. May be given several times.
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<Assignment>,
    /// Take settings from this file, one KEY=VALUE a line; --set has the last word.
    #[arg(long, value_name = "FILE")]
    settings: Option<PathBuf>,
    /// Give rows also of points at which something that was set has no effect.
    #[arg(long)]
    unaffected: bool,
    /// Run only the i-th of n parts.
    #[arg(long, value_name = "I/N")]
    shard: Option<Shard>,
}

/// Which rows, and where to.
#[derive(Debug, clap::Args)]
pub(crate) struct ReportArgs {
    /// The folder that `lab run --out` kept rows in. Without it, all experiments are run first.
    #[arg(long = "in", value_name = "DIR", conflicts_with = "jobs")]
    folder: Option<PathBuf>,
    /// The page; CSV and JSON have the same name with other endings.
    #[arg(long, value_name = "FILE", default_value = "lab-report.html")]
    out: PathBuf,
    /// The seed whose rows are reported, if the folder has several; otherwise as for `lab run`.
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// As for `lab run`.
    #[arg(long, value_name = "N")]
    jobs: Option<NonZeroUsize>,
}

/// What to find out, and where to keep it.
#[derive(Debug, clap::Args)]
pub(crate) struct CalibrateArgs {
    /// Print JSON instead of tables.
    #[arg(long)]
    json: bool,
    /// Keep constants and residuals in this file; the build takes them from crates/lab/data/nehalem.toml. Or what
    /// values hang on; the build takes that of predictions from crates/lab/data/sensitivity.toml.
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Fit nothing; show what each constant, a fifth less and a fifth more, does to values.
    #[arg(long, value_name = "VALUES", num_args = 0..=1, default_missing_value = "targets")]
    sensitivity: Option<Values>,
    /// As for `lab run`.
    #[arg(long, value_name = "N")]
    jobs: Option<NonZeroUsize>,
}

/// What to tell of this machine.
#[derive(Debug, clap::Args)]
pub(crate) struct HostArgs {
    /// Print JSON instead of tables.
    #[arg(long)]
    json: bool,
    /// Keep what was measured in this file, as settings for `lab run --settings`.
    #[arg(long, value_name = "FILE")]
    save: Option<PathBuf>,
    /// As for `lab run`.
    #[arg(long, value_name = "N")]
    jobs: Option<NonZeroUsize>,
}

/// Values that hang on constants.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
pub(crate) enum Values {
    /// What is fitted to.
    Targets,
    /// A number or two of each figure.
    Predictions,
}

/// What a run's rows follow from, and what they do not.
#[derive(Debug, clap::Args)]
struct How {
    /// The same seed gives the same rows.
    #[arg(long, value_name = "N", default_value_t = SEED)]
    seed: u64,
    /// So many seeds, from the first on: a report has means and intervals of them. Takes --out.
    #[arg(long, value_name = "N", requires = "out")]
    seeds: Option<NonZeroU16>,
    /// How many points to run at a time; the rows do not depend on it. As many as there are processors, if not
    /// given.
    #[arg(long, value_name = "N")]
    jobs: Option<NonZeroUsize>,
}

const SEED: u64 = 1;

/// Does it with the experiments there are.
///
/// # Errors
/// It is refused, or a point failed.
pub(crate) fn run(command: &Command) -> anyhow::Result<ExitCode> {
    run_with(&lab::experiments::catalogue(), command)
}

fn run_with(catalogue: &Catalogue, command: &Command) -> anyhow::Result<ExitCode> {
    match command {
        Command::List { json } => list::list(catalogue, *json)?,
        Command::Run(args) => run::run(catalogue, args)?,
        Command::Report(args) => report::report(catalogue, args)?,
        Command::Calibrate(args) => calibrate::calibrate(args)?,
        Command::Host(args) => host::host(args)?,
    }
    Ok(ExitCode::SUCCESS)
}

/// Tells whoever waits what is happening.
fn tell(text: &str) {
    crate::output::tell(format_args!("softiov lab: {text}"));
}

fn jobs(asked: Option<NonZeroUsize>) -> NonZeroUsize {
    asked.or_else(|| std::thread::available_parallelism().ok()).unwrap_or(NonZeroUsize::MIN)
}
