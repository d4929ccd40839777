//! `softiov lab explain`: prints where the cycles of a row went, or what differs between two rows.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context;
use lab::catalogue::ExperimentCatalogue;
use lab::explain::lines::{BreakdownDetail, BreakdownLine, OtherRowValues, lines};
use lab::explain::selector::RowSelector;
use lab::explain::{ExplainedRow, explain as explain_row, graph, to_json};
use lab::runner::DEFAULT_SEED;

use super::machine::read_checked;
use super::table::TextTable;
use crate::output;

/// Arguments of `lab explain`.
#[derive(Debug, clap::Args)]
pub(crate) struct LabExplainArgs {
    /// Row to explain: an experiment, and parameters that select one of its rows, such as fig08:policy=aic.
    #[arg(value_name = "ROW")]
    row: RowSelector,
    /// Row to compare with the first.
    #[arg(value_name = "OTHER")]
    other: Option<RowSelector>,
    /// Print JSON instead of a table.
    #[arg(long)]
    json: bool,
    /// Write a flame graph to this SVG file; of two rows, the graph shows the difference.
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    /// Guests to add up: those of a port, all, or none.
    #[arg(long, value_name = "DETAIL", default_value = "port")]
    by: ExplanationDetail,
    /// Number of lines of the table; the others are added up.
    #[arg(long, value_name = "N", default_value_t = 30)]
    lines: usize,
    /// Seed of random numbers, as for `lab run`.
    #[arg(long, value_name = "N", default_value_t = DEFAULT_SEED)]
    seed: u64,
    /// Run on the machine of this file (TOML), or on a paper's machine by its name, as for `lab run`.
    #[arg(long, value_name = "FILE|NAME")]
    machine: Option<String>,
}

/// Guests that `softiov lab explain` adds up.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
pub(crate) enum ExplanationDetail {
    /// List every domain.
    Domain,
    /// Add up the guests of each port.
    Port,
    /// Add up all guests.
    Kind,
}

pub(super) fn explain(catalogue: &ExperimentCatalogue, args: &LabExplainArgs) -> anyhow::Result<()> {
    if let Some(file) = &args.svg {
        output::check_writable(file)?;
    }
    let machine = args.machine.as_deref().map(|machine| read_checked(machine, &catalogue.settings));
    let machine = machine.transpose()?.map(|file| file.values).unwrap_or_default();
    let explained = |row| explain_row(catalogue, row, &machine, args.seed);
    let row = explained(&args.row)?;
    let other = args.other.as_ref().map(explained).transpose()?;
    if let Some(file) = &args.svg {
        write_graph(file, &row, other.as_ref())?;
    }
    let detail = match args.by {
        ExplanationDetail::Domain => BreakdownDetail::Domain,
        ExplanationDetail::Port => BreakdownDetail::Port,
        ExplanationDetail::Kind => BreakdownDetail::Kind,
    };
    if args.json {
        return output::print(&to_json(&row, other.as_ref(), detail, args.seed));
    }
    let lines = lines(&row.cycles, other.as_ref().map(|other| &other.cycles), detail);
    output::print(&table(&row, other.as_ref(), &lines, args.lines))
}

fn write_graph(file: &Path, row: &ExplainedRow, other: Option<&ExplainedRow>) -> anyhow::Result<()> {
    let name = |row: &ExplainedRow| format!("{} {}", row.row.experiment, row.row.params);
    let svg = match other {
        None => graph::of_row(&row.cycles, &format!("Cycles of {}", name(row))),
        Some(other) => {
            let title = format!("Cycles from {} to {}", name(row), name(other));
            graph::of_difference(&row.cycles, &other.cycles, &title)
        }
    };
    fs::write(file, svg).with_context(|| format!("cannot write the flame graph to {}", file.display()))
}

/// Returns the lines of an explanation as a table of at most `most` lines, a line for all others, and the sums.
fn table(row: &ExplainedRow, other: Option<&ExplainedRow>, lines: &[BreakdownLine], most: usize) -> String {
    let mut heading = vec!["domain", "port", "work", "by", "Mcycles/s", "thread %"];
    if other.is_some() {
        heading.extend(["other Mcycles/s", "other thread %", "difference %"]);
    }
    let mut table = TextTable::new(heading.into_iter().map(str::to_owned).collect(), 4);
    let (shown, rest) = lines.split_at(most.min(lines.len()));
    for line in shown {
        let by = if line.hypervisor { "hypervisor" } else { "itself" };
        let port = line.port.map_or("all".to_owned(), |port| port.to_string());
        let names = vec![line.domain.clone(), port, line.category.to_owned(), by.to_owned()];
        table.row([names, numbers(std::slice::from_ref(line), other.is_some())].concat());
    }
    let names = |what: &str| vec![what.to_owned(), String::new(), String::new(), String::new()];
    if !rest.is_empty() {
        table.row([names(&format!("{} more lines", rest.len())), numbers(rest, other.is_some())].concat());
    }
    table.row([names("sum"), numbers(lines, other.is_some())].concat());
    let rows = std::iter::once(row).chain(other);
    let idle = rows.map(|ExplainedRow { row, cycles }| {
        let (busy, idle) = (cycles.percent(cycles.busy()), cycles.percent(cycles.idle));
        format!(
            "{} {}: {} threads, busy {busy:.1} %, idle {idle:.1} %\n",
            row.experiment, row.params, cycles.threads
        )
    });
    idle.collect::<String>() + &table.to_string()
}

/// Returns the sums of lines as cells.
fn numbers(lines: &[BreakdownLine], compared: bool) -> Vec<String> {
    let sum = |value: fn(&BreakdownLine) -> f64| lines.iter().map(value).sum::<f64>();
    let mut cells =
        vec![format!("{:.1}", sum(|line| line.mcycles_per_s)), format!("{:.2}", sum(|line| line.thread_pct))];
    if compared {
        let other = |value: fn(&OtherRowValues) -> f64| {
            lines.iter().filter_map(|line| line.other.as_ref()).map(value).sum::<f64>()
        };
        cells.push(format!("{:.1}", other(|other| other.other_mcycles_per_s)));
        cells.push(format!("{:.2}", other(|other| other.other_thread_pct)));
        cells.push(format!("{:+.2}", other(|other| other.difference_pct)));
    }
    cells
}
