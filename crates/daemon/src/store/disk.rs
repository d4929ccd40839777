//! Replacement of a file as a whole: a crash, a full disk or a power failure leaves the old file or the new one.

use std::fs::{DirBuilder, File};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;
use tempfile::NamedTempFile;

/// Step at which a disk may fail in a simulation (`port::run::tests::simulation`). A program has no such failures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DiskStep {
    Create,
    Write,
    Sync,
    Rename,
    SyncFolder,
}

/// Passes a step of a file that has or gets the name `path`.
#[cfg(not(test))]
#[inline(always)]
fn pass(_: DiskStep, _: &Path) -> io::Result<()> {
    Ok(())
}

#[cfg(test)]
use super::faulty_disk::pass;

/// Writes a file beside `path`. Its contents are on the disk when this returns.
pub(super) fn prepare(path: &Path, text: &[u8]) -> io::Result<NamedTempFile> {
    let folder = path.parent().ok_or(ErrorKind::InvalidInput)?;
    DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    pass(DiskStep::Create, path)?;
    let mut file = tempfile::Builder::new().prefix(".state-").tempfile_in(folder)?;
    pass(DiskStep::Write, path)?;
    file.write_all(text)?;
    sync(file.as_file(), path)?;
    Ok(file)
}

/// Gives a prepared file the name `path`. The name is on the disk when this returns.
pub(super) fn replace(file: NamedTempFile, path: &Path) -> io::Result<()> {
    let folder = path.parent().ok_or(ErrorKind::InvalidInput)?;
    pass(DiskStep::Rename, path)?;
    file.persist(path)?;
    sync_folder(folder, path)
}

fn sync(file: &File, path: &Path) -> io::Result<()> {
    pass(DiskStep::Sync, path)?;
    file.sync_all()
}

fn sync_folder(folder: &Path, path: &Path) -> io::Result<()> {
    pass(DiskStep::SyncFolder, path)?;
    File::open(folder)?.sync_all()
}
