//! The end of a connection that leaves the client's VMM alive.
//!
//! A socket that is closed while bytes wait in it resets the connection: the other side reads ECONNRESET, and QEMU
//! (11.1) aborts on it. So a client is let go in steps. It is served until it falls silent ([`WindDown`]); then our
//! half of the connection is shut down, what it still sends is read and dropped, and the socket is closed when
//! nothing comes any more ([`HungUp`]). Both steps are bounded in time.
//!
//! Left out: telling the guest before, which is the PF driver's part.

use super::connection::{Half, Over};
use super::hal::now;
use super::{Phase, Port};
use host::socket::{FdBatch, Received, Stream};
use host::worker::Worker;
use i82576::Time;
use pcie::Function;
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
pub(super) const DRAIN_EVERY: Duration = Duration::from_millis(10);
const DRAIN_RECEIVES: usize = 64;

/// A client that is served for the last time.
#[derive(Debug, Clone, Copy)]
pub(super) struct WindDown {
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
pub(super) struct HungUp {
    stream: Stream,
    /// Closes what the client still sends, and the socket in the end.
    closer: Worker,
    until: Time,
    /// When the client last sent something.
    active: Time,
}

impl HungUp {
    /// Shuts our half down: the client reads all that was sent to it, and then the end of the stream.
    pub(super) fn new(stream: Stream, closer: Worker, now: Time) -> Self {
        // A client that has gone already needs no word of it.
        let _ = stream.shut_down_writing();
        Self { stream, closer, until: now + DRAIN, active: now }
    }

    /// Reads what came since the last call, and drops it. Answers whether the socket can be closed.
    pub(super) fn drain(&mut self, buffer: &mut [u8], now: Time) -> bool {
        let mut fds = FdBatch::new();
        for _ in 0..DRAIN_RECEIVES {
            if self.closer.backlog() > MOST_CLOSING {
                return now >= self.until;
            }
            match self.stream.recv(buffer, &mut fds) {
                Ok(Received::Bytes(_)) => {
                    self.active = now;
                    if !fds.is_empty() {
                        self.closer.discard(std::mem::take(&mut fds));
                    }
                }
                Ok(Received::WouldBlock) => return now >= self.until.min(self.active + DRAINED),
                Ok(Received::Closed) | Err(_) => return true,
            }
        }
        now >= self.until
    }
}

impl Port {
    /// Begins the end: no new clients; guests are told that their VFs stop, rather than finding out; and every client is
    /// let go.
    pub(super) fn end(&mut self) {
        if self.phase != Phase::Serving {
            return;
        }
        self.phase = Phase::Ending;
        self.card.remove(&mut self.bus);
        self.show_links();
        for slot in &mut self.slots {
            // No one waits for the socket any more; a failure here has no consequence.
            let _ = self.poller.remove(&slot.listener);
            slot.next = None;
        }
        for index in 0..self.slots.len() {
            self.wind_down(index, now());
        }
    }

    /// Whether the end has begun and every client is let go.
    pub(super) fn is_over(&self) -> bool {
        self.phase == Phase::Ending
            && self.hung_up.is_empty()
            && self.slots.iter().all(|slot| slot.connection.is_none())
    }

    /// Serves a function's client from now on only until it falls silent.
    pub(super) fn wind_down(&mut self, index: usize, now: Time) {
        let slot = &mut self.slots[index];
        if let Some(connection) = slot.connection.as_ref().filter(|_| slot.ending.is_none()) {
            slot.ending = Some(WindDown::new(connection.counters().messages, now));
        }
    }

    /// Tells a function's client that this was the end.
    pub(super) fn hang_up(&mut self, function: Function, stream: Stream) {
        if self.hung_up.len() >= MOST_HUNG_UP {
            // The one that has waited longest; clients that come and misbehave at this rate take the risk.
            let mut first = self.hung_up.remove(0);
            first.drain(&mut self.buffer, now());
            first.close();
        }
        let closer = self.bus.reach(function).errands.worker().clone();
        self.hung_up.push(HungUp::new(stream, closer, now()));
    }

    /// Goes on with what has to end. Answers when to look again.
    pub(super) fn part(&mut self) -> Option<Time> {
        let now = now();
        let mut next = self.cut_off_the_silent(now);
        for index in 0..self.slots.len() {
            let slot = &mut self.slots[index];
            let (Some(ending), Some(connection)) = (&mut slot.ending, &slot.connection) else { continue };
            let idle = !slot.more && connection.is_idle();
            match ending.look(connection.counters().messages, idle, now) {
                Some(look) => next = next.into_iter().chain([look]).min(),
                None => self.disconnect(index, &Over::Ended),
            }
        }
        let buffer = &mut self.buffer;
        let over = self.hung_up.extract_if(.., |hung_up| hung_up.drain(buffer, now));
        over.for_each(HungUp::close);
        let drain = (!self.hung_up.is_empty()).then(|| now + DRAIN_EVERY);
        next.into_iter().chain(drain).min()
    }
}

impl Port {
    /// Cuts off clients that are silent in the middle of a message for too long. Returns when to look again.
    fn cut_off_the_silent(&mut self, now: Time) -> Option<Time> {
        let mut next = None;
        for index in 0..self.slots.len() {
            let Some(connection) = &self.slots[index].connection else { continue };
            let Some(deadline) = connection.deadline() else { continue };
            match connection.half(now).filter(Half::is_overdue) {
                Some(half) => self.disconnect(index, &Over::Failed(half.to_string())),
                None => next = next.into_iter().chain([deadline]).min(),
            }
        }
        next
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
        let mut hung_up = HungUp::new(ours, closer(), START);
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
    fn a_client_that_never_stops_is_closed_all_the_same() {
        let (ours, theirs) = Stream::pair().unwrap();
        let mut hung_up = HungUp::new(ours, closer(), START);
        let mut buffer = [0; 8];
        for step in 0..4 {
            theirs.send(&[0; 4096], &[]).unwrap();
            assert_eq!(hung_up.drain(&mut buffer, START + DRAIN * step / 3), step == 3);
        }
    }
}
