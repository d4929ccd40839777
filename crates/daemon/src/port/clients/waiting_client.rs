//! Client that waits for a function: the next one, after a client that has hung up, or a refused front end.

use host::socket::StreamSocket;
use i82576::Time;
use std::time::Duration;

/// Time for which the port holds the connection of a refused front end. So a starting QEMU makes one attempt a second.
pub(super) const HOLD: Duration = Duration::from_secs(1);

/// Client that waits for a function.
#[derive(Debug)]
pub(super) struct WaitingClient {
    stream: StreamSocket,
    /// Time at which the port disconnects a refused front end. `None` for a client that connected after the present
    /// client had hung up: it waits until all messages of that client are handled.
    until: Option<Time>,
}

impl WaitingClient {
    /// Creates a refused front end, whose connection ends after [`HOLD`].
    pub(super) fn refused(stream: StreamSocket, now: Time) -> Self {
        Self { stream, until: Some(now + HOLD) }
    }

    /// Creates the client that gets the function as soon as its present client, which has hung up, has ended.
    pub(super) fn successor_of_hung_up(stream: StreamSocket) -> Self {
        Self { stream, until: None }
    }

    /// Returns true if this client is the next one of the function, and not refused.
    pub(super) fn is_next(&self) -> bool {
        self.until.is_none()
    }

    /// Returns the time at which the port disconnects a refused front end, or `None` for the next client.
    pub(super) fn until(&self) -> Option<Time> {
        self.until
    }

    /// Returns the socket of the client.
    pub(super) fn into_stream(self) -> StreamSocket {
        self.stream
    }
}
