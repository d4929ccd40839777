//! A client's connection to one function: the socket, the session on it, and what could not be sent yet. Left out:
//! what messages do to the function.

use super::device::FunctionDevice;
use super::hal::now;
use host::poll::{Interest, Poller};
use host::socket::{FdBatch, Received, Sent, Stream};
use host::worker::LateFd;
use i82576::Time;
use std::io;
use std::os::fd::AsFd;
use std::time::Duration;
use vfio_user::outbox::Outbox;
use vfio_user::server::{Counters, Session, Step};
use vfio_user::wire::Errno;

/// Receives and messages that one visit to a connection may take, and how long: other VFs wait meanwhile. The
/// time counts when messages are expensive, such as one window among tens of thousands.
const RECEIVES: usize = 8;
const MESSAGES: usize = 256;
const TURN: Duration = Duration::from_micros(500);

/// Which descriptors are lost cannot be told, and a window without its memory would fail without a word.
const LOST_FDS: &str =
    "descriptors were lost: it sent too many at once, or this process may open no more (ulimit -n)";

/// Why a connection is over.
#[derive(Debug)]
pub(super) enum Over {
    /// The client has gone.
    Closed,
    /// The client does not speak the protocol, or the socket broke.
    Failed(String),
}

/// What a visit left behind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Visit {
    /// Everything that is there was handled.
    Done,
    /// There may be more: come back without waiting.
    More,
    /// Errands have to be done first: come back when one is.
    Waiting,
}

/// What is left of a visit.
#[derive(Debug)]
struct Turn {
    messages: usize,
    began: Time,
}

impl Turn {
    fn is_over(&self) -> bool {
        self.messages == 0 || now().since(self.began) >= TURN
    }
}

/// A connected client.
#[derive(Debug)]
pub(super) struct Connection {
    stream: Stream,
    session: Session<LateFd>,
    outbox: Outbox<LateFd>,
    fds: FdBatch,
    /// What the poller waits for on the socket, if it is there.
    interest: Option<Interest>,
    /// Errands have to be done first.
    waiting: bool,
}

impl Connection {
    pub(super) fn new(stream: Stream) -> Self {
        Self {
            stream,
            session: Session::default(),
            outbox: Outbox::new(),
            fds: FdBatch::new(),
            interest: Some(Interest::READ),
            waiting: false,
        }
    }

    pub(super) fn stream(&self) -> &Stream {
        &self.stream
    }

    pub(super) fn counters(&self) -> Counters {
        self.session.counters()
    }

    /// Handles what the client has sent, as far as one visit goes, and sends what is to be answered.
    pub(super) fn visit(
        &mut self,
        device: &mut FunctionDevice<'_>,
        buffer: &mut [u8],
    ) -> Result<Visit, Over> {
        let visited = self.receive(device, buffer);
        if let Err(Over::Failed(_)) = visited {
            // What was answered before comes before the end, as far as the socket takes it at once.
            let _ = self.send();
        }
        visited
    }

    fn receive(&mut self, device: &mut FunctionDevice<'_>, buffer: &mut [u8]) -> Result<Visit, Over> {
        if self.waiting {
            return Ok(Visit::Waiting);
        }
        let mut turn = Turn { messages: MESSAGES, began: now() };
        for _ in 0..RECEIVES {
            match self.steps(device, &mut turn)? {
                Visit::Done if self.outbox.pending() > 0 => return Ok(Visit::Done),
                Visit::Done => {}
                other => return Ok(other),
            }
            let errands = device.errands();
            if errands.are_many() {
                errands.catch_up();
                self.waiting = true;
                return Ok(Visit::Waiting);
            }
            match self.stream.recv(buffer, &mut self.fds) {
                Ok(Received::Bytes(_)) if self.fds.truncated() => return Err(Over::Failed(LOST_FDS.into())),
                Ok(Received::Bytes(count)) => {
                    let fds = self.fds.drain().map(|fd| errands.keep(fd));
                    let pushed = self.session.push(&buffer[..count], fds);
                    pushed.map_err(|error| Over::Failed(error.to_string()))?;
                }
                Ok(Received::WouldBlock) => return Ok(Visit::Done),
                Ok(Received::Closed) => return Err(Over::Closed),
                Err(error) => return Err(Over::Failed(error.to_string())),
            }
        }
        Ok(Visit::More)
    }

    /// Handles whole messages until there is none, or replies pile up.
    fn steps(&mut self, device: &mut FunctionDevice<'_>, turn: &mut Turn) -> Result<Visit, Over> {
        loop {
            if turn.is_over() {
                self.send()?;
                return Ok(Visit::More);
            }
            turn.messages -= 1;
            let step = self.session.step(device, &mut self.outbox);
            let step = step.map_err(|error| Over::Failed(error.to_string()))?;
            if step != Step::Handled {
                self.send()?;
            }
            match step {
                Step::Handled => {}
                Step::Starved => return Ok(Visit::Done),
                Step::Waiting => {
                    self.waiting = true;
                    return Ok(Visit::Waiting);
                }
                Step::Blocked if self.outbox.pending() > 0 => return Ok(Visit::Done),
                Step::Blocked => {}
            }
        }
    }

    /// The errands that were waited for are done. If it was a request's, this is its outcome.
    pub(super) fn complete(&mut self, outcome: Result<(), Errno>) {
        self.waiting = false;
        self.session.complete(outcome, &mut self.outbox);
    }

    fn send(&mut self) -> Result<(), Over> {
        while let Some(chunk) = self.outbox.chunk() {
            let mut fds = Vec::new();
            fds.extend(chunk.fds.iter().map(AsFd::as_fd));
            match self.stream.send(chunk.bytes, &fds) {
                Ok(Sent::Bytes(count)) => {
                    drop(fds);
                    self.outbox.sent(count);
                }
                Ok(Sent::WouldBlock) => return Ok(()),
                Ok(Sent::Closed) => return Err(Over::Closed),
                Err(error) => return Err(Over::Failed(error.to_string())),
            }
        }
        Ok(())
    }

    /// Has the poller wait for what there is to wait for now: while replies wait, nothing more is read, and while
    /// errands are waited for, nothing is done at all, whatever the client does.
    pub(super) fn update_interest(&mut self, poller: &Poller, token: u64) -> io::Result<()> {
        let wanted = match (self.waiting, self.outbox.pending()) {
            (true, _) => None,
            (false, 0) => Some(Interest::READ),
            (false, _) => Some(Interest::WRITE),
        };
        match (std::mem::replace(&mut self.interest, wanted), wanted) {
            (before, wanted) if before == wanted => Ok(()),
            (Some(_), None) => poller.remove(&self.stream),
            (None, Some(wanted)) => poller.add(&self.stream, token, wanted),
            (_, Some(wanted)) => poller.modify(&self.stream, token, wanted),
            (None, None) => Ok(()),
        }
    }

    /// The client is gone: memory and interrupts go, the VF's state stays. What the client had sent and nobody took may
    /// hold descriptors, and so may the socket.
    pub(super) fn close(self, device: &mut FunctionDevice<'_>) {
        let Self { stream, session, outbox, fds, .. } = self;
        session.close(device);
        let errands = device.errands();
        errands.hang_up(stream);
        errands.discard((outbox, fds));
        errands.next_client();
    }
}
