//! Ends a client's connection without a reset of the socket, so that the client's VMM survives.
//!
//! If a socket is closed with unread bytes in it, the kernel resets the connection. The client then reads
//! ECONNRESET, and QEMU (11.1) aborts on it. So a client is disconnected in steps. First it is served until it is
//! silent ([`PendingDisconnect`]). Then the port shuts down its half of the connection, and drops what the client still
//! sends. It closes the socket when no more bytes come ([`HalfClosedConnection`]). Both steps are bounded in time.
//!
//! The PF driver notifies the guest before that.

use host::socket::{ReceivedFds, SocketReceiveResult, StreamSocket};
use host::worker::BlockingWorker;
use i82576::Time;
use std::time::Duration;

/// Maximum number of half-closed sockets that are drained at a time.
const MOST_HUNG_UP: usize = 64;
/// Maximum time for which a client is still served after the decision to disconnect it. A silence of [`SILENCE`] ends
/// this time early.
const WIND_DOWN: Duration = Duration::from_millis(500);
const SILENCE: Duration = Duration::from_millis(50);
/// Maximum time for which a half-closed socket is drained. A silence of [`DRAINED`] ends this time early. QEMU takes
/// the end of the stream from its own thread, within a millisecond if that thread is not starved.
const DRAIN: Duration = Duration::from_secs(1);
const DRAINED: Duration = Duration::from_millis(200);
/// Number of pending closes of a client's file descriptors at which the port stops reading from the client.
const MOST_CLOSING: usize = 256;
/// Interval at which half-closed sockets are drained.
const DRAIN_EVERY: Duration = Duration::from_millis(10);
/// Maximum number of receives that drain a half-closed socket at one time.
const DRAIN_RECEIVES: usize = 64;

/// Deadlines of a client that is being disconnected and still served.
#[derive(Debug, Clone, Copy)]
pub(in crate::port) struct PendingDisconnect {
    until: Time,
    /// Number of the client's messages at the last check, and the time of its last new message.
    messages: u64,
    active: Time,
}

impl PendingDisconnect {
    pub(super) fn new(messages: u64, now: Time) -> Self {
        Self { until: now + WIND_DOWN, messages, active: now }
    }

    /// Returns the time of the next check of a client that is being disconnected, or `None` to disconnect the client
    /// now. `idle` is false while messages or replies are pending.
    pub(super) fn next_check(&mut self, messages: u64, idle: bool, now: Time) -> Option<Time> {
        if messages != self.messages || !idle {
            (self.messages, self.active) = (messages, now);
        }
        let end = self.until.min(self.active + SILENCE);
        (now < end).then_some(end)
    }
}

/// Client connection that the port has shut down for writing, and reads until the client closes its end.
#[derive(Debug)]
struct HalfClosedConnection {
    stream: StreamSocket,
    /// Worker thread that closes file descriptors that the client still sends, and then the socket.
    closer: BlockingWorker,
    /// Times of the first call to [`Self::drain`] and of the last received bytes. `None` before the first call: until
    /// then the port may have opened uplinks and sockets, so the client's timeout has not begun.
    looked: Option<(Time, Time)>,
}

impl HalfClosedConnection {
    /// Shuts the connection down for writing. The client reads all that was sent, and then the end of the stream.
    fn new(stream: StreamSocket, closer: BlockingWorker) -> Self {
        // If the client has closed its end already, the failure has no consequence.
        let _ = stream.shut_down_writing();
        Self { stream, closer, looked: None }
    }

    /// Reads and drops the bytes that the client sent since the last call. Returns true if the socket can be closed.
    fn drain(&mut self, buffer: &mut [u8], now: Time) -> bool {
        let mut fds = ReceivedFds::new();
        let (first, active) = self.looked.get_or_insert((now, now));
        let until = *first + DRAIN;
        for _ in 0..DRAIN_RECEIVES {
            if self.closer.backlog() > MOST_CLOSING {
                return now >= until;
            }
            match self.stream.recv(buffer, &mut fds) {
                Ok(SocketReceiveResult::Bytes(_)) => {
                    *active = now;
                    if !fds.is_empty() {
                        self.closer.discard(std::mem::take(&mut fds));
                    }
                }
                Ok(SocketReceiveResult::WouldBlock) => return now >= until.min(*active + DRAINED),
                Ok(SocketReceiveResult::Closed) | Err(_) => return true,
            }
        }
        now >= until
    }
}

/// Client connections that the port has shut down for writing and still reads.
#[derive(Debug, Default)]
pub(super) struct HalfClosedConnections(Vec<HalfClosedConnection>);

