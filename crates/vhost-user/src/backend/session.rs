//! Session of a back end: receives messages, hands events and tasks to the host, and queues replies.

use alloc::vec::Vec;

use thiserror::Error;

use super::event::{BackendEvent, HostOperation, HostOperationOutcome};
use super::memory::MemoryTable;
use super::offer::BackendOffer;
use super::requests::{RequestResult, UnfinishedRequest};
use super::state::{BackendCounters, SessionState};
use crate::decoder::{MessageDecoder, ReceivedMessage, StreamError};
use crate::message::{MessageHeader, RequestCode, RequestError};
use crate::outbox::OutgoingMessages;

/// Number of unsent replies at which a session stops handling messages. A front end waits for each reply, so usually at
/// most one is unsent.
pub const MAX_UNSENT_REPLIES: usize = 16;

/// Error after which the connection must end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum SessionError {
    /// The session can no longer find the boundaries between the front end's messages.
    #[error(transparent)]
    Stream(#[from] StreamError),
    /// The front end has sent a reply, although the session sends no requests.
    #[error("unexpected vhost-user reply to request {0}")]
    UnexpectedReply(u32),
    /// The session has refused a request whose reply cannot report a refusal, so that the front end would continue with
    /// a wrong assumption.
    #[error("vhost-user request {request} is refused: {reason}")]
    Refused {
        /// Number of the request that the session refused.
        request: u32,
        /// Reason for which the session refused the request.
        reason: RequestError,
    },
}

/// Result of one call of [`BackendSession::step`].
#[derive(Debug, PartialEq, Eq)]
pub enum BackendProgress<F> {
    /// Progress: the session has handled a message without an event; call again.
    Handled,
    /// Progress: no whole message was received; wait for the socket to become readable.
    Starved,
    /// Progress: too many replies are unsent; wait for the socket to become writable, and do not read from it.
    Blocked,
    /// Progress: the host has not completed the last task; call [`BackendSession::complete`] when it has.
    Waiting,
    /// Progress: the host must apply this event, and call again.
    Event(BackendEvent<F>),
    /// Progress: the host must carry out this task, and call [`BackendSession::complete`].
    Task(HostOperation<F>),
}

/// Request whose task the host has not completed.
#[derive(Debug)]
struct PendingHostOperation {
    header: MessageHeader,
    rest: UnfinishedRequest,
}

/// Back end's side of a vhost-user connection. `F` is the type of a file descriptor: one that closes on drop, or a
/// number in tests.
#[derive(Debug)]
pub struct BackendSession<F> {
    pub(super) decoder: MessageDecoder<F>,
    pub(super) state: SessionState<F>,
    /// Task that the session has not passed to the host yet, since events come first.
    task: Option<HostOperation<F>>,
    pending: Option<PendingHostOperation>,
    /// Reply that is sent once the host has applied all events of its request.
    reply: Option<(MessageHeader, Vec<u8>, Vec<F>)>,
    failed: Option<SessionError>,
}

impl<F> BackendSession<F> {
    /// Creates the session of a new connection. The device's rings are stopped and disabled.
    pub fn new(offer: BackendOffer) -> Self {
        Self {
            decoder: MessageDecoder::new(),
            state: SessionState::new(offer.limited()),
            task: None,
            pending: None,
            reply: None,
            failed: None,
        }
    }

    /// Returns the maximum bytes of the next `recvmsg`. Returns 0 if [`step`](Self::step) must be called first.
    pub fn room(&self) -> usize {
        self.decoder.room()
    }

    /// Returns the number of received bytes of the front end's incomplete message, and the message's size in bytes if
    /// its header was received.
    pub fn partial(&self) -> (usize, Option<u32>) {
        self.decoder.partial()
    }

    /// Adds the bytes and descriptors of one `recvmsg`, of at most [`room`](Self::room) bytes. Then call
    /// [`step`](Self::step) until it returns [`BackendProgress::Starved`], `Blocked` or `Waiting`. Descriptors that stay
    /// in `fds` are the caller's to close.
    ///
    /// # Errors
    /// The connection must end.
    pub fn push(&mut self, bytes: &[u8], fds: &mut Vec<F>) -> Result<(), SessionError> {
        Ok(self.decoder.push(bytes, fds)?)
    }

