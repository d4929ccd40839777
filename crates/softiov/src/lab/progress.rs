//! Progress lines of `softiov lab`, the number of jobs, and stored rows.

use std::num::NonZeroUsize;
use std::path::Path;

use anyhow::Context;
use lab::runner::store::{self, StoredResultRow};

/// Prints a line of progress to standard error.
pub(super) fn print_progress(text: &str) {
    crate::output::print_error(format_args!("softiov lab: {text}"));
}

/// Returns the number of jobs: the given one, or the number of processors.
pub(super) fn jobs(asked: Option<NonZeroUsize>) -> NonZeroUsize {
    asked.or_else(|| std::thread::available_parallelism().ok()).unwrap_or(NonZeroUsize::MIN)
}

/// Returns the rows stored in a folder. Prints a line for each file that cannot be read.
pub(super) fn read_rows(folder: &Path) -> anyhow::Result<Vec<StoredResultRow>> {
    let (records, broken) = store::read(folder)
        .context("cannot read stored rows; store rows with `softiov lab run all --out DIR`")?;
    for error in broken {
        print_progress(&format!("ignored stored rows that cannot be read: {error}"));
    }
    Ok(records)
}
