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
use pcie::Function;
use std::time::Duration;
use units::WorkCost;

/// Maximum number of half-closed sockets of one function.
const MOST_OF_FUNCTION: usize = 4;
/// Maximum number of half-closed sockets of clients whose function is unknown.
pub(super) const MOST_OF_UNKNOWN: usize = 64;
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
/// Interval at which a half-closed socket is drained. Each time, the port receives as many bytes as its buffer holds.
const DRAIN_EVERY: Duration = Duration::from_millis(10);
/// Maximum number of receives that drain a half-closed socket at one time. A receive ends after a message with file
/// descriptors.
const DRAIN_RECEIVES: usize = 4;

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
    /// Function of the client, or `None` if it is unknown.
    owner: Option<Function>,
    stream: StreamSocket,
    /// Worker thread that closes file descriptors that the client still sends, and then the socket.
    closer: BlockingWorker,
    /// Times of the first call to [`Self::drain`] and of the last received bytes. `None` before the first call: until
    /// then the port may have opened uplinks and sockets, so the client's timeout has not begun.
    looked: Option<(Time, Time)>,
    /// Time of the next drain. A client that keeps sending gets no drain before.
    next: Time,
}

impl HalfClosedConnection {
    /// Shuts the connection down for writing. The client reads all that was sent, and then the end of the stream.
    fn new(owner: Option<Function>, stream: StreamSocket, closer: BlockingWorker) -> Self {
        // If the client has closed its end already, the failure has no consequence.
        let _ = stream.shut_down_writing();
        Self { owner, stream, closer, looked: None, next: Time::ZERO }
    }

