//! Processors of a worker.

use loom::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;

/// Processors that note whether a worker was pinned to them.
#[derive(Clone, Debug)]
pub(super) struct CpuList(Arc<AtomicBool>);

impl CpuList {
    pub(super) fn new() -> Self {
        Self(Arc::new(AtomicBool::new(false)))
    }

    pub(super) fn pin(&self) -> Result<(), ()> {
        self.0.store(true, Ordering::Relaxed);
        Ok(())
    }

    pub(super) fn is_pinned(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}
