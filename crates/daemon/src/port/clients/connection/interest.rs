//! Events of a client's socket that the port's poller reports.

use host::poll::{PollInterest, Poller};
use host::socket::StreamSocket;
use std::io;

/// Events of a client's socket that the poller reports now.
#[derive(Debug, Default)]
pub(in crate::port::clients) struct SocketInterest {
    /// Events of the socket for which the poller watches it; `None` if the poller does not watch the socket.
    watched: Option<PollInterest>,
}

impl SocketInterest {
    /// Updates the socket's events that the poller reports. While replies are `unsent`, the port reads nothing more.
    /// While the client is `waiting` for a blocking call, the port ignores the socket.
    pub(in crate::port::clients) fn update(
        &mut self,
        (waiting, unsent): (bool, bool),
        stream: &StreamSocket,
        poller: &Poller,
        token: u64,
    ) -> io::Result<()> {
        let wanted = match (waiting, unsent) {
            (true, _) => None,
            (false, false) => Some(PollInterest::NEWS),
            (false, true) => Some(PollInterest::WRITE),
        };
        match (std::mem::replace(&mut self.watched, wanted), wanted) {
            (before, wanted) if before == wanted => Ok(()),
            (Some(_), None) => poller.remove(stream),
            (None, Some(wanted)) => poller.add(stream, token, wanted),
            (_, Some(wanted)) => poller.modify(stream, token, wanted),
            (None, None) => Ok(()),
        }
    }
}
