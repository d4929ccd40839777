//! Runs work that may hang in a virtual processor on a thread of its own, and interrupts the thread by a
//! signal after a timeout.

use std::os::raw::{c_int, c_void};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use std::{io, panic, thread};

use vmm_sys_util::signal::{Killable, SIGRTMIN, register_signal_handler};

use crate::measure::DurationProbeError;

const LOOK: Duration = Duration::from_millis(5);

/// Runs `work` on a thread with a timeout. After `patience` sets the flag that `work` was given, and signals
/// the thread until `work` returns.
pub(super) fn within<T: Send + 'static>(
    patience: Duration,
    work: impl FnOnce(&AtomicBool) -> Result<T, DurationProbeError> + Send + 'static,
) -> Result<T, DurationProbeError> {
    let system = |error: vmm_sys_util::errno::Error| io::Error::from_raw_os_error(error.errno());
    register_signal_handler(SIGRTMIN(), interrupt).map_err(system)?;
    let given_up = Arc::new(AtomicBool::new(false));
    let worker = thread::spawn({
        let given_up = Arc::clone(&given_up);
        move || work(&given_up)
    });
    let deadline = Instant::now() + patience;
    while !worker.is_finished() {
        if Instant::now() > deadline {
            given_up.store(true, Ordering::Relaxed);
            // Repeated, since a signal before the processor is entered has no effect.
            worker.kill(SIGRTMIN()).map_err(system)?;
        }
        thread::sleep(LOOK);
    }
    worker.join().unwrap_or_else(|panic| panic::resume_unwind(panic))
}

/// Signal handler that does nothing: since it exists, the signal makes the interrupted kernel call return.
extern "C" fn interrupt(_: c_int, _: *mut libc::siginfo_t, _: *mut c_void) {}