    /// Reads and drops bytes that the client has sent, if the time for it has come. Adds the cost to `cost`. Returns true
    /// if the socket can be closed.
    fn drain(&mut self, buffer: &mut [u8], now: Time, cost: &mut WorkCost) -> bool {
        if now < self.next {
            return false;
        }
        let mut fds = ReceivedFds::new();
        let (first, active) = self.looked.get_or_insert((now, now));
        let until = *first + DRAIN;
        self.next = until.min(now + DRAIN_EVERY);
        let mut room = buffer.len();
        for _ in 0..DRAIN_RECEIVES {
            if room == 0 || self.closer.backlog() > MOST_CLOSING {
                break;
            }
            *cost = *cost + WorkCost::MESSAGE;
            match self.stream.recv(&mut buffer[..room], &mut fds) {
                Ok(SocketReceiveResult::Bytes(bytes)) => {
                    (room, *active) = (room - bytes, now);
                    *cost = *cost + WorkCost::of_transfer(bytes);
                    if !fds.is_empty() {
                        self.closer.discard(std::mem::take(&mut fds));
                    }
                }
                Ok(SocketReceiveResult::WouldBlock) => {
                    let end = until.min(*active + DRAINED);
                    self.next = self.next.min(end);
                    return now >= end;
                }
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
    /// connection later. Returns the cost of draining the function's oldest connection, if that is closed early.
    pub(super) fn add(
        &mut self,
        owner: Option<Function>,
        stream: StreamSocket,
        closer: BlockingWorker,
        buffer: &mut [u8],
        now: Time,
    ) -> WorkCost {
        let most = if owner.is_some() { MOST_OF_FUNCTION } else { MOST_OF_UNKNOWN };
        let mut cost = WorkCost::default();
        let mut own = self.0.iter().enumerate().filter(|(_, hung_up)| hung_up.owner == owner);
        let oldest = own.next().map(|(index, _)| index);
        // The oldest is one of them.
        if let Some(oldest) = oldest.filter(|_| own.count() + 1 >= most) {
            // A function whose clients connect and misbehave at this rate risks a reset of its own connections.
            let mut oldest = self.0.remove(oldest);
            oldest.next = now;
            oldest.drain(buffer, now, &mut cost);
            oldest.close();
        }
        self.0.push(HalfClosedConnection::new(owner, stream, closer));
        cost
    }

    /// Reads and drops what clients still send, and closes the connections that may be closed. Passes the cost to
    /// `charge`, with the function that pays. Returns the time of the next call.
    pub(super) fn drain(
        &mut self,
        buffer: &mut [u8],
        now: Time,
        mut charge: impl FnMut(Function, WorkCost),
    ) -> Option<Time> {
        let over = self.0.extract_if(.., |hung_up| {
            let mut cost = WorkCost::default();
            let over = hung_up.drain(buffer, now, &mut cost);
            hung_up.owner.into_iter().for_each(|function| charge(function, cost));
            over
        });
        over.for_each(HalfClosedConnection::close);
        self.0.iter().map(|hung_up| hung_up.next).min()
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
    use super::{
        DRAIN, DRAIN_EVERY, DRAINED, HalfClosedConnection, HalfClosedConnections, MOST_OF_FUNCTION,
        PendingDisconnect, SILENCE, WIND_DOWN,
    };
    use host::socket::{ReceivedFds, SocketReceiveResult, StreamSocket};
    use host::worker::BlockingWorker;
    use i82576::Time;
    use pcie::Function;
    use std::io::Read;
    use std::os::fd::OwnedFd;
    use std::os::unix::net::UnixStream;
    use std::time::Duration;
    use units::WorkCost;

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
        let mut hung_up = HalfClosedConnection::new(None, ours, closer());
        theirs.send(b"doorbell", &[]).unwrap();
        let mut buffer = [0; 64];
        assert!(!hung_up.drain(&mut buffer, START, &mut WorkCost::default()), "the client may still send");
        assert!(!hung_up.drain(&mut buffer, START + (DRAINED - STEP), &mut WorkCost::default()));
        assert!(hung_up.drain(&mut buffer, START + DRAINED, &mut WorkCost::default()));
        hung_up.close();
        let mut theirs = UnixStream::from(OwnedFd::from(theirs));
        let mut received = Vec::new();
        theirs.read_to_end(&mut received).expect("the client must read end of stream");
        assert_eq!(received, b"last");
    }

    #[test]
    fn drain_timeout_of_a_connection_starts_with_its_first_drain() {
        let (ours, theirs) = StreamSocket::pair().unwrap();
        let mut hung_up = HalfClosedConnection::new(None, ours, closer());
        let (mut buffer, late) = ([0; 8], START + DRAIN);
        assert!(!hung_up.drain(&mut buffer, late, &mut WorkCost::default()));
        theirs.send(b"doorbell", &[]).unwrap();
        assert!(!hung_up.drain(&mut buffer, late + (DRAINED - STEP), &mut WorkCost::default()));
        assert!(hung_up.drain(&mut buffer, late + (DRAINED - STEP) + DRAINED, &mut WorkCost::default()));
    }

    #[test]
    fn connection_of_a_sending_client_closes_in_bounded_time() {
        let (ours, theirs) = StreamSocket::pair().unwrap();
        let mut hung_up = HalfClosedConnection::new(None, ours, closer());
        let mut buffer = [0; 8];
        assert!(!hung_up.drain(&mut buffer, START, &mut WorkCost::default()));
        for step in 0..4 {
            theirs.send(&[0; 4096], &[]).unwrap();
            assert_eq!(
                hung_up.drain(&mut buffer, START + DRAIN * step / 3, &mut WorkCost::default()),
                step == 3
            );
        }
    }

    #[test]
    fn half_closed_socket_is_read_once_in_ten_milliseconds() {
        let (ours, theirs) = StreamSocket::pair().unwrap();
        let mut connections = HalfClosedConnections::default();
        let mut buffer = [0; 8];
        connections.add(Some(Function::Vf(0)), ours, closer(), &mut buffer, START);
        theirs.send(&[0; 4096], &[]).unwrap();
        let mut paid = Vec::new();
        for step in 0..3_000 {
            let now = START + DRAIN_EVERY * step / 1_000;
            let next = connections.drain(&mut buffer, now, |function, cost| paid.push((function, cost)));
            assert_eq!(next, Some(START + DRAIN_EVERY * (step / 1_000 + 1)), "step {step}");
        }
        let mut rest = [0; 8192];
        let rest = connections.0[0].stream.recv(&mut rest, &mut ReceivedFds::new()).unwrap();
        assert_eq!(rest, SocketReceiveResult::Bytes(4096 - 3 * buffer.len()));
        paid.retain(|(_, cost)| *cost > WorkCost::default());
        assert_eq!(paid, [(Function::Vf(0), WorkCost::MESSAGE); 3]);
    }

    #[test]
    fn cut_off_clients_of_one_vf_end_no_other_vfs_connection_early() {
        let mut connections = HalfClosedConnections::default();
        let (mut clients, closer) = (Vec::new(), closer());
        let mut buffer = [0; 8];
        let mut cut_off = |connections: &mut HalfClosedConnections, owner| {
            let (ours, theirs) = StreamSocket::pair().unwrap();
            connections.add(owner, ours, closer.clone(), &mut buffer, START);
            clients.push(theirs);
        };
        cut_off(&mut connections, Some(Function::Vf(1)));
        cut_off(&mut connections, None);
        (0..100).for_each(|_| cut_off(&mut connections, Some(Function::Vf(0))));
        let held = |owner| connections.0.iter().filter(|hung_up| hung_up.owner == owner).count();
        let owners = [Some(Function::Vf(1)), None, Some(Function::Vf(0))];
        assert_eq!(owners.map(held), [1, 1, MOST_OF_FUNCTION]);
    }
}
