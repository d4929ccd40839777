//! Process that the keeper process has started, identified by a pidfd, which never refers to another process.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::process::{Signal, WaitId, WaitIdOptions, pidfd_send_signal, waitid};

use crate::channel::HandOverChannel;
use crate::message::KeptFileDescriptors;

/// Cause of a process's end: the exit status, or the signal that killed the process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ProcessExitCause {
    /// The child process exited with this status.
    Exit(i32),
    /// This signal killed the child process.
    Signal(i32),
}

/// Descriptor (pidfd) of a child process. The pidfd becomes readable when the process has ended.
#[derive(Debug)]
pub(crate) struct ChildProcess(OwnedFd);

impl ChildProcess {
    pub(crate) fn of(handle: OwnedFd) -> Self {
        Self(handle)
    }

    /// Sends a signal to the child process. Ignores the error of a process that has just ended: `death` reports its
    /// end.
    pub(crate) fn signal(&self, signal: Signal) {
        let _ = pidfd_send_signal(&self.0, signal);
    }

    /// Returns the exit cause of the child process, or `None` while the process runs. Call this until it returns a
    /// cause: that call reaps the process.
    pub(crate) fn death(&self) -> io::Result<Option<ProcessExitCause>> {
        let status = waitid(WaitId::PidFd(self.as_fd()), WaitIdOptions::EXITED | WaitIdOptions::NOHANG)?;
        Ok(status.map(|status| match (status.exit_status(), status.terminating_signal()) {
            (Some(status), _) => ProcessExitCause::Exit(status),
            (_, signal) => ProcessExitCause::Signal(signal.unwrap_or_default()),
        }))
    }

    /// Sends the host the kept file descriptors. Kills a host that does not receive all of them, because the host would
    /// wait for the rest without end.
    pub(crate) fn give(&self, line: &HandOverChannel, shelf: &KeptFileDescriptors) -> io::Result<()> {
        line.give(shelf.iter()).inspect_err(|_| self.signal(Signal::KILL))
    }
}

impl AsFd for ChildProcess {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
