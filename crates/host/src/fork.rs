//! Copies this process as `fork` does, for a process that must have another one start programs in its place.
//!
//! The standard library only starts programs, and only as children of this process. A copy runs a function of the same
//! program, and may become a child of this process's parent.

#![expect(
    unsafe_code,
    reason = "fork, and a child for one's parent, which the standard library does not have"
)]

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

/// Exit status of a copy whose function panicked, or which could not close its descriptors.
const FAILURE: i32 = 1;

/// Starts a copy of this process as its child, once in a process. The copy closes every descriptor but the standard ones and
/// `socket`, runs `body`, and exits with the status that `body` returns. `owned` are the other descriptors that this process
/// has opened: the caller lends them exclusively, so `body` cannot have captured one. Returns the copy's pidfd.
///
/// # Errors
/// This process has a second thread, whose locks the copy would never release. It has started a copy before, or has opened
/// a descriptor that is not in `owned`. The system is out of processes or descriptors.
pub fn start_only_copy<'a>(
    socket: OwnedFd,
    owned: impl Iterator<Item = &'a mut OwnedFd>,
    body: impl FnOnce(OwnedFd) -> i32,
) -> io::Result<OwnedFd> {
    static STARTED: AtomicBool = AtomicBool::new(false);
    let known: BTreeSet<RawFd> = owned.map(|fd| fd.as_raw_fd()).chain([socket.as_raw_fd()]).collect();
    if let Some((number, file)) = opened()?.into_iter().find(|(number, _)| !known.contains(number)) {
        return Err(io::Error::other(format!(
            "this process has opened file descriptor {number} ({}), which its copy would lose: close the file, or start the \
             copy before the file is opened",
            file.display()
        )));
    }
    if STARTED.swap(true, Ordering::Relaxed) {
        return Err(io::Error::other("this process has started its copy already"));
    }
    // SAFETY: `body` cannot use a descriptor other than `socket` and the standard ones: this process has opened only those in
    // `owned` besides, and they are lent to this function alone.
    unsafe { start_copy(socket, body) }
}

/// Starts a copy of this process as its child, which closes every descriptor but the standard ones and `socket` before it runs
/// `body`. Returns the copy's pidfd.
///
/// # Safety
/// `body` uses no descriptor that this process has opened but the standard ones and `socket`: another file may have its number
/// by then.
unsafe fn start_copy(socket: OwnedFd, body: impl FnOnce(OwnedFd) -> i32) -> io::Result<OwnedFd> {
    run_in_copy(0, || if close_all_but(&socket).is_ok() { body(socket) } else { FAILURE })
}

/// Returns the file descriptors that this process has opened itself, with their files: those that close on exec. The parent's
/// do not, and no value of this process owns one.
fn opened() -> io::Result<Vec<(RawFd, PathBuf)>> {
    let numbers: Vec<RawFd> = {
        let entries = fs::read_dir("/proc/self/fd")?.collect::<io::Result<Vec<_>>>()?;
        entries.iter().filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
    };
    let open = numbers.into_iter().filter_map(|number| {
        // SAFETY: the call reads a flag of a descriptor number, open or not. That of the folder is closed by now.
        let flags = unsafe { libc::fcntl(number, libc::F_GETFD) };
        let ours = number > libc::STDERR_FILENO && flags >= 0 && flags & libc::FD_CLOEXEC != 0;
        ours.then(|| (number, fs::read_link(format!("/proc/self/fd/{number}")).unwrap_or_default()))
    });
    Ok(open.collect())
}

/// Starts a copy of this process as a child of its parent. The copy has the same descriptors, runs `body`, and exits
/// with the status that `body` returns. Returns the copy's pidfd.
///
/// # Errors
/// This process has a second thread, or the system is out of processes or descriptors.
pub fn start_sibling(body: impl FnOnce() -> i32) -> io::Result<OwnedFd> {
    run_in_copy(libc::CLONE_PARENT, body)
}

/// Copies this process with further flags of `clone`, and runs `body` in the copy.
fn run_in_copy(flags: libc::c_int, body: impl FnOnce() -> i32) -> io::Result<OwnedFd> {
    if fs::read_dir("/proc/self/task")?.count() > 1 {
        return Err(io::Error::other("a process with several threads cannot be copied"));
    }
    // SAFETY: this is the only thread, so no other thread can start one.
    if let Some(handle) = unsafe { copy_process(flags) }? {
        return Ok(handle);
    }
    // A panic must not unwind into the frames of the process that was copied.
    let status = catch_unwind(AssertUnwindSafe(body)).unwrap_or(FAILURE);
    // SAFETY: ends the copy without touching buffers and descriptors of frames that it never returns to.
    unsafe { libc::_exit(status) }
}

/// Closes every file descriptor of this process except the standard ones and the socket `kept`.
fn close_all_but(kept: &OwnedFd) -> io::Result<()> {
    let (first, kept) = (libc::STDERR_FILENO as u32 + 1, kept.as_raw_fd() as u32);
    for (from, to) in [(first, kept - 1), (kept + 1, u32::MAX)] {
        if from <= to {
            // SAFETY: only a new copy does this. The owners of the descriptors are in frames that it never returns
            // to, and the copy's function uses none of them.
            let done = unsafe { libc::syscall(libc::SYS_close_range, from, to, 0) };
            if done < 0 {
                return Err(io::Error::last_os_error());
            }
        }
    }
    Ok(())
}

/// Copies this process like `fork`; with `CLONE_PARENT` the copy is its parent's child. Returns `None` in the copy,
/// and its pidfd in this process.
///
/// # Safety
/// This process has one thread. Otherwise the copy would keep another thread's half-made changes and locks.
unsafe fn copy_process(flags: libc::c_int) -> io::Result<Option<OwnedFd>> {
    let mut handle: RawFd = -1;
    let flags = flags | libc::CLONE_PIDFD | libc::SIGCHLD;
    // SAFETY: memory is copied and not shared, and without a stack of its own the copy continues on its copy of
    // this one. The kernel writes one descriptor to `handle`, here. No thread-local state of the C library changes
    // but the thread id, which no call of the copies reads.
    let pid = unsafe { libc::syscall(libc::SYS_clone, flags, 0, &raw mut handle, 0, 0) };
    match pid {
        0 => Ok(None),
        // SAFETY: the kernel has just opened it for this process.
        1.. => Ok(Some(unsafe { OwnedFd::from_raw_fd(handle) })),
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn process_with_several_threads_is_not_copied() {
        // The test's harness has a thread of its own.
        assert!(start_sibling(|| 0).is_err());
    }

    #[test]
    fn copy_is_not_started_by_a_process_with_other_open_files() {
        let file = fs::File::open("/dev/null").unwrap();
        let (socket, _) = std::os::unix::net::UnixStream::pair().unwrap();
        let refused = start_only_copy(socket.into(), std::iter::empty(), |_| 0).unwrap_err().to_string();
        assert!(refused.contains("has opened file descriptor"), "{refused}");
        drop(file);
    }
}
