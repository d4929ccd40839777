//! Why a guest did not do what it was asked, with the end of its console where that helps.

use std::io;
use std::time::Duration;

use super::control::Output;

/// Why a guest did not do what it was asked.
#[derive(Debug, thiserror::Error)]
pub enum GuestError {
    /// QEMU or its files could not be started.
    #[error("guest {name}: {source}")]
    Start {
        /// The guest.
        name: String,
        /// What the system said.
        source: io::Error,
    },
    /// The virtual machine ended.
    #[error("guest {name} ended ({status}); the end of its console and of QEMU's errors:\n{tail}")]
    Ended {
        /// The guest.
        name: String,
        /// How QEMU ended.
        status: String,
        /// The end of what it had printed.
        tail: String,
    },
    /// The guest did not finish in time.
    #[error("guest {name}: {what} took longer than {waited:?}; the end of its console:\n{tail}")]
    Late {
        /// The guest.
        name: String,
        /// What was waited for.
        what: String,
        /// For how long.
        waited: Duration,
        /// The end of what it had printed.
        tail: String,
    },
    /// The guest booted again while a command ran.
    #[error("guest {name} rebooted during: {what}; the end of its console:\n{tail}")]
    Rebooted {
        /// The guest.
        name: String,
        /// What was waited for.
        what: String,
        /// The end of what it had printed.
        tail: String,
    },
    /// A command's exit status was not zero, and the caller had asked for success.
    #[error("guest {name}: {what} ended with status {}: {}{}", output.status, output.stdout, output.stderr)]
    Status {
        /// The guest.
        name: String,
        /// The command.
        what: String,
        /// How it ended.
        output: Output,
    },
}

pub(super) type Result<T> = std::result::Result<T, GuestError>;
