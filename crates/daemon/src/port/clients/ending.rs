//! The end of a connection that leaves the client's VMM alive.
//!
//! A socket that is closed while bytes wait in it resets the connection: the other side reads ECONNRESET, and QEMU
//! (11.1) aborts on it. So a client is let go in steps. It is served until it falls silent ([`WindDown`]); then our
//! half of the connection is shut down, what it still sends is read and dropped, and the socket is closed when
//! nothing comes any more ([`HungUp`]). Both steps are bounded in time.
//!
//! Left out: telling the guest before, which is the PF driver's part.

use host::socket::{FdBatch, Received, Stream};
use host::worker::Worker;
use i82576::Time;
use std::time::Duration;

/// Sockets that are read after the end at a time.
const MOST_HUNG_UP: usize = 64;
/// The longest that a client is served once its end is decided, and how long it has to be silent to be let go.
const WIND_DOWN: Duration = Duration::from_millis(500);
const SILENCE: Duration = Duration::from_millis(50);
/// The longest that a socket is read after the end, and how long nothing has to come for it to be closed. QEMU takes
/// the end of the stream from its own thread, within a millisecond if that thread is not starved.
const DRAIN: Duration = Duration::from_secs(1);
const DRAINED: Duration = Duration::from_millis(200);
/// Closings that are not done at which nothing more is read from a client.
const MOST_CLOSING: usize = 256;
/// How often sockets are read after the end, and how many receives each may take then.
const DRAIN_EVERY: Duration = Duration::from_millis(10);
const DRAIN_RECEIVES: usize = 64;

/// A client that is served for the last time.
#[derive(Debug, Clone, Copy)]
pub(in crate::port) struct WindDown {
    until: Time,
    /// Messages at the last look, and when one was last seen.
    messages: u64,
    active: Time,
}

impl WindDown {
    pub(super) fn new(messages: u64, now: Time) -> Self {
        Self { until: now + WIND_DOWN, messages, active: now }
    }

    /// When to look again; `None` if the client is to be let go now. `idle` is false while messages or replies wait.
    pub(super) fn look(&mut self, messages: u64, idle: bool, now: Time) -> Option<Time> {
        if messages != self.messages || !idle {
            (self.messages, self.active) = (messages, now);
        }
        let end = self.until.min(self.active + SILENCE);
        (now < end).then_some(end)
    }
}

/// A connection that the port has shut down for writing, and reads until the client closes it.
#[derive(Debug)]
struct HungUp {
    stream: Stream,
    /// Closes what the client still sends, and the socket in the end.
    closer: Worker,
    /// The first look at the socket, and the last time when the client had sent something. `None` before the first look: between
    /// the end of the stream and that look a port may have opened uplinks and sockets, and that time is not the client's.
    looked: Option<(Time, Time)>,
}

impl HungUp {
    /// Shuts our half down: the client reads all that was sent to it, and then the end of the stream.
    fn new(stream: Stream, closer: Worker) -> Self {
        // A client that has gone already needs no word of it.
        let _ = stream.shut_down_writing();
        Self { stream, closer, looked: None }
    }

    /// Reads what came since the last call, and drops it. Answers whether the socket can be closed.
    fn drain(&mut self, buffer: &mut [u8], now: Time) -> bool {
        let mut fds = FdBatch::new();
        let (first, active) = self.looked.get_or_insert((now, now));
        let until = *first + DRAIN;
        for _ in 0..DRAIN_RECEIVES {
            if self.closer.backlog() > MOST_CLOSING {
                return now >= until;
            }
            match self.stream.recv(buffer, &mut fds) {
                Ok(Received::Bytes(_)) => {
                    *active = now;
                    if !fds.is_empty() {
                        self.closer.discard(std::mem::take(&mut fds));
                    }
                }
                Ok(Received::WouldBlock) => return now >= until.min(*active + DRAINED),
                Ok(Received::Closed) | Err(_) => return true,
            }
        }
        now >= until
    }
}

/// Connections that the port has shut down for writing and still reads.
#[derive(Debug, Default)]
pub(super) struct HungUps(Vec<HungUp>);

