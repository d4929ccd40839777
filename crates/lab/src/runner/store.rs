//! Rows in a folder, one a file: a point that is there with the same inputs and version need not be run again,
//! and the parts of a sharded run meet here. Left out: removing rows; a folder is its owner's.

use std::path::{Path, PathBuf};
use std::{fs, io, process};

use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::plan::Planned;
use crate::experiment::Outcome;
use crate::row::Row;
use crate::{VERSION, hash};

/// A row with all it follows from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Record {
    /// [`VERSION`] of who found it.
    pub version: String,
    /// The seed of the run.
    pub seed: u64,
    /// The row.
    pub row: Row,
    /// The hash over everything that happened.
    pub trace: u64,
    /// How much virtual time passed, picoseconds.
    pub simulated_ps: u64,
    /// How many events were handled.
    pub events: u64,
}

impl Record {
    /// What this version found with this seed.
    pub(super) fn new(seed: u64, planned: &Planned, outcome: &Outcome) -> Self {
        Self {
            version: VERSION.to_owned(),
            seed,
            row: Row {
                experiment: planned.experiment.name.to_owned(),
                params: planned.point.params(),
                metrics: outcome.metrics.clone(),
            },
            trace: outcome.trace,
            simulated_ps: outcome.simulated_ps,
            events: outcome.events,
        }
    }
}

/// The folder cannot be used.
#[derive(Debug, Error)]
pub enum StoreError {
    /// A file or the folder cannot be read or written.
    #[error("{}: {error}", .path.display())]
    Io {
        /// Which.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// A file is not a row.
    #[error("{} is not a row of the lab ({error}); run again with the same --out to renew it, or remove it", .path.display())]
    NotARow {
        /// Which.
        path: PathBuf,
        /// Why.
        error: serde_json::Error,
    },
}

/// A folder of rows.
#[derive(Debug)]
pub(super) struct Store {
    folder: PathBuf,
}

impl Store {
    /// Makes the folder if there is none.
    pub(super) fn open(folder: &Path) -> Result<Self, StoreError> {
        let folder = folder.join("rows");
        fs::create_dir_all(&folder).map_err(at(&folder))?;
        Ok(Self { folder })
    }

    /// The row of this point, if it was found by this version. A file that is torn or from another version is
    /// as good as none: it is replaced.
    pub(super) fn find(&self, seed: u64, planned: &Planned) -> Option<Record> {
        let (experiment, params) = (planned.experiment.name, planned.point.params());
        let path = self.path(seed, experiment, &params.to_string());
        let record: Record = serde_json::from_slice(&fs::read(path).ok()?).ok()?;
        let inputs = (record.version.as_str(), record.seed, record.row.experiment.as_str());
        (inputs == (VERSION, seed, experiment) && record.row.params == params).then_some(record)
    }

    /// Keeps a row, whole or not at all: another process may be looking.
    pub(super) fn keep(&self, record: &Record) -> Result<(), StoreError> {
        let path = self.path(record.seed, &record.row.experiment, &record.row.params.to_string());
        let mut text = serde_json::to_vec(record).map_err(|error| not_a_row(&path, error))?;
        text.push(b'\n');
        let partial = path.with_extension(format!("partial-{}", process::id()));
        fs::write(&partial, text).map_err(at(&partial))?;
        fs::rename(&partial, &path).map_err(at(&path))
    }

    /// The version is not in the name, so a new one replaces what an old one found.
    fn path(&self, seed: u64, experiment: &str, params: &str) -> PathBuf {
        let key = hash::stable(format!("{seed} {experiment} {params}").as_bytes());
        self.folder.join(format!("{experiment}-{key:016x}.json"))
    }
}

/// All rows in a folder that [`super::run`] kept them in, in no order that means anything, and why files are none.
///
/// # Errors
/// The folder cannot be read.
pub fn read(folder: &Path) -> Result<(Vec<Record>, Vec<StoreError>), StoreError> {
    let folder = folder.join("rows");
    let entries = fs::read_dir(&folder).map_err(at(&folder))?;
    let mut paths = entries
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<Result<Vec<_>, _>>()
        .map_err(at(&folder))?;
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "json"));
    paths.sort();
    let (mut records, mut broken) = (Vec::new(), Vec::new());
    for path in paths {
        match read_one(&path) {
            Ok(record) => records.push(record),
            Err(error) => broken.push(error),
        }
    }
    Ok((records, broken))
}

fn read_one(path: &Path) -> Result<Record, StoreError> {
    let text = fs::read(path).map_err(at(path))?;
    serde_json::from_slice(&text).map_err(|error| not_a_row(path, error))
}

fn at(path: &Path) -> impl FnOnce(io::Error) -> StoreError {
    let path = path.to_owned();
    |error| StoreError::Io { path, error }
}

fn not_a_row(path: &Path, error: serde_json::Error) -> StoreError {
    StoreError::NotARow { path: path.to_owned(), error }
}
