//! Giving up what a process needs no longer: its user, its capabilities, most system calls, most files.
//!
//! Whoever takes a thread over through a defect of ours shall get as little with it as possible. [`become_user`] and
//! [`restrict_files`] are for the first thread, before it starts others; each thread then does its part of
//! [`Confinement`]. All of it holds for whatever the process starts, too: a program that shall have more must be
//! started by another process. Left out: namespaces and cgroups, which are the service manager's.

mod landlock;
mod privilege;
mod seccomp;
mod table;
#[cfg(test)]
mod tests;
mod trap;

use std::io;
use std::sync::mpsc;
use std::thread::{self, JoinHandle};

pub use landlock::{Enforced, Reach, restrict_files};
pub use privilege::{Capabilities, become_user};
pub use seccomp::{Seccomp, UnknownMode};
pub use table::Role;
pub use trap::EXIT_STATUS;

/// Why something could not be given up.
#[derive(Debug, thiserror::Error)]
pub enum ConfineError {
    /// The process cannot become that user.
    #[error("cannot become user {user}: {source}; start as root, or leave the user out")]
    User {
        /// The user.
        user: String,
        /// What the kernel said.
        source: io::Error,
    },
    /// A thread keeps its capabilities.
    #[error("capabilities cannot be given up: {0}")]
    Capabilities(io::Error),
    /// The kernel has no seccomp filters, or not this one.
    #[error("system calls cannot be restricted: {0}; --seccomp false does without")]
    Seccomp(io::Error),
    /// The kernel has Landlock and refuses the rules.
    #[error("files cannot be restricted: {0}; --landlock false does without")]
    Landlock(io::Error),
    /// There can be no more threads.
    #[error("cannot start a thread: {0}")]
    Thread(io::Error),
}

/// What threads give up, by their roles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Confinement {
    /// What becomes of calls that are not in the table.
    pub seccomp: Seccomp,
    /// The capabilities that stay.
    pub capabilities: Capabilities,
}

/// What one thread gives up, made ready where an error still has somebody to be told to.
#[derive(Clone, Debug)]
pub struct Prepared {
    filter: seccomp::Filter,
    capabilities: Capabilities,
}

impl Confinement {
    /// Prepares for a thread of this role.
    ///
    /// # Errors
    /// [`ConfineError::Seccomp`].
    pub fn prepare(self, role: Role) -> Result<Prepared, ConfineError> {
        // rustix asks the kernel once, by a call or a file that a thread need not have.
        let _ = rustix::param::page_size();
        let filter = seccomp::Filter::compile(role, self.seccomp)?;
        Ok(Prepared { filter, capabilities: self.capabilities })
    }
}

impl Prepared {
    /// Holds the calling thread to it, and the threads it starts. There is no way back.
    ///
    /// # Errors
    /// [`ConfineError::Capabilities`], [`ConfineError::Seccomp`]; the thread should end.
    pub fn apply(&self) -> Result<(), ConfineError> {
        self.capabilities.apply().map_err(ConfineError::Capabilities)?;
        self.filter.apply()
    }

    /// Starts a thread that is held to it before it does anything else, and waits until it is.
    ///
    /// # Errors
    /// [`ConfineError::Thread`]; [`ConfineError::Capabilities`] and [`ConfineError::Seccomp`], and `body` does not run.
    pub fn spawn(
        &self,
        name: &str,
        body: impl FnOnce() + Send + 'static,
    ) -> Result<JoinHandle<()>, ConfineError> {
        self.start(name, body)?.wait()
    }

    /// Starts a thread as [`Prepared::spawn`] does, and leaves the wait to the caller, who may start others meanwhile.
    ///
    /// # Errors
    /// [`ConfineError::Thread`].
    pub fn start(&self, name: &str, body: impl FnOnce() + Send + 'static) -> Result<Starting, ConfineError> {
        let (sender, confined) = mpsc::channel();
        let prepared = self.clone();
        let confine = move || {
            let outcome = prepared.apply();
            let confined = outcome.is_ok();
            // Who started it waits for nothing else.
            if sender.send(outcome).is_ok() && confined {
                body();
            }
        };
        let thread = thread::Builder::new().name(name.to_owned()).spawn(confine);
        Ok(Starting { thread: thread.map_err(ConfineError::Thread)?, confined })
    }
}

/// A thread that was started, and has not said yet that it is held to what was prepared for it.
#[derive(Debug)]
pub struct Starting {
    thread: JoinHandle<()>,
    confined: mpsc::Receiver<Result<(), ConfineError>>,
}

impl Starting {
    /// Waits until the thread is held to what was prepared for it.
    ///
    /// # Errors
    /// [`ConfineError::Capabilities`], [`ConfineError::Seccomp`] or [`ConfineError::Thread`], and its body does not run.
    pub fn wait(self) -> Result<JoinHandle<()>, ConfineError> {
        let ended = || Err(ConfineError::Thread(io::Error::other("it ended at once")));
        self.confined.recv().unwrap_or_else(|_| ended())?;
        Ok(self.thread)
    }
}
