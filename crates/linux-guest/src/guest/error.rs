//! Reasons why a guest failed, with the end of its console if that helps.

use std::io;
use std::time::Duration;

use super::control::GuestCommandOutput;

/// Error of starting or running a Linux guest.
#[derive(Debug, thiserror::Error)]
pub enum GuestError {
    /// QEMU could not be started, or its files could not be prepared.
    #[error("cannot start guest {name}: {source}")]
    Start {
        /// Name of the guest.
        name: String,
        /// Error of the system that prevented the start of QEMU.
        source: io::Error,
    },
    /// The virtual machine ended unexpectedly.
    #[error("guest {name} ended ({status}); the end of its console and of QEMU's errors:\n{tail}")]
    Ended {
        /// Name of the guest.
        name: String,
        /// Exit status of QEMU.
        status: String,
        /// End of the guest's console and of QEMU's errors.
        tail: String,
    },
    /// The guest did not finish an action in time.
    #[error("guest {name}: {what} took longer than {waited:?}; the end of its console:\n{tail}")]
    Late {
        /// Name of the guest.
        name: String,
        /// Description of the guest's action that took too long.
        what: String,
        /// Time that the caller waited for the guest.
        waited: Duration,
        /// End of the guest's console.
        tail: String,
    },
    /// QEMU refused or failed to move the guest to another QEMU.
    #[error("guest {name} did not migrate: {reason}; the end of its console:\n{tail}")]
    Migration {
        /// Name of the guest.
        name: String,
        /// Reason that QEMU or its monitor gave.
        reason: String,
        /// End of the guest's console and of QEMU's errors.
        tail: String,
    },
    /// The guest booted again while the host's command ran.
    #[error("guest {name} rebooted during {what}; the end of its console:\n{tail}")]
    Rebooted {
        /// Name of the guest.
        name: String,
        /// Description of the action that the boot interrupted.
        what: String,
        /// End of the guest's console.
        tail: String,
    },
    /// A command in the guest failed whose success the caller required.
    #[error("guest {name}: {what} ended with status {}: {}{}", output.status, output.stdout, output.stderr)]
    Status {
        /// Name of the guest.
        name: String,
        /// Text of the failed command.
        what: String,
        /// Result of the failed command.
        output: GuestCommandOutput,
    },
}

pub(super) type Result<T> = std::result::Result<T, GuestError>;
