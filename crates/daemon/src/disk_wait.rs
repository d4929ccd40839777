//! Step of a thread that may wait for a disk. The watchdog does not take one of the control thread for a hang: guests are served
//! meanwhile, and a host that is started instead would read the same disk.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Beginning of a thread's present step that may wait for a disk, if there is one.
#[derive(Debug, Clone, Default)]
pub(crate) struct DiskWait(Arc<Mutex<Option<Instant>>>);

/// Mark of a step, which ends when it is dropped.
struct DiskStepMark<'a>(&'a DiskWait);

impl DiskWait {
    /// Runs a step that may wait for a disk.
    pub(crate) fn during<T>(&self, step: impl FnOnce() -> T) -> T {
        self.begin();
        let _mark = DiskStepMark(self);
        step()
    }

    /// Marks the beginning of a thread's last step. The mark stays.
    pub(crate) fn begin(&self) {
        *self.lock() = Some(Instant::now());
    }

    /// Returns the beginning of the present step, or `None` if there is none.
    pub(crate) fn began(&self) -> Option<Instant> {
        *self.lock()
    }

    /// Returns how long the present step has taken, or `None` if there is none.
    pub(crate) fn time(&self) -> Option<Duration> {
        self.began().map(|began| began.elapsed())
    }

    fn lock(&self) -> MutexGuard<'_, Option<Instant>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for DiskStepMark<'_> {
    fn drop(&mut self) {
        *self.0.lock() = None;
    }
}
