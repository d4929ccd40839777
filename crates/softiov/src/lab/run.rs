//! `softiov lab run`: prints rows to standard output, and progress and a summary to standard error.

use std::collections::BTreeSet;
use std::fs;
use std::io::{self, ErrorKind};
use std::num::{NonZeroU16, NonZeroU32};
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use lab::catalogue::ExperimentCatalogue;
use lab::dataset::ResultDataset;
use lab::experiment::ExperimentPoint;
use lab::experiments::why_nothing;
use lab::row::ResultRow;
use lab::runner::notes;
use lab::runner::plan::{ExperimentSelection, SettingAssignment};
use lab::runner::progress::RunProgress;
use lab::runner::store::StoredResultRow;
use lab::runner::sweep::{ParameterSweep, latin_hypercube};
use lab::runner::{self, ExperimentOptions, LabError, RunObserver, RunResult};

use super::LabRunArgs;
use super::machine::read_checked;
use super::progress::{jobs, print_progress};
use super::table::TextTable;
use crate::output;

/// Setting that names the cost table of a run.
const TABLE: &str = "table";

pub(super) fn run(catalogue: &ExperimentCatalogue, args: &LabRunArgs) -> anyhow::Result<()> {
    if args.options.seeds.is_some() && args.out.is_none() && args.csv.is_none() {
        bail!("--seeds needs a place for the rows of each seed: add --out DIR or --csv FILE");
    }
    if let Some(file) = &args.csv {
        ResultDataset::paths(file).iter().try_for_each(|path| output::check_writable(path))?;
    }
    check_set_once(&args.set)?;
    let values = RunValues::read(catalogue, args)?;
    let seeds = args.options.seeds.map_or(1, NonZeroU16::get);
    let mut records = Vec::new();
    let mut outcome = Ok(());
    for more in 0..u64::from(seeds) {
        outcome = run_seed(catalogue, args, &values, args.options.seed.wrapping_add(more), &mut records);
        if outcome.is_err() {
            break;
        }
    }
    for note in without_effect(&records) {
        print_progress(&note);
    }
    if let Some(file) = args.csv.as_deref().filter(|_| !records.is_empty()) {
        let dataset = ResultDataset::new(catalogue, &records, args.unaffected);
        dataset.write(file).with_context(|| format!("cannot write the rows to {}", file.display()))?;
    }
    outcome
}

/// Most names in a note about a machine file.
const MOST_NAMES: usize = 12;

/// Returns a line for each experiment whose rows do not depend on values of the machine file, or on the seed.
fn without_effect(records: &[StoredResultRow]) -> Vec<String> {
    let unread = notes::unread_values(records).into_iter().map(|(experiment, names)| {
        let more = names.len().saturating_sub(MOST_NAMES);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        let names = names[..names.len().min(MOST_NAMES)].join(", ");
        format!("{experiment} does not read these values of the machine file, and its rows lack them: {names}{more}")
    });
    let equal = notes::equal_for_all_seeds(records).into_iter().map(|experiment| {
        format!(
            "{experiment} has equal rows for all seeds; an interval of 0 is no measure of its uncertainty"
        )
    });
    unread.chain(equal).collect()
}

/// Refuses a parameter that two `--set` options give, since only the last one would count.
fn check_set_once(set: &[SettingAssignment]) -> anyhow::Result<()> {
    for (at, SettingAssignment { key, value }) in set.iter().enumerate() {
        if let Some(first) = set[..at].iter().find(|other| other.key == *key) {
            let first = &first.value;
            bail!(
                "`{key}` is set twice, to {first} and {value}; give it once, or --sweep {key}={first},{value}"
            );
        }
    }
    Ok(())
}

/// Values of axes and settings that the runs of all seeds share.
struct RunValues {
    set: Vec<SettingAssignment>,
    sweep: Vec<ParameterSweep>,
    machine: Vec<SettingAssignment>,
}

impl RunValues {
    /// Reads the files that the arguments name, and takes the samples. All seeds have the same samples.
    fn read(catalogue: &ExperimentCatalogue, args: &LabRunArgs) -> anyhow::Result<Self> {
        let machine = args.machine.as_deref().map(|machine| read_checked(machine, &catalogue.settings));
        let machine = machine.transpose()?.map(|file| file.values).unwrap_or_default();
        let set = [read_settings(args.settings.as_deref())?, args.set.clone()].concat();
        let table = machine.iter().chain(&set).rfind(|value| value.key == TABLE);
        let table = table.map(|value| value.value.as_str());
        let samples = args.samples.map_or(1, NonZeroU32::get);
        let sampled = latin_hypercube(&args.sample, table, samples, args.options.seed)?;
        Ok(Self { sweep: [args.sweep.clone(), sampled].concat(), set, machine })
    }
}

/// Runs the experiments with one seed, prints their rows, and appends the rows to `records`.
fn run_seed(
    catalogue: &ExperimentCatalogue,
    args: &LabRunArgs,
    values: &RunValues,
    seed: u64,
    records: &mut Vec<StoredResultRow>,
) -> anyhow::Result<()> {
    let options = ExperimentOptions {
        seed,
        jobs: jobs(args.options.jobs),
        shard: args.shard,
        set: values.set.clone(),
        sweep: values.sweep.clone(),
        machine: values.machine.clone(),
        unaffected: args.unaffected,
        out: args.out.clone(),
    };
    let outcome = run_with_progress(catalogue, &selection(&args.names), &options, args.json);
    let run = match &outcome {
        Ok(run) => run,
        Err(error) => match error.downcast_ref() {
            Some(LabError::Failed { run, .. }) => run,
            _ => return outcome.map(drop),
        },
    };
    records.extend_from_slice(&run.records);
    if !args.json && !run.records.is_empty() {
        output::print(&tables(run))?;
    }
    outcome.map(drop)
}

