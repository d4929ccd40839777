//! A process that the keeper has started: by a handle of it (a pidfd), which never comes to mean another process.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::process::{Signal, WaitId, WaitIdOptions, pidfd_send_signal, waitid};

/// How a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Death {
    /// By itself, with this status.
    Exit(i32),
    /// By this signal.
    Signal(i32),
}

/// A child of this process. Its handle can be read from when it has ended.
#[derive(Debug)]
pub(super) struct Process(OwnedFd);

impl Process {
    pub(super) fn of(handle: OwnedFd) -> Self {
        Self(handle)
    }

    /// Sends it a signal; one that has just died is heard of as such.
    pub(super) fn signal(&self, signal: Signal) {
        let _ = pidfd_send_signal(&self.0, signal);
    }

    /// How it ended, if it has. To be asked once: the call that answers has waited for the process.
    pub(super) fn death(&self) -> io::Result<Option<Death>> {
        let status = waitid(WaitId::PidFd(self.as_fd()), WaitIdOptions::EXITED | WaitIdOptions::NOHANG)?;
        Ok(status.map(|status| match (status.exit_status(), status.terminating_signal()) {
            (Some(status), _) => Death::Exit(status),
            (_, signal) => Death::Signal(signal.unwrap_or_default()),
        }))
    }
}

impl AsFd for Process {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
