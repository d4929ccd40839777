//! Stores result rows in a folder, a file per row. A point with a stored row of equal inputs and version is not run
//! again, and the parts of a sharded run are combined here. Rows are never removed.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::{fs, io, process};

use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::plan::{PlannedPoint, without};
use crate::experiment::PointOutcome;
use crate::named::Params;
use crate::row::ResultRow;
use crate::{VERSION, hash};

/// Row of a point, with its inputs and the data of its run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StoredResultRow {
    /// Version of the model that produced the row ([`VERSION`]).
    pub version: String,
    /// Seed of the run that produced the row.
    pub seed: u64,
    /// Result row of the point: its parameters and metrics.
    pub row: ResultRow,
    /// Hash of all traced events of the point's run.
    pub trace: u64,
    /// Virtual time that the point's run simulated, in picoseconds.
    pub simulated_ps: u64,
    /// Number of events that the point's run handled.
    pub events: u64,
    /// Values of the machine file that the point's run did not read, and that are therefore no parameters of the row.
    #[serde(default, skip_serializing_if = "Params::is_empty")]
    pub unread: Params,
}

impl StoredResultRow {
    /// Creates the record of a point run by this version with this seed. The values `unread` are no parameters of the row.
    pub(super) fn new(seed: u64, planned: &PlannedPoint, outcome: &PointOutcome, unread: Params) -> Self {
        Self {
            version: VERSION.to_owned(),
            seed,
            row: ResultRow {
                experiment: planned.experiment.name.to_owned(),
                params: without(&planned.point.params(), &unread),
                metrics: outcome.metrics.clone(),
            },
            trace: outcome.trace,
            simulated_ps: outcome.simulated_ps,
            events: outcome.events,
            unread,
        }
    }

    /// Returns `true` if the record is of a point with the parameters `params`, of which the run may have left some unread.
    fn is_of(&self, params: &Params) -> bool {
        let is_given = |(name, value): (&str, &_)| params.get(name) == Some(value);
        self.unread.iter().all(is_given) && self.row.params == without(params, &self.unread)
    }
}

/// Error of using a folder of stored rows.
#[derive(Debug, Error)]
pub enum RowStoreError {
    /// A file of result rows, or their folder, cannot be read or written.
    #[error("cannot read or write {}: {error}", .path.display())]
    Io {
        /// Path of the file or folder of rows.
        path: PathBuf,
        /// Error that the system returned for the file or folder.
        error: io::Error,
    },
    /// A file of the folder does not contain a result row.
    #[error("file {} does not contain a result row of the lab ({error}); run again with the same --out to replace it, or remove it", .path.display())]
    NotARow {
        /// Path of the file that does not contain a row.
        path: PathBuf,
        /// Error of parsing the file as a row.
        error: serde_json::Error,
    },
}

/// Folder in which result rows are stored.
#[derive(Debug)]
pub(super) struct RowStore {
    folder: PathBuf,
}

impl RowStore {
    /// Opens a folder of stored rows, and creates the folder if necessary.
    pub(super) fn open(folder: &Path) -> Result<Self, RowStoreError> {
        let folder = folder.join("rows");
        fs::create_dir_all(&folder).map_err(at(&folder))?;
        Ok(Self { folder })
    }

    /// Returns the stored row of a point if this program version produced the row. A file that is damaged, or of
    /// another version, is ignored and replaced later.
    pub(super) fn find(&self, seed: u64, planned: &PlannedPoint) -> Option<StoredResultRow> {
        let (experiment, params) = (planned.experiment.name, planned.point.params());
        let path = self.path(seed, experiment, &params.to_string());
        let record: StoredResultRow = serde_json::from_slice(&fs::read(path).ok()?).ok()?;
        let inputs = (record.version.as_str(), record.seed, record.row.experiment.as_str());
        (inputs == (VERSION, seed, experiment) && record.is_of(&params)).then_some(record)
    }

    /// Stores the result row of a point atomically, as another process may be reading.
    pub(super) fn keep(&self, planned: &PlannedPoint, record: &StoredResultRow) -> Result<(), RowStoreError> {
        let path = self.path(record.seed, &record.row.experiment, &planned.point.params().to_string());
        let mut text = serde_json::to_vec(record).map_err(|error| not_a_row(&path, error))?;
        text.push(b'\n');
        let partial = path.with_extension(format!("partial-{}", process::id()));
        fs::write(&partial, text).map_err(at(&partial))?;
        fs::rename(&partial, &path).map_err(at(&path))
    }

    /// Returns the path of a row's file. The path excludes the version, so a new version's row replaces an old
    /// version's.
    fn path(&self, seed: u64, experiment: &str, params: &str) -> PathBuf {
        let key = hash::stable(format!("{seed} {experiment} {params}").as_bytes());
        self.folder.join(format!("{experiment}-{key:016x}.json"))
    }
}

/// Reads all rows that [`super::run`] stored in a folder, in no particular order, with an error for each file
/// that is no row. Machine files that differ in unread values only have one row.
///
/// # Errors
/// [`RowStoreError`] if the folder cannot be read.
pub fn read(folder: &Path) -> Result<(Vec<StoredResultRow>, Vec<RowStoreError>), RowStoreError> {
    let folder = folder.join("rows");
    let entries = fs::read_dir(&folder).map_err(at(&folder))?;
    let mut paths = entries
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<Result<Vec<_>, _>>()
        .map_err(at(&folder))?;
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "json"));
    paths.sort();
    let (mut records, mut broken, mut known) = (Vec::new(), Vec::new(), BTreeSet::new());
    for path in paths {
        match read_one(&path) {
            Ok(record) => {
                let StoredResultRow { version, seed, row, .. } = &record;
                if known.insert(format!("{version} {seed} {} {}", row.experiment, row.params)) {
                    records.push(record);
                }
            }
            Err(error) => broken.push(error),
        }
    }
    Ok((records, broken))
}

fn read_one(path: &Path) -> Result<StoredResultRow, RowStoreError> {
    let text = fs::read(path).map_err(at(path))?;
    serde_json::from_slice(&text).map_err(|error| not_a_row(path, error))
}

fn at(path: &Path) -> impl FnOnce(io::Error) -> RowStoreError {
    let path = path.to_owned();
    |error| RowStoreError::Io { path, error }
}

fn not_a_row(path: &Path, error: serde_json::Error) -> RowStoreError {
    RowStoreError::NotARow { path: path.to_owned(), error }
}
