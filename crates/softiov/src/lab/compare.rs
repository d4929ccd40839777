//! `softiov lab compare`: prints the values of two models beside those that papers state, with a score.

use std::path::Path;

use lab::catalogue::ExperimentCatalogue;
use lab::compare::{
    ComparedModel, ComparedValue, ComparisonOptions, ModelScore, compare as compare_models, scores,
};
use lab::runner::DEFAULT_SEED;
use lab::{machine_file, runner::plan::SettingAssignment};
use serde::Serialize;
use std::num::{NonZeroU16, NonZeroUsize};

use super::machine;
use super::progress::{jobs, read_rows};
use super::table::TextTable;
use crate::output;

/// Name of the model as it is.
const UNCHANGED: &str = "unchanged";

/// Arguments of `lab compare`.
#[derive(Debug, clap::Args)]
pub(crate) struct LabCompareArgs {
    /// First model: "unchanged", settings such as eoi=checked,interrupt_hz=6028, a machine (FILE.toml or a paper's by
    /// name), or a directory where `lab run --out` stored rows.
    #[arg(value_name = "A")]
    one: String,
    /// Second model.
    #[arg(value_name = "B")]
    other: String,
    /// Compare only these experiments (default: all with stated values).
    #[arg(long, value_name = "EXPERIMENT", num_args = 1..)]
    only: Vec<String>,
    /// Print JSON instead of tables.
    #[arg(long)]
    json: bool,
    /// Seed of random numbers, as for `lab run`.
    #[arg(long, value_name = "N", default_value_t = DEFAULT_SEED)]
    seed: u64,
    /// Number of seeds to run, --seed and those after it: values are means, with half of their 95 % interval.
    #[arg(long, value_name = "N", default_value = "1")]
    seeds: NonZeroU16,
    /// Points to run at a time (default: the number of processors).
    #[arg(long, value_name = "N")]
    jobs: Option<NonZeroUsize>,
}

/// Comparison as JSON.
#[derive(Serialize)]
struct LabComparison<'a> {
    version: &'static str,
    models: [&'a str; 2],
    values: &'a [ComparedValue],
    /// Scores of both models over all values, those calibrated on, predictions, and predictions that no full wire bounds.
    all: [ModelScore; 2],
    calibrated: [ModelScore; 2],
    predicted: [ModelScore; 2],
    unbounded: [ModelScore; 2],
}

pub(super) fn compare(catalogue: &ExperimentCatalogue, args: &LabCompareArgs) -> anyhow::Result<()> {
    let (one, other) = (model(catalogue, &args.one)?, model(catalogue, &args.other)?);
    let options = ComparisonOptions { seed: args.seed, seeds: args.seeds, jobs: jobs(args.jobs) };
    let values = compare_models(catalogue, [&one, &other], &args.only, options, &mut ())?;
    let comparison = LabComparison {
        version: lab::VERSION,
        models: [&args.one, &args.other],
        values: &values,
        all: scores(&values, |_| true),
        calibrated: scores(&values, |value| value.is_calibrated),
        predicted: scores(&values, |value| !value.is_calibrated),
        unbounded: scores(&values, |value| !value.is_calibrated && !value.is_bounded),
    };
    output::print(&if args.json {
        serde_json::to_string_pretty(&comparison)? + "\n"
    } else {
        as_text(&comparison)
    })
}

/// Returns the model that an argument names.
fn model(catalogue: &ExperimentCatalogue, text: &str) -> anyhow::Result<ComparedModel> {
    let settings = |set, machine| ComparedModel::Settings { set, machine };
    if text == UNCHANGED {
        return Ok(settings(Vec::new(), Vec::new()));
    }
    if Path::new(text).is_dir() {
        return Ok(ComparedModel::Rows(read_rows(Path::new(text))?));
    }
    let is_machine = machine_file::names().any(|name| name == text) || text.ends_with(".toml");
    if is_machine || !text.contains('=') {
        let file = machine::read_checked(text, &catalogue.settings)?;
        return Ok(settings(Vec::new(), file.values));
    }
    let set = text.split(',').map(str::parse).collect::<Result<Vec<SettingAssignment>, _>>()?;
    Ok(settings(set, Vec::new()))
}

fn as_text(comparison: &LabComparison) -> String {
    let heading = ["experiment", "point", "metric", "", "stated", "A", "error %", "B", "error %", "closer"];
    let mut table = TextTable::new(heading.map(str::to_owned).into(), 4);
    let number = |value: &ComparedValue, side: usize| match (value.models[side], value.half[side]) {
        (Some(mean), Some(half)) if half > 0.0 => format!("{mean} ± {half}"),
        (Some(mean), _) => mean.to_string(),
        (None, _) => "-".to_owned(),
    };
    let percent = |value: Option<f64>| value.map_or("-".to_owned(), |value| format!("{value:+.1}"));
    for value in comparison.values {
        let errors = value.errors_pct();
        let closer = match errors.map(|error| error.map(f64::abs)) {
            [Some(one), Some(other)] if one < other => "A",
            [Some(one), Some(other)] if one > other => "B",
            _ => "",
        };
        let kind = match (value.is_calibrated, value.is_bounded) {
            (true, _) => "calibrated",
            (false, true) => "predicted, full wires",
            (false, false) => "predicted",
        };
        let names = [value.experiment, &value.point, &value.metric, kind].map(str::to_owned);
        let numbers = [
            value.stated.to_string(),
            number(value, 0),
            percent(errors[0]),
            number(value, 1),
            percent(errors[1]),
            closer.to_owned(),
        ];
        table.row(names.into_iter().chain(numbers).collect());
    }
    let heading = ["model", "values", "count", "within 10 %", "within 30 %", "closer", "mean error %"];
    let mut sums = TextTable::new(heading.map(str::to_owned).into(), 2);
    let kinds = [
        ("all", comparison.all),
        ("calibrated", comparison.calibrated),
        ("predicted", comparison.predicted),
        ("predicted, without full wires", comparison.unbounded),
    ];
    for (kind, scores) in kinds {
        for ((letter, name), score) in ["A", "B"].iter().zip(comparison.models).zip(scores) {
            if score.values == 0 {
                continue;
            }
            let counts = [score.values, score.within_10_pct, score.within_30_pct, score.closer];
            let names = [format!("{letter}: {name}"), kind.to_owned()].into_iter();
            let numbers = counts.iter().map(ToString::to_string);
            sums.row(names.chain(numbers).chain([format!("{:.1}", score.mean_error_pct)]).collect());
        }
    }
    format!("{table}\n{sums}")
}