    /// Returns the next event or task, or handles one message. A message causes at most one task and one reply; its
    /// events are bounded by the number of rings.
    ///
    /// # Errors
    /// The connection must end, and the host must stop using all rings. Every later call returns the same error.
    pub fn step(&mut self, out: &mut OutgoingMessages<F>) -> Result<BackendProgress<F>, SessionError> {
        if let Some(event) = self.state.events.pop_front() {
            return Ok(BackendProgress::Event(event));
        }
        if let Some(task) = self.task.take() {
            return Ok(BackendProgress::Task(task));
        }
        if self.pending.is_some() {
            return Ok(BackendProgress::Waiting);
        }
        // The front end relies on what a reply confirms: the host has applied all events by now.
        if let Some((header, body, fds)) = self.reply.take() {
            out.message(&header, &body, fds);
            return Ok(BackendProgress::Handled);
        }
        if let Some(error) = self.failed {
            return Err(error);
        }
        if out.pending() >= MAX_UNSENT_REPLIES {
            return Ok(BackendProgress::Blocked);
        }
        let Some(message) = self.decoder.take()? else { return Ok(BackendProgress::Starved) };
        self.message(message);
        Ok(BackendProgress::Handled)
    }

    /// Finishes the task that [`step`](Self::step) returned last. Does nothing without such a task.
    pub fn complete(&mut self, outcome: HostOperationOutcome<F>) {
        let Some(pending) = self.pending.take_if(|_| self.task.is_none()) else { return };
        let finished = self.state.finish(pending.rest, outcome);
        let fds = |fd: Option<F>| fd.into_iter().collect();
        self.settle(&pending.header, finished.map(|(body, fd)| (body, fds(fd))));
    }

    /// Returns the memory regions that the host has mapped.
    pub fn memory(&self) -> &MemoryTable {
        &self.state.memory
    }

    /// Returns the feature bits of the device that the driver has accepted, or `None` before it has accepted any.
    pub fn features(&self) -> Option<u64> {
        self.state.features
    }

    /// Returns the protocol features that the front end has set.
    pub fn protocol_features(&self) -> u64 {
        self.state.protocol_features
    }

    /// Returns true if the host may access a ring.
    pub fn is_live(&self, ring: u32) -> bool {
        self.state.rings.get(ring as usize).is_some_and(|state| state.live)
    }

    /// Returns the session's counters.
    pub fn counters(&self) -> BackendCounters {
        self.state.counters
    }

    /// Returns true if a request waits for the host or for its reply, or if the session has failed.
    pub(super) fn is_unfinished(&self) -> bool {
        self.task.is_some() || self.pending.is_some() || self.reply.is_some() || self.failed.is_some()
    }

    fn message(&mut self, message: ReceivedMessage<F>) {
        self.state.counters.messages += 1;
        let ReceivedMessage { header, body, mut fds } = message;
        let number = header.request.get();
        if header.is_reply() {
            self.state.give_back(fds);
            self.failed = Some(SessionError::UnexpectedReply(number));
            return;
        }
        let outcome = self.state.handle(RequestCode::from_number(number), &body, &mut fds);
        self.state.give_back(fds);
        let settled = match outcome {
            Ok(RequestResult::Task(task, rest)) => {
                self.task = Some(task);
                self.pending = Some(PendingHostOperation { header, rest });
                return;
            }
            Ok(RequestResult::Reply(body)) => Ok((body, Vec::new())),
            Ok(RequestResult::Done) => Ok((Vec::new(), Vec::new())),
            Err(reason) => Err(reason),
        };
        self.settle(&header, settled);
    }

    /// Prepares the reply or the acknowledgement of a request, if there is one. Ends the session if a refusal cannot be
    /// reported to the front end.
    fn settle(&mut self, header: &MessageHeader, outcome: Result<(Vec<u8>, Vec<F>), RequestError>) {
        let request = header.request.get();
        let has_reply = RequestCode::from_number(request).is_some_and(RequestCode::has_reply);
        let acknowledged = header.needs_reply() && self.state.acknowledges();
        let (body, fds) = match outcome {
            Ok(reply) if has_reply => reply,
            Ok(_) if acknowledged => (0u64.to_le_bytes().to_vec(), Vec::new()),
            Ok(_) => return,
            Err(reason) => {
                self.state.counters.refused += 1;
                if has_reply || !acknowledged {
                    self.failed = Some(SessionError::Refused { request, reason });
                    return;
                }
                (1u64.to_le_bytes().to_vec(), Vec::new())
            }
        };
        self.reply = Some((header.reply(body.len()), body, fds));
    }
}
