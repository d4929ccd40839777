//! The cache folder of the guests' files: finished parts, a work folder, and a lock. The parts' recipes are in the
//! other modules.

use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

use super::error::{AssetIoResultExt, Result};
use super::progress::ProgressReporter;

/// Cache folder of finished guest parts (kernels, programs). Building a part takes the folder's lock until this value
/// is dropped; reading needs no lock, since finished parts are complete.
#[derive(Debug)]
pub(super) struct AssetCache {
    folder: PathBuf,
    lock: Option<File>,
}

impl AssetCache {
    pub(super) fn open(folder: &Path) -> Result<Self> {
        fs::create_dir_all(folder).at(folder)?;
        Ok(Self { folder: folder.to_path_buf(), lock: None })
    }

    /// Returns true if this process has to build a part of the cache; waits while another process may be building the
    /// part.
    pub(super) fn needs_build(&mut self, part: &Path, progress: &mut ProgressReporter) -> Result<bool> {
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

    /// Returns the cache's folder for parts that are being built. Downloads in it survive an interruption.
    pub(super) fn work_folder(&self) -> PathBuf {
        self.folder.join("work")
    }

    /// Returns the path of the part `name` with this recipe, which exists once the part is
    /// [`publish`](Self::publish)ed.
    pub(super) fn part(&self, name: &str, recipe: &str) -> PathBuf {
        self.folder.join(format!("{name}-{:016x}", fnv1a(recipe.as_bytes())))
    }

    /// Creates an empty folder in which a part of the cache is built.
    pub(super) fn build_folder(&self, name: &str) -> Result<PathBuf> {
        let build_folder = self.work_folder().join(format!("{name}.partial"));
        remove(&build_folder)?;
        fs::create_dir_all(&build_folder).at(&build_folder)?;
        Ok(build_folder)
    }

    /// Moves a finished part into the cache by one rename, so that no process sees an incomplete part.
    pub(super) fn publish(&self, built: &Path, part: &Path) -> Result<()> {
        fs::rename(built, part).at(part)
    }

    /// Removes the work folder, and releases the cache's lock.
    pub(super) fn close(self) -> Result<()> {
        // Without the lock the work belongs to another process.
        if self.lock.is_some() { remove(&self.work_folder()) } else { Ok(()) }
    }
}

fn remove(folder: &Path) -> Result<()> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error).at(folder),
        _ => Ok(()),
    }
}

/// Returns the 64-bit FNV-1a hash of a text, which distinguishes recipes of cached parts. The hash does not resist an
/// attacker.
fn fnv1a(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, &byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fnv1a_hash_matches_its_published_test_vectors() {
        assert_eq!(fnv1a(b""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(fnv1a(b"a"), 0xaf63_dc4c_8601_ec8c);
        assert_eq!(fnv1a(b"foobar"), 0x8594_4171_f739_67e8);
    }

    #[test]
    fn cached_guest_asset_exists_only_after_its_build_is_complete() {
        let folder = tempfile::tempdir().unwrap();
        let mut cache = AssetCache::open(folder.path()).unwrap();
        let part = cache.part("thing", "flour");
        assert_ne!(part, cache.part("thing", "rice"));

        assert!(cache.needs_build(&part, &mut ProgressReporter::new()).unwrap());
        let build_folder = cache.build_folder("thing").unwrap();
        fs::write(build_folder.join("crumb"), "x").unwrap();
        assert!(!part.exists());
        let build_folder = cache.build_folder("thing").unwrap();
        assert!(!build_folder.join("crumb").exists(), "an interrupted attempt is not built upon");
        cache.publish(&build_folder, &part).unwrap();
        assert!(!cache.needs_build(&part, &mut ProgressReporter::new()).unwrap());
        let work = cache.work_folder();
        cache.close().unwrap();
        assert!(part.is_dir() && !work.exists());
    }
}
