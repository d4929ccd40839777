//! Life of a port: as long as a thread uses the port's sockets, clients or kept file descriptors.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Notification of the end of a port's life.
#[derive(Debug, Clone, Default)]
pub(super) struct PortLifeEnd(Arc<(Mutex<bool>, Condvar)>);

/// Handle that parts of a port hold while they use its sockets, clients or kept file descriptors. The port's life ends with
/// the last one.
#[derive(Debug, Clone)]
pub(super) struct PortLife {
    _notice: Arc<PortLifeEndNotice>,
}

#[derive(Debug)]
struct PortLifeEndNotice(PortLifeEnd);

impl PortLife {
    /// Begins a life, and returns it with the notification of its end.
    pub(super) fn begin() -> (Self, PortLifeEnd) {
        let end = PortLifeEnd::default();
        (Self { _notice: Arc::new(PortLifeEndNotice(end.clone())) }, end)
    }
}

impl Drop for PortLifeEndNotice {
    fn drop(&mut self) {
        *self.0.is_over() = true;
        self.0.0.1.notify_all();
    }
}

impl PortLifeEnd {
    pub(super) fn has_come(&self) -> bool {
        *self.is_over()
    }

    /// Waits up to `time` for the end of the life. Returns true if it has come.
    pub(super) fn wait(&self, time: Duration) -> bool {
        let waited = self.0.1.wait_timeout_while(self.is_over(), time, |is_over| !*is_over);
        *waited.unwrap_or_else(PoisonError::into_inner).0
    }

    fn is_over(&self) -> MutexGuard<'_, bool> {
        self.0.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