impl HalfClosedConnections {
    /// Returns true if no half-closed connection is left.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Shuts a client's connection down for writing, and adds the connection to those to drain. `closer` closes the
    /// connection later.
    pub(super) fn add(&mut self, stream: StreamSocket, closer: BlockingWorker, buffer: &mut [u8], now: Time) {
        if self.0.len() >= MOST_HUNG_UP {
            // Closes the oldest early. Clients that connect and misbehave at this rate risk a reset.
            let mut first = self.0.remove(0);
            first.drain(buffer, now);
            first.close();
        }
        self.0.push(HalfClosedConnection::new(stream, closer));
    }

    /// Reads and drops what clients still send, and closes the connections that may be closed. Returns the time of the
    /// next call.
    pub(super) fn drain(&mut self, buffer: &mut [u8], now: Time) -> Option<Time> {
        let over = self.0.extract_if(.., |hung_up| hung_up.drain(buffer, now));
        over.for_each(HalfClosedConnection::close);
        (!self.0.is_empty()).then(|| now + DRAIN_EVERY)
    }
}

impl HalfClosedConnection {
    /// Closes the socket of a disconnected client on the worker thread, because unread file descriptors in it may block
    /// the close.
    fn close(self) {
        self.closer.discard(self.stream);
    }
}

#[cfg(test)]
mod tests {
    use super::{DRAIN, DRAINED, HalfClosedConnection, PendingDisconnect, SILENCE, WIND_DOWN};
    use host::socket::StreamSocket;
    use host::worker::BlockingWorker;
    use i82576::Time;
    use std::io::Read;
    use std::os::fd::OwnedFd;
    use std::os::unix::net::UnixStream;
    use std::time::Duration;

    const START: Time = Time::from_nanos(1_000_000_000);
    const STEP: Duration = Duration::from_millis(1);

    fn closer() -> BlockingWorker {
        BlockingWorker::start("closer").unwrap()
    }

    #[test]
    fn closing_connection_ends_after_client_silence_or_a_deadline() {
        let mut silent = PendingDisconnect::new(7, START);
        assert_eq!(silent.next_check(7, true, START), Some(START + SILENCE));
        assert_eq!(
            silent.next_check(8, true, START + STEP),
            Some(START + STEP + SILENCE),
            "a message restarts the silence"
        );
        assert_eq!(silent.next_check(8, true, START + STEP + SILENCE), None);

        let mut busy = PendingDisconnect::new(0, START);
        let last = START + WIND_DOWN;
        assert_eq!(busy.next_check(1, true, START + (WIND_DOWN - STEP)), Some(last));
        assert_eq!(busy.next_check(2, false, last), None);
    }

    #[test]
    fn disconnected_client_reads_end_of_stream_and_no_reset() {
        let (ours, theirs) = StreamSocket::pair().unwrap();
        ours.send(b"last", &[]).unwrap();
        let mut hung_up = HalfClosedConnection::new(ours, closer());
        theirs.send(b"doorbell", &[]).unwrap();
        let mut buffer = [0; 64];
        assert!(!hung_up.drain(&mut buffer, START), "the client may still send");
        assert!(!hung_up.drain(&mut buffer, START + (DRAINED - STEP)));
        assert!(hung_up.drain(&mut buffer, START + DRAINED));
        hung_up.close();
        let mut theirs = UnixStream::from(OwnedFd::from(theirs));
        let mut received = Vec::new();
        theirs.read_to_end(&mut received).expect("the client must read end of stream");
        assert_eq!(received, b"last");
    }

    #[test]
    fn drain_timeout_of_a_connection_starts_with_its_first_drain() {
        let (ours, theirs) = StreamSocket::pair().unwrap();
        let mut hung_up = HalfClosedConnection::new(ours, closer());
        let (mut buffer, late) = ([0; 8], START + DRAIN);
        assert!(!hung_up.drain(&mut buffer, late));
        theirs.send(b"doorbell", &[]).unwrap();
        assert!(!hung_up.drain(&mut buffer, late + (DRAINED - STEP)));
        assert!(hung_up.drain(&mut buffer, late + (DRAINED - STEP) + DRAINED));
    }

    #[test]
    fn connection_of_a_sending_client_closes_in_bounded_time() {
        let (ours, theirs) = StreamSocket::pair().unwrap();
        let mut hung_up = HalfClosedConnection::new(ours, closer());
        let mut buffer = [0; 8];
        assert!(!hung_up.drain(&mut buffer, START));
        for step in 0..4 {
            theirs.send(&[0; 4096], &[]).unwrap();
            assert_eq!(hung_up.drain(&mut buffer, START + DRAIN * step / 3), step == 3);
        }
    }
}
