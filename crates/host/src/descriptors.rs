//! File descriptors that this process was started with, and the open files behind descriptors.

#![expect(
    unsafe_code,
    reason = "taking over descriptors that the parent has opened, and kcmp, which rustix does not have"
)]

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, IntoRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::io::{FdFlags, fcntl_setfd};

/// Number of the first file descriptor that a service manager passes (`SD_LISTEN_FDS_START`).
const FIRST: RawFd = 3;

/// Takes over the first `count` file descriptors after the standard ones, which the service manager has opened
/// (`sd_listen_fds(3)`), and has programs that this process starts not inherit them. Call it before anything opens a
/// descriptor. Only the first call in a process takes descriptors; a later call returns none.
///
/// # Errors
/// Fewer descriptors are open.
pub fn take_passed(count: u16) -> io::Result<Vec<OwnedFd>> {
    static TAKEN: AtomicBool = AtomicBool::new(false);
    if count == 0 || TAKEN.swap(true, Ordering::Relaxed) {
        return Ok(Vec::new());
    }
    let take = |number: RawFd| {
        // SAFETY: the parent has opened this descriptor for us, and no code of this process owns it: this is the first
        // call, and the process has opened none yet.
        let fd = unsafe { OwnedFd::from_raw_fd(number) };
        match fcntl_setfd(&fd, FdFlags::CLOEXEC) {
            Ok(()) => Ok(fd),
            Err(error) => {
                // It is not open, so it cannot be closed.
                let _ = fd.into_raw_fd();
                Err(error.into())
            }
        }
    };
    (FIRST..).take(count.into()).map(take).collect()
}

/// Returns true if the kernel reports that two file descriptors refer to one open file. Returns false if the kernel
/// reports nothing.
#[must_use]
pub fn is_same_file(one: BorrowedFd<'_>, other: BorrowedFd<'_>) -> bool {
    const KCMP_FILE: libc::c_int = 0;
    let pid = std::process::id();
    // SAFETY: the call compares two descriptors of this process, and touches no memory.
    let order =
        unsafe { libc::syscall(libc::SYS_kcmp, pid, pid, KCMP_FILE, one.as_raw_fd(), other.as_raw_fd()) };
    order == 0
}
