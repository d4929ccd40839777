//! Mark of a failed port until it is open again or given up. Opening a port again may wait for a disk, and ports that fail
//! meanwhile wait for the same thread.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Instant;

/// Time at which a port has failed that is not open again.
#[derive(Debug, Clone, Default)]
pub(super) struct PortReopening(Arc<Mutex<Weak<Instant>>>);

/// Mark of a failed port, which ends with its last clone.
#[derive(Debug, Clone)]
pub(super) struct PortReopeningMark(Arc<Instant>);

impl PortReopening {
    /// Marks the port as failed now.
    pub(super) fn begin(&self) -> PortReopeningMark {
        let mark = PortReopeningMark(Arc::new(Instant::now()));
        *self.lock() = Arc::downgrade(&mark.0);
        mark
    }

    /// Returns the time at which the port has failed, or `None` unless it is to be opened again.
    pub(super) fn began(&self) -> Option<Instant> {
        self.lock().upgrade().as_deref().copied()
    }

    fn lock(&self) -> MutexGuard<'_, Weak<Instant>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
