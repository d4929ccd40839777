//! File descriptors that this process was started with, and the open files behind descriptors.

#![expect(
    unsafe_code,
    reason = "taking over descriptors that the parent has opened, and kcmp, which rustix does not have"
)]

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::io::{FdFlags, fcntl_setfd};

/// Number of the first file descriptor that a service manager passes (`SD_LISTEN_FDS_START`).
const FIRST: RawFd = 3;

/// Takes over the first `count` file descriptors after the standard ones, which the service manager has opened
/// (`sd_listen_fds(3)`), and has programs that this process starts not inherit them. Only the first call in a process takes
/// descriptors; a later call returns none.
///
/// # Errors
/// Fewer descriptors are open. One of them closes on exec: a parent cannot pass such a descriptor, so code of this process
/// has opened it.
pub fn take_passed(count: u16) -> io::Result<Vec<OwnedFd>> {
    static TAKEN: AtomicBool = AtomicBool::new(false);
    if count == 0 || TAKEN.swap(true, Ordering::Relaxed) {
        return Ok(Vec::new());
    }
    check_passed(count)?;
    // SAFETY: the descriptors were open when the program started, and this is the only call that takes them. The standard
    // library and rustix open descriptors that close on exec, so no value of this process owns one of these.
    let passed = unsafe { adopt_passed(count) };
    for fd in &passed {
        fcntl_setfd(fd, FdFlags::CLOEXEC)?;
    }
    Ok(passed)
}

/// Checks that the first `count` file descriptors after the standard ones are open, and were open when the program started.
fn check_passed(count: u16) -> io::Result<()> {
    for number in (FIRST..).take(count.into()) {
        // SAFETY: the call reads a flag of a descriptor number, open or not.
        let flags = unsafe { libc::fcntl(number, libc::F_GETFD) };
        if flags < 0 {
            return Err(io::Error::last_os_error());
        }
        if flags & libc::FD_CLOEXEC != 0 {
            return Err(io::Error::other(format!(
                "file descriptor {number} was not passed to this process, which has opened it: take passed descriptors \
                 before anything else is opened"
            )));
        }
    }
    Ok(())
}

/// Makes the first `count` file descriptors after the standard ones owned values.
///
/// # Safety
/// The descriptors are open, and no other value owns one of them now or later.
unsafe fn adopt_passed(count: u16) -> Vec<OwnedFd> {
    // SAFETY: the caller's promise.
    (FIRST..).take(count.into()).map(|number| unsafe { OwnedFd::from_raw_fd(number) }).collect()
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_support::{in_own_process, pass};
    use std::fs::File;
    use std::process::Command;

    /// Environment variable that makes a test the process to which descriptors are passed.
    const PASSED: &str = "SOFTIOV_TEST_PASSED";

    #[test]
    fn passed_descriptors_are_taken_once_and_close_on_exec() {
        let name = "descriptors::tests::passed_descriptors_are_taken_once_and_close_on_exec";
        if std::env::var_os(PASSED).is_some() {
            let taken = take_passed(2).unwrap();
            assert_eq!(taken.iter().map(AsRawFd::as_raw_fd).collect::<Vec<_>>(), [3, 4]);
            assert!(taken.iter().all(|fd| rustix::io::fcntl_getfd(fd) == Ok(FdFlags::CLOEXEC)));
            assert!(take_passed(2).unwrap().is_empty());
            return;
        }
        let mut command = Command::new(std::env::current_exe().unwrap());
        let fds = [(); 2].map(|()| OwnedFd::from(File::open("/dev/null").unwrap()));
        pass(&mut command, &fds).unwrap();
        let output = command.args(["--exact", name]).env(PASSED, "1").output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    }

    #[test]
    fn descriptors_of_this_process_are_not_taken() {
        let body = || {
            let own: Vec<File> = (0..8).map(|_| File::open("/dev/null").unwrap()).collect();
            assert!(own.iter().any(|file| (FIRST..FIRST + 64).contains(&file.as_raw_fd())));
            assert!(take_passed(64).is_err());
            assert!(own.iter().all(|file| file.metadata().is_ok()));
        };
        let output =
            in_own_process("descriptors::tests::descriptors_of_this_process_are_not_taken", body).unwrap();
        assert!(output.is_none_or(|output| output.status.success()));
    }
}
