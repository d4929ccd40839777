//! Failures of a simulated disk, chosen for this thread: full, broken, read-only, or the death of the process or the machine at a
//! step. What was not synced may be lost with the machine's power.

use super::disk::DiskStep;
use rustix::io::Errno;
use std::cell::RefCell;
use std::fs;
use std::io;
use std::panic::resume_unwind;
use std::path::{Path, PathBuf};

/// Failure of a disk, with the number of steps that succeed before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DiskFault {
    /// No file is created, and nothing is written any more (ENOSPC).
    Full(usize),
    /// Writes and syncs fail (EIO).
    Broken(usize),
    /// The file system has become read-only, as after an error: nothing succeeds any more, not even a rename (EROFS).
    ReadOnly(usize),
    /// The process dies.
    Death(usize),
    /// The machine loses its power.
    PowerLoss(usize),
}

/// Payload of the panic by which the process dies at a step.
pub(crate) struct DiskDeath;

/// New name of a file that a power failure may take back.
#[derive(Debug)]
struct UnsyncedName {
    path: PathBuf,
    /// Contents of the file that had the name before.
    old: Option<Vec<u8>>,
    /// True if the contents of the new file are on the disk.
    is_synced: bool,
}

#[derive(Debug, Default)]
struct FaultyDisk {
    fault: Option<DiskFault>,
    steps: usize,
    /// Number of prepared files whose contents are not on the disk.
    unsynced_files: usize,
    name: Option<UnsyncedName>,
}

thread_local! {
    static DISK: RefCell<FaultyDisk> = RefCell::default();
}

/// Chooses the failure of this thread's disk in its next steps, or a disk that works.
pub(crate) fn set(fault: Option<DiskFault>) {
    DISK.set(FaultyDisk { fault, ..FaultyDisk::default() });
}

/// Takes back what the disk may lose with its power, as `random` decides.
pub(crate) fn lose_power(random: &mut fastrand::Rng) {
    let Some(UnsyncedName { path, old, is_synced }) = DISK.take().name else { return };
    if random.bool() {
        match old {
            Some(old) => fs::write(path, old).expect("the file of before returns"),
            None => fs::remove_file(path).expect("the new file is gone"),
        }
    } else if !is_synced {
        let length = fs::metadata(&path).expect("the file has its name").len();
        let file = fs::File::options().write(true).open(path).expect("the file can be torn");
        file.set_len(random.u64(0..length)).expect("the file can be torn");
    }
}

/// Passes a step, which fails if the disk does.
pub(super) fn pass(step: DiskStep, path: &Path) -> io::Result<()> {
    DISK.with_borrow_mut(|disk| disk.pass(step, path))
}

impl FaultyDisk {
    fn pass(&mut self, step: DiskStep, path: &Path) -> io::Result<()> {
        let at = self.steps;
        self.steps += 1;
        let error = match self.fault {
            Some(DiskFault::Full(after)) if at >= after => match step {
                DiskStep::Create | DiskStep::Write => Some(Errno::NOSPC),
                _ => None,
            },
            Some(DiskFault::Broken(after)) if at >= after && step != DiskStep::Rename => Some(Errno::IO),
            Some(DiskFault::ReadOnly(after)) if at >= after => Some(Errno::ROFS),
            Some(DiskFault::Death(after) | DiskFault::PowerLoss(after)) if at == after => {
                resume_unwind(Box::new(DiskDeath))
            }
            _ => None,
        };
        if let Some(errno) = error {
            return Err(errno.into());
        }
        match step {
            DiskStep::Create => self.unsynced_files += 1,
            DiskStep::Sync => self.unsynced_files -= 1,
            DiskStep::Rename => {
                let (path, old) = (path.to_owned(), fs::read(path).ok());
                self.name = Some(UnsyncedName { path, old, is_synced: self.unsynced_files == 0 });
            }
            DiskStep::SyncFolder => self.name = None,
            DiskStep::Write => {}
        }
        Ok(())
    }
}
