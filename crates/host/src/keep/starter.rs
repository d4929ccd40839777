//! The starter: a process that starts hosts for the keeper process, since the keeper's seccomp filter forbids it to
//! start processes.
//!
//! ```text
//!   keeper ---- forks, before it gives anything up ----> starter
//!          ---- "keeper" or "predecessor", a socket ---->  copies itself; the copy becomes a host,
//!          <--- STARTED, a handle of the host -----------  which is the keeper's child
//! ```
//!
//! The starter holds its end of a socket to the keeper and the standard descriptors, and none of the kept ones. An
//! order is one of two words with the socket from which the host reads its heritage. Program, arguments and
//! environment were fixed when it was forked. It ends when the keeper does. It drops no rights, since hosts would
//! inherit that.

#![expect(
    unsafe_code,
    reason = "fork, and a child for one's parent, which the standard library does not have"
)]

use std::ffi::CStr;
use std::fs;
use std::io;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::process::CommandExt as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::Command;
use std::time::Duration;

use nix::sys::signal::{SigSet, SigmaskHow};
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::process::{Signal, setpgid};
use rustix::thread::set_name;

use super::heritage::{self, KEEPER, PREDECESSOR, number};
use super::keeper::say;
use super::message::{self, KeeperMessage};
use super::process::ChildProcess;
use super::store::PATIENCE;

/// Name in `ps` of the process that forks hosts. The kernel keeps 15 bytes.
const NAME: &CStr = c"softiov-starter";
/// Reply of the starter after it has started a host; the reply carries the host's pidfd.
const STARTED: &str = "STARTED=1";
/// Reply of the starter that could not start a host; the reply states the errno.
const FAILED: &str = "FAILED";
/// Timeout of the starter's reply to the keeper process, generous for a machine that swaps: after a timeout no host can
/// be started any more.
const ANSWER: Duration = Duration::from_secs(10);
/// Exit status of a host whose program cannot be run (as in shells).
const NO_PROGRAM: i32 = 127;

/// Keeper's connection to the starter, the process that forks hosts.
#[derive(Debug)]
pub(super) struct StarterProcessConnection {
    /// Socket to the starter process; `None` after a failure.
    line: Option<OwnedFd>,
    process: ChildProcess,
}

impl StarterProcessConnection {
    /// Forks the starter process. `command` builds a host's command line, in the starter.
    ///
    /// # Errors
    /// This process has a second thread, or the system is out of processes.
    pub(super) fn fork(command: &mut dyn FnMut() -> Command) -> io::Result<Self> {
        if fs::read_dir("/proc/self/task")?.count() > 1 {
            return Err(io::Error::other("a keeper must start before any other thread of its process"));
        }
        let (ours, theirs) = heritage::pair()?;
        // SAFETY: this is the only thread, so no other thread can start one.
        let handle = unsafe { copy_process(0) }?;
        let Some(handle) = handle else { run(&theirs, command) };
        set_socket_timeout(&ours, Timeout::Send, Some(PATIENCE))?;
        set_socket_timeout(&ours, Timeout::Recv, Some(ANSWER))?;
        Ok(Self { line: Some(ours), process: ChildProcess::of(handle) })
    }

    /// Has the starter process start a host that receives kept file descriptors from `socket`; see
    /// [`heritage::arrange`].
    ///
    /// # Errors
    /// The starter has ended, or the system is out of processes. A program that cannot be run shows as the host's
    /// exit.
    pub(super) fn start(&mut self, from: &str, socket: OwnedFd) -> io::Result<ChildProcess> {
        let gone = || io::Error::other("the process that starts hosts, softiov-starter, has ended");
        let line = self.line.as_ref().ok_or_else(gone)?;
        let asked = message::send(line, from, Some(socket.as_fd()));
        // From now on only the host holds this end, so that its exit closes the connection.
        drop(socket);
        match asked.and_then(|()| message::receive(line)) {
            Ok(Some(KeeperMessage { fd: Some(handle), .. })) => Ok(ChildProcess::of(handle)),
            Ok(Some(KeeperMessage { text, .. })) => {
                // Without room for the pidfd here the kernel drops it: the host then finds no heritage, and ends.
                Err(io::Error::from_raw_os_error(number(&text, FAILED).unwrap_or(libc::EMFILE)))
            }
            Ok(None) | Err(_) => {
                // A late reply would be read as the reply to the next order.
                self.process.signal(Signal::KILL);
                self.line = None;
                Err(gone())
            }
        }
    }