/// Reads the lab's settings from a file; lines that begin with # are comments.
fn read_settings(file: Option<&Path>) -> anyhow::Result<Vec<SettingAssignment>> {
    let Some(file) = file else { return Ok(Vec::new()) };
    let text = fs::read_to_string(file)
        .with_context(|| format!("cannot read the settings file {}", file.display()))?;
    let lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    let parse = |line: &str| {
        line.parse().with_context(|| format!("settings file {}: invalid setting {line:?}", file.display()))
    };
    lines.map(parse).collect()
}

fn selection(names: &[String]) -> ExperimentSelection {
    if names == ["all"] { ExperimentSelection::All } else { ExperimentSelection::Names(names.to_vec()) }
}

/// Runs experiments, and prints their progress and a summary on standard error.
pub(super) fn run_with_progress(
    catalogue: &ExperimentCatalogue,
    selection: &ExperimentSelection,
    options: &ExperimentOptions,
    json: bool,
) -> anyhow::Result<RunResult> {
    let mut watcher = ExperimentPrinter { progress: RunProgress::default(), json, reader_gone: false };
    let begun = Instant::now();
    let outcome = runner::run(catalogue, selection, options, &mut watcher);
    watcher.progress.finish();
    if watcher.reader_gone {
        return Err(output::StdoutClosed.into());
    }
    let run = outcome?;
    for row in run.records.iter().map(|record| &record.row) {
        if let Some(why) = why_nothing(row) {
            print_progress(&format!("{} {}: no result: {why}", row.experiment, row.params));
        }
    }
    print_progress(&summary(&run, begun.elapsed()));
    Ok(run)
}

/// Returns a run's summary line: number of rows, and simulated time relative to real time.
pub(super) fn summary(run: &RunResult, took: Duration) -> String {
    let (seconds, simulated) = (took.as_secs_f64(), run.simulated_ps as f64 / 1e12);
    let mut text = format!("{} rows", run.records.len());
    if run.reused > 0 {
        text += &format!(", {} of them stored before", run.reused);
    }
    if run.reused < run.records.len() && seconds > 0.0 {
        let (speed, rate) = (simulated / seconds, run.events as f64 / seconds / 1e6);
        text += &format!(
            "; {simulated:.1} s simulated in {seconds:.1} s: {speed:.2} times real time, {rate:.2} M events/s"
        );
    }
    text
}

/// Printer of an experiment run's progress, and of its rows in order as they become available.
struct ExperimentPrinter {
    progress: RunProgress,
    json: bool,
    /// True if standard output has lost its reader.
    reader_gone: bool,
}

impl RunObserver for ExperimentPrinter {
    fn planned(&mut self, points: usize) {
        self.progress.planned(points);
    }

    fn done(&mut self, point: &ExperimentPoint) {
        self.progress.done(point);
    }

    fn row(&mut self, row: &ResultRow) -> io::Result<()> {
        if !self.json {
            return Ok(());
        }
        let line = row.to_json() + "\n";
        let printed = self.progress.aside(|| output::try_print(&line));
        self.reader_gone |= printed.as_ref().is_err_and(|error| error.kind() == ErrorKind::BrokenPipe);
        printed
    }
}

/// Returns the rows of a run as text, in a table for each experiment. If all rows of a table have many equal settings
/// beside the axes, such as those of a machine file, a line above the table has them instead of columns.
pub(super) fn tables(run: &RunResult) -> String {
    let rows: Vec<_> = run.records.iter().map(|record| &record.row).collect();
    let tables = rows.chunk_by(|one, next| one.experiment == next.experiment).map(table);
    tables.collect::<Vec<_>>().join("\n")
}

fn table(rows: &[&ResultRow]) -> String {
    // A row lacks a swept setting that has its default there.
    let mut params: Vec<_> = rows.iter().flat_map(|row| row.params.names()).collect();
    let mut known = BTreeSet::new();
    params.retain(|name| known.insert(*name));
    let common = common_settings(rows, &params);
    params.retain(|name| !common.contains(name));
    let metrics: Vec<_> = rows[0].metrics.names().collect();
    let name = [rows[0].experiment.as_str()];
    let heading = [&name, params.as_slice(), &metrics].concat();
    let mut table = TextTable::new(heading.into_iter().map(str::to_owned).collect(), 1);
    for row in rows {
        let params = params.iter().map(|name| row.params.get(name).map(ToString::to_string));
        let metrics = metrics.iter().map(|name| row.metrics.get(name).map(ToString::to_string));
        let cells = params.chain(metrics).map(Option::unwrap_or_default);
        table.row(std::iter::once(String::new()).chain(cells).collect());
    }
    let equal = common.iter().filter_map(|name| Some(format!(" {name}={}", rows[0].params.get(name)?)));
    let equal = equal.collect::<String>();
    if equal.is_empty() { table.to_string() } else { format!("settings of all rows:{equal}\n{table}") }
}

/// Most settings that all rows share and that are columns of a table.
const MOST_EQUAL_COLUMNS: usize = 4;

/// Returns the dotted settings (of a machine or a cost table) that are equal in all rows, if there are many.
fn common_settings<'a>(rows: &[&ResultRow], params: &[&'a str]) -> Vec<&'a str> {
    let is_equal = |name: &&str| rows.iter().all(|row| row.params.get(name) == rows[0].params.get(name));
    let equal: Vec<_> = params.iter().copied().filter(|name| name.contains('.')).filter(is_equal).collect();
    if equal.len() > MOST_EQUAL_COLUMNS { equal } else { Vec::new() }
}