impl HungUps {
    /// Returns whether every client has closed its end.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds a connection whose client is told that this was the end. `closer` closes it.
    pub(super) fn add(&mut self, stream: Stream, closer: Worker, buffer: &mut [u8], now: Time) {
        if self.0.len() >= MOST_HUNG_UP {
            // The one that has waited longest; clients that come and misbehave at this rate take the risk.
            let mut first = self.0.remove(0);
            first.drain(buffer, now);
            first.close();
        }
        self.0.push(HungUp::new(stream, closer));
    }

    /// Reads what clients still send, and closes connections that are done. Returns when to do so again.
    pub(super) fn drain(&mut self, buffer: &mut [u8], now: Time) -> Option<Time> {
        let over = self.0.extract_if(.., |hung_up| hung_up.drain(buffer, now));
        over.for_each(HungUp::close);
        (!self.0.is_empty()).then(|| now + DRAIN_EVERY)
    }
}

impl HungUp {
    /// Closes the socket, elsewhere: descriptors may wait in it that nobody has received.
    fn close(self) {
        self.closer.discard(self.stream);
    }
}

#[cfg(test)]
mod tests {
    use super::{DRAIN, DRAINED, HungUp, SILENCE, WIND_DOWN, WindDown};
    use host::socket::Stream;
    use host::worker::Worker;
    use i82576::Time;
    use std::io::Read;
    use std::os::fd::OwnedFd;
    use std::os::unix::net::UnixStream;
    use std::time::Duration;

    const START: Time = Time::from_nanos(1_000_000_000);
    const STEP: Duration = Duration::from_millis(1);

    fn closer() -> Worker {
        Worker::start("closer").unwrap()
    }

    #[test]
    fn a_silent_client_is_let_go_and_a_busy_one_in_bounded_time() {
        let mut silent = WindDown::new(7, START);
        assert_eq!(silent.look(7, true, START), Some(START + SILENCE));
        assert_eq!(silent.look(8, true, START + STEP), Some(START + STEP + SILENCE), "it has spoken");
        assert_eq!(silent.look(8, true, START + STEP + SILENCE), None);

        let mut busy = WindDown::new(0, START);
        let last = START + WIND_DOWN;
        assert_eq!(busy.look(1, true, START + (WIND_DOWN - STEP)), Some(last));
        assert_eq!(busy.look(2, false, last), None);
    }

    #[test]
    fn what_comes_after_the_end_is_read_and_the_client_reads_the_end_and_no_reset() {
        let (ours, theirs) = Stream::pair().unwrap();
        ours.send(b"last", &[]).unwrap();
        let mut hung_up = HungUp::new(ours, closer());
        theirs.send(b"doorbell", &[]).unwrap();
        let mut buffer = [0; 64];
        assert!(!hung_up.drain(&mut buffer, START), "the client may say more");
        assert!(!hung_up.drain(&mut buffer, START + (DRAINED - STEP)));
        assert!(hung_up.drain(&mut buffer, START + DRAINED));
        hung_up.close();
        let mut theirs = UnixStream::from(OwnedFd::from(theirs));
        let mut heard = Vec::new();
        theirs.read_to_end(&mut heard).expect("no reset");
        assert_eq!(heard, b"last");
    }

    #[test]
    fn client_keeps_its_time_although_the_first_look_is_late() {
        let (ours, theirs) = Stream::pair().unwrap();
        let mut hung_up = HungUp::new(ours, closer());
        let (mut buffer, late) = ([0; 8], START + DRAIN);
        assert!(!hung_up.drain(&mut buffer, late));
        theirs.send(b"doorbell", &[]).unwrap();
        assert!(!hung_up.drain(&mut buffer, late + (DRAINED - STEP)));
        assert!(hung_up.drain(&mut buffer, late + (DRAINED - STEP) + DRAINED));
    }

    #[test]
    fn a_client_that_never_stops_is_closed_all_the_same() {
        let (ours, theirs) = Stream::pair().unwrap();
        let mut hung_up = HungUp::new(ours, closer());
        let mut buffer = [0; 8];
        assert!(!hung_up.drain(&mut buffer, START));
        for step in 0..4 {
            theirs.send(&[0; 4096], &[]).unwrap();
            assert_eq!(hung_up.drain(&mut buffer, START + DRAIN * step / 3), step == 3);
        }
    }
}