    /// Returns the starter process, so that the keeper process can wait for its end.
    pub(super) fn process(&self) -> &ChildProcess {
        &self.process
    }

    /// Returns true if the starter process can start hosts.
    pub(super) fn is_alive(&self) -> bool {
        self.line.is_some()
    }

    /// Reaps the starter process after its end.
    pub(super) fn reap(&mut self) {
        self.line = None;
        let _ = self.process.death();
    }
}

/// Forks hosts on the keeper's requests until the keeper process has ended: the main function of the starter process.
fn run(line: &OwnedFd, command: &mut dyn FnMut() -> Command) -> ! {
    // A panic must not unwind into the keeper's frames.
    let outcome = catch_unwind(AssertUnwindSafe(|| obey(line, command)));
    // SAFETY: ends the process without touching the keeper's buffers and descriptors.
    unsafe { libc::_exit(i32::from(!matches!(outcome, Ok(Ok(()))))) }
}

fn obey(line: &OwnedFd, command: &mut dyn FnMut() -> Command) -> io::Result<()> {
    close_all_but(line)?;
    set_name(NAME)?;
    // Blocks all signals: neither the terminal's, nor those sent to every process of a unit, are meant for it.
    setpgid(None, None)?;
    let signals = SigSet::all().thread_swap_mask(SigmaskHow::SIG_SETMASK)?;
    while let Some(KeeperMessage { text, fd }) = message::receive(line)? {
        let from = [KEEPER, PREDECESSOR].into_iter().find(|word| *word == text);
        let (Some(from), Some(socket)) = (from, fd) else {
            message::send(line, &format!("{FAILED}={}", libc::EINVAL), None)?;
            continue;
        };
        // SAFETY: the starter has one thread.
        match unsafe { copy_process(libc::CLONE_PARENT) } {
            Ok(None) => {
                signals.thread_set_mask()?;
                become_host(command(), from, socket);
            }
            Ok(Some(handle)) => message::send(line, STARTED, Some(handle.as_fd()))?,
            Err(error) => {
                let number = error.raw_os_error().unwrap_or(libc::EAGAIN);
                message::send(line, &format!("{FAILED}={number}"), None)?;
            }
        }
    }
    Ok(())
}

/// Runs the host's program in this process. On failure reports the error and ends the process.
fn become_host(mut command: Command, from: &str, socket: OwnedFd) -> ! {
    let error = heritage::arrange(&mut command, from, socket).exec();
    say(&format!("cannot run the host's program {}: {error}", command.get_program().display()));
    // SAFETY: ends the process, which is a copy.
    unsafe { libc::_exit(NO_PROGRAM) }
}

/// Closes every file descriptor of this process except the standard ones and the socket `line`.
fn close_all_but(line: &OwnedFd) -> io::Result<()> {
    let (first, line) = (libc::STDERR_FILENO as u32 + 1, line.as_raw_fd() as u32);
    for (from, to) in [(first, line - 1), (line + 1, u32::MAX)] {
        if from <= to {
            // SAFETY: only the starter does this, at its start. The owners of the descriptors are in frames that it
            // never returns to, so no code uses or closes them any more.
            let done = unsafe { libc::syscall(libc::SYS_close_range, from, to, 0) };
            if done < 0 {
                return Err(io::Error::last_os_error());
            }
        }
    }
    Ok(())
}

/// Copies this process like `fork`; with `CLONE_PARENT` the copy is a child of this process's parent. Returns `None` in
/// the copy, and the copy's pidfd in this process.
///
/// # Safety
/// This process has one thread. Otherwise the copy would keep another thread's half-made changes and locks.
unsafe fn copy_process(parent: libc::c_int) -> io::Result<Option<OwnedFd>> {
    let mut handle: RawFd = -1;
    let flags = parent | libc::CLONE_PIDFD | libc::SIGCHLD;
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
