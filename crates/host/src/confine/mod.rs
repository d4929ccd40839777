//! Gives up the rights that a process no longer needs: its user, its capabilities, most system calls and most files.
//!
//! An attacker who takes over a thread through a defect of this program gets as few rights as possible.
//! [`become_user`] and [`restrict_files`] are for the first thread, before it starts others; each thread then
//! applies its part of [`ThreadSandbox`]. The restrictions are inherited by every child: a program that needs more
//! rights must be started by another process. Namespaces and cgroups are the service manager's.

mod landlock;
mod privilege;
mod seccomp;
mod table;
#[cfg(test)]
mod tests;
mod trap;

use crate::jobs::ThreadlessWorkers;
use std::io;
use std::sync::mpsc;
use std::thread::{self, JoinHandle};

pub use landlock::{LandlockEnforcement, LandlockRules, restrict_files};
pub use privilege::{ThreadCapabilities, become_user};
pub use seccomp::{SeccompMode, UnknownSeccompMode};
pub use table::ThreadRole;
pub use trap::EXIT_STATUS;

/// Reason why a thread could not give up a right.
#[derive(Debug, thiserror::Error)]
pub enum SandboxError {
    /// The process cannot switch to the configured user.
    #[error("cannot become user {user}: {source}; start the host as root, or leave the user out")]
    User {
        /// Name or number of the configured user.
        user: String,
        /// The kernel's error for the switch to the user.
        source: io::Error,
    },
    /// The kernel refuses to drop a thread's capabilities.
    #[error("cannot drop capabilities: {0}")]
    Capabilities(io::Error),
    /// The kernel has no seccomp, or refuses the filter.
    #[error("cannot restrict system calls: {0}; start with --seccomp false to run without the filter")]
    Seccomp(io::Error),
    /// The kernel has Landlock and refuses the rules.
    #[error("cannot restrict file access: {0}; start with --landlock false to run without the restriction")]
    Landlock(io::Error),
    /// The kernel refuses to start another thread.
    #[error("cannot start a restricted thread: {0}")]
    Thread(io::Error),
}

/// Restrictions that the host's threads apply to themselves, by their roles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ThreadSandbox {
    /// Action on system calls that the thread's role does not permit.
    pub seccomp: SeccompMode,
    /// Linux capabilities that the thread keeps.
    pub capabilities: ThreadCapabilities,
}

/// Seccomp filter and capabilities for one thread, compiled while an error can still be reported.
#[derive(Clone, Debug)]
pub struct PreparedSandbox {
    filter: seccomp::SeccompFilters,
    capabilities: ThreadCapabilities,
    /// Workers that take the place of threads for blocking jobs, in a simulation.
    threadless: Option<ThreadlessWorkers>,
}

impl ThreadSandbox {
    /// Compiles the restrictions of a role's threads.
    ///
    /// # Errors
    /// [`SandboxError::Seccomp`].
    pub fn prepare(self, role: ThreadRole) -> Result<PreparedSandbox, SandboxError> {
        // rustix caches the page size on its first call, which needs a call or file that a confined thread lacks.
        let _ = rustix::param::page_size();
        let filter = seccomp::SeccompFilters::compile(role, self.seccomp)?;
        Ok(PreparedSandbox { filter, capabilities: self.capabilities, threadless: None })
    }
}

impl PreparedSandbox {
    /// Makes [`BlockingWorker`](crate::worker::BlockingWorker)s of this sandbox run no threads: their jobs wait in
    /// `workers`. For simulations.
    #[must_use]
    pub fn without_threads(self, workers: &ThreadlessWorkers) -> Self {
        Self { threadless: Some(workers.clone()), ..self }
    }

    pub(crate) fn threadless(&self) -> Option<&ThreadlessWorkers> {
        self.threadless.as_ref()
    }

    /// Restricts the calling thread, and threads that it starts. The restriction cannot be undone.
    ///
    /// # Errors
    /// [`SandboxError::Capabilities`], [`SandboxError::Seccomp`]; the thread should end.
    pub fn apply(&self) -> Result<(), SandboxError> {
        self.capabilities.apply().map_err(SandboxError::Capabilities)?;
        self.filter.apply()
    }

    /// Starts a thread that restricts itself before it runs `body`, and waits until it is restricted.
    ///
    /// # Errors
    /// [`SandboxError::Thread`], [`SandboxError::Capabilities`] or [`SandboxError::Seccomp`]; then `body` does not
    /// run.
    pub fn spawn(
        &self,
        name: &str,
        body: impl FnOnce() + Send + 'static,
    ) -> Result<JoinHandle<()>, SandboxError> {
        self.start(name, body)?.wait()
    }

    /// Starts a thread that restricts itself as [`PreparedSandbox::spawn`] does, without waiting until it is
    /// restricted.
    ///
    /// # Errors
    /// [`SandboxError::Thread`].
    pub fn start(
        &self,
        name: &str,
        body: impl FnOnce() + Send + 'static,
    ) -> Result<StartingThread, SandboxError> {
        let (sender, confined) = mpsc::channel();
        let prepared = self.clone();
        let confine = move || {
            let outcome = prepared.apply();
            let confined = outcome.is_ok();
            // The starter waits for this message only.
            if sender.send(outcome).is_ok() && confined {
                body();
            }
        };
        let thread = thread::Builder::new().name(name.to_owned()).spawn(confine);
        Ok(StartingThread { thread: thread.map_err(SandboxError::Thread)?, confined })
    }
}

/// Thread that was started and has not confirmed its restriction yet.
#[derive(Debug)]
pub struct StartingThread {
    thread: JoinHandle<()>,
    confined: mpsc::Receiver<Result<(), SandboxError>>,
}

impl StartingThread {
    /// Waits until the started thread is restricted.
    ///
    /// # Errors
    /// [`SandboxError::Capabilities`], [`SandboxError::Seccomp`] or [`SandboxError::Thread`]; then its body does
    /// not run.
    pub fn wait(self) -> Result<JoinHandle<()>, SandboxError> {
        let ended =
            || Err(SandboxError::Thread(io::Error::other("the new thread ended before its restriction")));
        self.confined.recv().unwrap_or_else(|_| ended())?;
        Ok(self.thread)
    }
}
