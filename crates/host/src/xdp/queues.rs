//! The queues of an AF_XDP interface: they take turns to receive, and the first one sends.

use std::io;

use super::queue::{XdpQueue, XdpReceiveResult};
use super::{memory, ring};
use crate::packet::UnsentFrameCounts;

/// Maximum number of frames received from a queue before the next queue's turn.
const TURN: u32 = 64;

/// Queues of an interface, by which frames are received and sent without blocking.
#[derive(Debug)]
pub struct XdpQueues {
    queues: Vec<XdpQueue>,
    /// Index of the queue to receive from next.
    next: usize,
    /// Number of frames that may still be received before the next queue's turn.
    turn: u32,
    /// True once an AF_XDP ring of the interface held an index or an address out of range.
    broken: bool,
}

impl XdpQueues {
    /// Creates the set of an AF_XDP interface's queues; the first queue receives first.
    pub(super) fn new(queues: Vec<XdpQueue>) -> Self {
        Self { queues, next: 0, turn: TURN, broken: false }
    }

    /// Receives the next frame of an AF_XDP interface. Returns `None` if no queue has one. Queues take turns, so that a
    /// flood on one does not delay the others.
    ///
    /// # Errors
    /// A ring holds an index or an address out of range; the interface must be attached again.
    pub fn receive(&mut self, into: &mut [u8]) -> io::Result<Option<XdpReceiveResult>> {
        if self.broken {
            return Err(broken());
        }
        if self.turn == 0 {
            self.next_queue();
        }
        for _ in 0..self.queues.len() {
            let Some(queue) = self.queues.get_mut(self.next) else { break };
            match queue.receive(into) {
                Ok(Some(arrived)) => {
                    self.turn -= 1;
                    return Ok(Some(arrived));
                }
                Ok(None) => self.next_queue(),
                Err(ring::BrokenXdpRing) => return Err(broken()),
            }
        }
        Ok(None)
    }

    /// Makes the next queue the one to receive from.
    fn next_queue(&mut self) {
        (self.next, self.turn) = ((self.next + 1) % self.queues.len().max(1), TURN);
    }

    /// Queues a frame of at most [`super::LONGEST`] bytes. The next flush sends it at the latest. Returns the dropped
    /// frames.
    pub fn send(&mut self, frame: &[u8]) -> UnsentFrameCounts {
        if frame.len() > memory::ROOM {
            return UnsentFrameCounts { too_long: 1, ..UnsentFrameCounts::default() };
        }
        let lost = UnsentFrameCounts { no_room: 1, ..UnsentFrameCounts::default() };
        let Some(queue) = self.queues.first_mut() else { return lost };
        match queue.push(frame) {
            Ok(true) if queue.is_burst() => self.flush(),
            Ok(true) => UnsentFrameCounts::default(),
            Ok(false) => lost,
            Err(ring::BrokenXdpRing) => {
                self.broken = true;
                lost
            }
        }
    }

    /// Returns true if the interface had no room for all queued frames: call `flush` again soon, even without new
    /// frames.
    #[must_use]
    pub fn has_left(&self) -> bool {
        self.queues.first().is_some_and(XdpQueue::has_left)
    }

    /// Returns the number of queued frames that the interface has not sent. They leave when it has room and is up, or are
    /// dropped with this value.
    pub fn unsent(&mut self) -> u32 {
        self.queues.first_mut().map_or(0, XdpQueue::unsent)
    }

    /// Sends the queued frames. Those that the interface has no room for remain for a later flush. Returns the
    /// dropped frames.
    pub fn flush(&mut self) -> UnsentFrameCounts {
        let flushed = self.queues.first_mut().map_or(Ok(UnsentFrameCounts::default()), XdpQueue::flush);
        self.broken |= flushed.is_err();
        flushed.unwrap_or_default()
    }
}

fn broken() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "an index of an AF_XDP ring is out of range")
}
