//! Threads of a port's uplinks, counted while they run. A thread that waits for a disk or for the kernel delays neither the port
//! nor a hand-over: both only order it to end. Those that need its end wait for it here, with a bound.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Running threads of a port's uplinks.
#[derive(Debug, Clone, Default)]
pub(crate) struct UplinkThreads {
    /// Threads that hold devices, sockets or kept file descriptors of the port.
    pub(crate) devices: RunningThreads,
    /// Threads that read or write files.
    pub(crate) files: RunningThreads,
}

/// Number of running threads, with the notification of the last one's end.
#[derive(Debug, Clone, Default)]
pub(crate) struct RunningThreads(Arc<(Mutex<usize>, Condvar)>);

/// Mark of a running thread, which holds it until its end.
#[derive(Debug)]
pub(crate) struct RunningThread(RunningThreads);

impl UplinkThreads {
    /// Waits up to `time` until all threads have ended. Returns true if they have.
    pub(crate) fn wait(&self, time: Duration) -> bool {
        let deadline = Instant::now() + time;
        self.devices.wait(time) && self.files.wait(deadline.saturating_duration_since(Instant::now()))
    }

    /// Returns true if no thread runs.
    pub(crate) fn have_ended(&self) -> bool {
        self.devices.have_ended() && self.files.have_ended()
    }
}

impl RunningThreads {
    /// Counts one more thread until the mark is dropped.
    pub(crate) fn enter(&self) -> RunningThread {
        *self.count() += 1;
        RunningThread(self.clone())
    }

    /// Returns true if no thread runs.
    pub(crate) fn have_ended(&self) -> bool {
        *self.count() == 0
    }

    /// Waits up to `time` until all threads have ended. Returns true if they have.
    pub(crate) fn wait(&self, time: Duration) -> bool {
        let waited = self.0.1.wait_timeout_while(self.count(), time, |count| *count > 0);
        *waited.unwrap_or_else(PoisonError::into_inner).0 == 0
    }

    fn count(&self) -> MutexGuard<'_, usize> {
        self.0.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for RunningThread {
    fn drop(&mut self) {
        *self.0.count() -= 1;
        self.0.0.1.notify_all();
    }
}
