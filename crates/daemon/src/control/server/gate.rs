//! Gate before the control thread. A host that is about to leave its guests to the next process shuts the gate while it still
//! serves them: a request that has begun may wait for a disk for seconds, and no process would serve the guests meanwhile.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// Gate that every control request passes before it begins.
#[derive(Debug, Clone, Default)]
pub(crate) struct ControlThreadGate(Arc<(Mutex<GateState>, Condvar)>);

#[derive(Debug, Default)]
struct GateState {
    is_shut: bool,
    /// True while the control thread carries out a request.
    is_busy: bool,
}

/// Mark of a request that the control thread carries out.
#[derive(Debug)]
pub(super) struct BegunRequest<'a>(&'a ControlThreadGate);

impl ControlThreadGate {
    /// Shuts the gate, so that no request begins. Returns true if none is being carried out.
    pub(crate) fn shut(&self) -> bool {
        let mut state = self.lock();
        state.is_shut = true;
        !state.is_busy
    }

    /// Opens the gate.
    pub(crate) fn open(&self) {
        self.lock().is_shut = false;
        self.0.1.notify_all();
    }

    /// Waits until the gate is open, and begins a request.
    pub(super) fn begin(&self) -> BegunRequest<'_> {
        let waited = self.0.1.wait_while(self.lock(), |state| state.is_shut);
        waited.unwrap_or_else(PoisonError::into_inner).is_busy = true;
        BegunRequest(self)
    }

    fn lock(&self) -> MutexGuard<'_, GateState> {
        self.0.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for BegunRequest<'_> {
    fn drop(&mut self) {
        self.0.lock().is_busy = false;
    }
}
