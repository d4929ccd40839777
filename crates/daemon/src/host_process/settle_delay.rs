//! Reasons why a host must not leave its guests to the next process yet.

use crate::file_calls::PendingFileCall;
use std::time::Instant;
use thiserror::Error;

/// Reason why a host must not leave its guests to the next process yet.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum SettleDelay {
    /// The kernel ends a process only after its threads' file calls, and no process serves the guests meanwhile.
    #[error("{0}, and the process cannot end while its disk does not answer")]
    FileCall(PendingFileCall),
    /// A failed port that is not open again cannot pause.
    #[error("port {port} failed {:.1} s ago and is not open again", .failure.elapsed().as_secs_f64())]
    FailedPort {
        /// Name of the failed port.
        port: String,
        /// Time of the failure.
        failure: Instant,
    },
    /// The control thread carries out a request.
    #[error("a request is being carried out")]
    Request,
    /// Clients of ports are being disconnected that the configuration lacks.
    #[error("clients of removed ports are being disconnected")]
    RemovedPorts,
}
