//! Work that may hang in a virtual processor, on a thread of its own that a signal fetches back. Left out: work that
//! hangs elsewhere.

use std::os::raw::{c_int, c_void};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use std::{io, panic, thread};

use vmm_sys_util::signal::{Killable, SIGRTMIN, register_signal_handler};

use crate::measure::Unmeasured;

const LOOK: Duration = Duration::from_millis(5);

/// Does the work. After `patience` its flag is set, and it is signalled until it comes back.
pub(super) fn within<T: Send + 'static>(
    patience: Duration,
    work: impl FnOnce(&AtomicBool) -> Result<T, Unmeasured> + Send + 'static,
) -> Result<T, Unmeasured> {
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
            // Again and again, since a signal that comes before the processor is entered is lost.
            worker.kill(SIGRTMIN()).map_err(system)?;
        }
        thread::sleep(LOOK);
    }
    worker.join().unwrap_or_else(|panic| panic::resume_unwind(panic))
}

/// It is enough that there is a handler: the call into the kernel ends.
extern "C" fn interrupt(_: c_int, _: *mut libc::siginfo_t, _: *mut c_void) {}
