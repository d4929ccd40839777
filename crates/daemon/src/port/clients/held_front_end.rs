//! Refused front end whose connection the port holds for a while.

use host::socket::StreamSocket;
use i82576::Time;
use std::time::Duration;

/// Time for which the port holds the connection of a refused front end. So a starting QEMU makes one attempt a second.
const HOLD: Duration = Duration::from_secs(1);

/// Refused front end whose connection the port holds.
#[derive(Debug)]
pub(super) struct HeldFrontEnd {
    stream: StreamSocket,
    /// Time at which the port disconnects the front end.
    until: Time,
}

impl HeldFrontEnd {
    /// Begins to hold the connection of a front end, which ends after [`HOLD`].
    pub(super) fn new(stream: StreamSocket, now: Time) -> Self {
        Self { stream, until: now + HOLD }
    }

    /// Returns the time at which the port disconnects the front end.
    pub(super) fn until(&self) -> Time {
        self.until
    }

    /// Returns the socket of the front end.
    pub(super) fn into_stream(self) -> StreamSocket {
        self.stream
    }
}
