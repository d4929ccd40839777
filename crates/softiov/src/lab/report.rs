//! `softiov lab report`: writes stored rows, or rows of a run of all experiments, as a page.

use lab::catalogue::ExperimentCatalogue;
use lab::report::ExperimentReport;
use lab::runner::plan::ExperimentSelection;
use lab::runner::store::StoredResultRow;
use lab::runner::{DEFAULT_SEED, ExperimentOptions};

use super::progress::{jobs, read_rows};
use super::{LabReportArgs, run};
use crate::output;

pub(super) fn report(catalogue: &ExperimentCatalogue, args: &LabReportArgs) -> anyhow::Result<()> {
    let records = match &args.folder {
        Some(folder) => read_rows(folder)?,
        None => run_all(catalogue, args)?,
    };
    let report = ExperimentReport::new(catalogue, records, args.seed)?;
    let paths = report.write(&args.out)?;
    output::print(&paths.map(|path| format!("{}\n", path.display())).concat())
}

fn run_all(catalogue: &ExperimentCatalogue, args: &LabReportArgs) -> anyhow::Result<Vec<StoredResultRow>> {
    ExperimentReport::places(&args.out)?.iter().try_for_each(|path| output::check_writable(path))?;
    let seed = args.seed.unwrap_or(DEFAULT_SEED);
    let options = ExperimentOptions { seed, jobs: jobs(args.jobs), ..ExperimentOptions::default() };
    Ok(run::run_with_progress(catalogue, &ExperimentSelection::All, &options, false)?.records)
}
