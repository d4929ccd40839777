//! The cache folder: finished parts, a work folder, and a lock. Knows nothing of what the parts are.

use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

use super::error::{AtPath, Result};
use super::progress::Progress;

/// The cache folder. Building in it takes its lock, which is held until this is dropped; reading does not,
/// since what is there is complete.
#[derive(Debug)]
pub(super) struct Cache {
    folder: PathBuf,
    lock: Option<File>,
}

impl Cache {
    pub(super) fn open(folder: &Path) -> Result<Self> {
        fs::create_dir_all(folder).at(folder)?;
        Ok(Self { folder: folder.to_path_buf(), lock: None })
    }

    /// Whether this process has to build the part; waits while another one may be building it.
    pub(super) fn lacks(&mut self, part: &Path, progress: &mut Progress) -> Result<bool> {
        if part.exists() {
            return Ok(false);
        }
        if self.lock.is_none() {
            let path = self.folder.join("lock");
            let lock = File::options().create(true).truncate(false).write(true).open(&path).at(&path)?;
            match lock.try_lock() {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => {
                    progress.step("waiting for another process that prepares the Linux guest");
                    lock.lock().at(&path)?;
                }
                Err(TryLockError::Error(error)) => return Err(error).at(&path),
            }
            self.lock = Some(lock);
        }
        Ok(!part.exists())
    }

    /// Where unfinished work lives. Downloads in it survive an interruption.
    pub(super) fn work_folder(&self) -> PathBuf {
        self.folder.join("work")
    }

    /// Where the part with this recipe is, or will be once [`publish`](Self::publish)ed.
    pub(super) fn part(&self, name: &str, recipe: &str) -> PathBuf {
        self.folder.join(format!("{name}-{:016x}", fnv1a(recipe.as_bytes())))
    }

    /// An empty folder to build a part in.
    pub(super) fn bench(&self, name: &str) -> Result<PathBuf> {
        let bench = self.work_folder().join(format!("{name}.partial"));
        remove(&bench)?;
        fs::create_dir_all(&bench).at(&bench)?;
        Ok(bench)
    }

    /// Puts a finished part in its place in one step.
    pub(super) fn publish(&self, built: &Path, part: &Path) -> Result<()> {
        fs::rename(built, part).at(part)
    }

    /// Frees what was only needed for building, and the lock.
    pub(super) fn close(self) -> Result<()> {
        // Without the lock the work is another process's.
        if self.lock.is_some() { remove(&self.work_folder()) } else { Ok(()) }
    }
}

fn remove(folder: &Path) -> Result<()> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error).at(folder),
        _ => Ok(()),
    }
}

/// FNV-1a, 64 bits: tells recipes apart; nothing here needs to withstand an attacker.
fn fnv1a(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, &byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fnv1a_matches_its_published_vectors() {
        assert_eq!(fnv1a(b""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(fnv1a(b"a"), 0xaf63_dc4c_8601_ec8c);
        assert_eq!(fnv1a(b"foobar"), 0x8594_4171_f739_67e8);
    }

    #[test]
    fn a_part_appears_only_when_published_and_a_new_recipe_is_a_new_part() {
        let folder = tempfile::tempdir().unwrap();
        let mut cache = Cache::open(folder.path()).unwrap();
        let part = cache.part("thing", "flour");
        assert_ne!(part, cache.part("thing", "rice"));

        assert!(cache.lacks(&part, &mut Progress::new()).unwrap());
        let bench = cache.bench("thing").unwrap();
        fs::write(bench.join("crumb"), "x").unwrap();
        assert!(!part.exists());
        let bench = cache.bench("thing").unwrap();
        assert!(!bench.join("crumb").exists(), "an interrupted attempt is not built upon");
        cache.publish(&bench, &part).unwrap();
        assert!(!cache.lacks(&part, &mut Progress::new()).unwrap());
        let work = cache.work_folder();
        cache.close().unwrap();
        assert!(part.is_dir() && !work.exists());
    }
}
