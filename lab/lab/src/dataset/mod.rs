//! Writes rows as CSV for other programs, with everything that is needed to repeat them: seed, version, trace hash and
//! the command of each row. A codebook beside it has the unit and meaning of each column, and a third file the constants
//! of the cost tables.

#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};
use std::{fs, io, process};

use crate::catalogue::ExperimentCatalogue;
use crate::csv::{record, union};
use crate::runner::store::StoredResultRow;

/// Columns of a dataset that are neither parameters nor metrics: name, and description.
const FIRST: (&str, &str) = ("experiment", "name of the experiment");
const LAST: [(&str, &str); 4] = [
    ("seed", "seed of the run"),
    ("version", "version of the model that produced the row"),
    ("trace", "hash of all traced events of the row, hexadecimal; 0 if the experiment traces none"),
    ("command", "command that produces the row again"),
];

/// Rows as CSV, with a codebook and the constants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResultDataset {
    /// Rows: one record for each, in their order.
    pub rows: String,
    /// Codebook: kind, unit and description of each column of the rows.
    pub columns: String,
    /// Constants of all cost tables with units, kinds of evidence and sources.
    pub constants: String,
}

impl ResultDataset {
    /// Creates the dataset of rows. `unaffected` says that the run permitted settings without effect.
    #[must_use]
    pub fn new(catalogue: &ExperimentCatalogue, records: &[StoredResultRow], unaffected: bool) -> Self {
        let params = union(records.iter().flat_map(|record| record.row.params.names()));
        let metrics = union(records.iter().flat_map(|record| record.row.metrics.names()));
        let mut rows = String::new();
        let names = [FIRST.0].into_iter().chain(params.iter().copied()).chain(metrics.iter().copied());
        record(&mut rows, names.chain(LAST.map(|(name, _)| name)));
        for stored in records {
            record(&mut rows, fields(catalogue, stored, &params, &metrics, unaffected));
        }
        Self { rows, columns: codebook(catalogue, &params, &metrics), constants: constants(catalogue) }
    }

    /// Returns the paths of a dataset's files: rows, codebook, constants.
    #[must_use]
    pub fn paths(file: &Path) -> [PathBuf; 3] {
        let stem = file.file_stem().unwrap_or_default().to_string_lossy();
        let beside = |what: &str| file.with_file_name(format!("{stem}-{what}.csv"));
        [file.to_owned(), beside("columns"), beside("constants")]
    }

    /// Writes the rows to `file`, and codebook and constants beside it. Returns the paths of the files. Files of an
    /// earlier run are replaced only after all new ones are written, so a full disk leaves them whole. A file whose
    /// folder accepts no other file is overwritten in place.
    ///
    /// # Errors
    /// If a file cannot be written.
    pub fn write(&self, file: &Path) -> io::Result<[PathBuf; 3]> {
        let paths = Self::paths(file);
        let texts = [&self.rows, &self.columns, &self.constants];
        let parts = paths
            .each_ref()
            .map(|path| partial(path).filter(|part| !is_refused(part)).unwrap_or_else(|| path.clone()));
        let unfinished = || parts.iter().zip(&paths).filter(|(part, path)| part != path);
        let written = parts.iter().zip(texts).try_for_each(|(part, text)| fs::write(part, text));
        let replaced = written.and_then(|()| unfinished().try_for_each(|(part, path)| replace(part, path)));
        if replaced.is_err() {
            // Ignore errors: a part may not exist.
            unfinished().for_each(|(part, _)| drop(fs::remove_file(part)));
        }
        replaced.map(|()| paths)
    }
}

/// Returns the path of an unfinished file, beside the finished one. Returns `None` for a link, a device or a pipe, which
/// renaming would replace.
fn partial(path: &Path) -> Option<PathBuf> {
    if fs::symlink_metadata(path).is_ok_and(|found| !found.is_file()) {
        return None;
    }
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    Some(path.with_file_name(format!("{name}.partial-{}", process::id())))
}

/// Returns `true` if the folder accepts no file of this name: it is read-only, or the name is too long. Creates the file
/// otherwise.
fn is_refused(part: &Path) -> bool {
    use io::ErrorKind::{InvalidFilename, PermissionDenied, ReadOnlyFilesystem};
    let created = fs::File::create(part).map_err(|error| error.kind());
    matches!(created, Err(InvalidFilename | PermissionDenied | ReadOnlyFilesystem))
}

/// Replaces a file by the finished part. A file that is a mount point cannot be renamed over, so it is overwritten.
fn replace(part: &Path, path: &Path) -> io::Result<()> {
    match fs::rename(part, path) {
        Err(error) if error.kind() == io::ErrorKind::ResourceBusy => {
            fs::copy(part, path).and_then(|_| fs::remove_file(part))
        }
        renamed => renamed,
    }
}

/// Returns the fields of a row's record. A setting that the row does not change has its default.
fn fields(
    catalogue: &ExperimentCatalogue,
    stored: &StoredResultRow,
    params: &[&str],
    metrics: &[&str],
    unaffected: bool,
) -> Vec<String> {
    let row = &stored.row;
    let param = |name: &&str| match row.params.get(name) {
        Some(value) => value.to_string(),
        None => default(catalogue, name).unwrap_or_default(),
    };
    let metric = |name: &&str| row.metrics.get(name).map(f64::to_string).unwrap_or_default();
    let mut fields = vec![row.experiment.clone()];
    fields.extend(params.iter().map(param));
    fields.extend(metrics.iter().map(metric));
    let trace = format!("{:016x}", stored.trace);
    fields.extend([stored.seed.to_string(), stored.version.clone(), trace, command(stored, unaffected)]);
    fields
}

fn default(catalogue: &ExperimentCatalogue, name: &str) -> Option<String> {
    catalogue.settings.iter().find(|setting| setting.name == name).map(|setting| setting.default.to_string())
}

/// Returns the command that produces a row again.
fn command(stored: &StoredResultRow, unaffected: bool) -> String {
    let mut command = format!("softiov lab run {}", stored.row.experiment);
    for (name, value) in stored.row.params.iter() {
        command += &format!(" --set {name}={value}");
    }
    if unaffected {
        command += " --unaffected";
    }
    command + &format!(" --seed {}", stored.seed)
}

/// Returns kind, unit and description of each column as CSV. An axis is described by its first experiment.
fn codebook(catalogue: &ExperimentCatalogue, params: &[&str], metrics: &[&str]) -> String {
    let mut text = String::new();
    record(&mut text, ["column", "kind", "unit", "description"]);
    record(&mut text, [FIRST.0, "run", "", FIRST.1]);
    for name in params {
        let setting = catalogue.settings.iter().find(|setting| setting.name == *name);
        let mut axes = catalogue.experiments.iter().flat_map(|experiment| experiment.axes);
        let axis = axes.find(|axis| axis.name == *name);
        let (kind, unit, what) = match (setting, axis) {
            (Some(setting), _) => ("setting", setting.unit, setting.what.as_str()),
            (None, Some(axis)) => ("axis", "", axis.what),
            (None, None) => ("axis", "", ""),
        };
        record(&mut text, [*name, kind, unit, what]);
    }
    for name in metrics {
        let mut all = catalogue.experiments.iter().flat_map(|experiment| experiment.metrics);
        let (unit, what) =
            all.find(|metric| metric.name == *name).map_or(("", ""), |metric| (metric.unit, metric.what));
        record(&mut text, [*name, "metric", unit, what]);
    }
    LAST.iter().for_each(|(name, what)| record(&mut text, [*name, "run", "", *what]));
    text
}

/// Returns the constants of all cost tables as CSV.
fn constants(catalogue: &ExperimentCatalogue) -> String {
    let mut text = String::new();
    record(&mut text, ["table", "constant", "value", "unit", "kind", "source"]);
    for constant in &catalogue.parameters {
        let value = constant.value.to_string();
        let (table, name) = (constant.table.as_str(), constant.name.as_str());
        record(&mut text, [table, name, &value, &constant.unit, &constant.kind, &constant.source]);
    }
    text
}
