//! Front end of the protocol, for tests and embedded guests: encodes requests and matches replies with them.
//!
//! It has no requests by the back end, and no postcopy migration. Replies come in the order of their requests.

use alloc::{collections::VecDeque, vec::Vec};

use thiserror::Error;
use zerocopy::FromBytes;
use zerocopy::little_endian::U64;

use crate::decoder::{MessageDecoder, ReceivedMessage, StreamError};
use crate::message::{FrontendRequest, InflightArea, MessageHeader, RequestCode};
use crate::outbox::OutgoingMessages;

/// Violation of the protocol by the back end: end the connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum BackendViolation {
    /// The front end can no longer find the boundaries between the back end's messages.
    #[error(transparent)]
    Stream(#[from] StreamError),
    /// A message is no reply to the oldest pending request.
    #[error("unexpected vhost-user message {0} from the back end")]
    UnexpectedMessage(u32),
    /// The body or the descriptors of a reply do not match its request.
    #[error("malformed vhost-user reply to {0:?}")]
    MalformedReply(RequestCode),
}

/// Reply of the back end to one request.
#[derive(Debug, PartialEq, Eq)]
pub enum BackendReply<F> {
    /// Reply: the back end has acknowledged a request with success.
    Accepted,
    /// Reply: the back end has refused a request, with this nonzero number.
    Refused(u64),
    /// Reply: feature bits, a number of queues or memory regions, or the device status.
    Number(u64),
    /// Reply: a ring is stopped.
    Base {
        /// Number of the stopped ring.
        ring: u32,
        /// Position of the ring, see [`RingBase::from_wire`](crate::message::RingBase::from_wire).
        base: u32,
    },
    /// Reply: contents of the configuration space, or `None` if the back end has refused the access.
    Config(Option<Vec<u8>>),
    /// Reply: memory that records unfinished descriptors.
    Inflight {
        /// Part of the file that has the records of unfinished ring descriptors.
        area: InflightArea,
        /// File descriptor of the file with the records of unfinished ring descriptors.
        fd: F,
    },
    /// Reply: the migration log is in use.
    LogSet,
}

/// Front end's side of a vhost-user connection.
#[derive(Debug)]
pub struct Frontend<F> {
    decoder: MessageDecoder<F>,
    /// Requests that have no reply yet; `true` if an acknowledgement is expected instead of a reply of the request's
    /// own.
    pending: VecDeque<(RequestCode, bool)>,
}

impl<F> Default for Frontend<F> {
    fn default() -> Self {
        Self::new()
    }
}

impl<F> Frontend<F> {
    /// Creates the front end's side of a new connection.
    pub fn new() -> Self {
        Self { decoder: MessageDecoder::new(), pending: VecDeque::new() }
    }

    /// Sends a request that has a reply of its own, or none.
    pub fn send<G>(&mut self, out: &mut OutgoingMessages<G>, request: &FrontendRequest, fds: Vec<G>) {
        self.queue(out, request, fds, false);
    }

    /// Sends a request, and asks for an acknowledgement if it has no reply of its own. `REPLY_ACK` must be negotiated.
    pub fn send_acknowledged<G>(
        &mut self,
        out: &mut OutgoingMessages<G>,
        request: &FrontendRequest,
        fds: Vec<G>,
    ) {
        self.queue(out, request, fds, true);
    }

    fn queue<G>(
        &mut self,
        out: &mut OutgoingMessages<G>,
        request: &FrontendRequest,
        fds: Vec<G>,
        acknowledged: bool,
    ) {
        let (code, body) = (request.code(), request.encode());
        out.message(&MessageHeader::request(code.number(), body.len(), acknowledged), &body, fds);
        if code.has_reply() || acknowledged {
            self.pending.push_back((code, !code.has_reply()));
        }
    }

    /// Returns the number of requests whose reply has not arrived.
    pub fn pending(&self) -> usize {
        self.pending.len()
    }

    /// Returns the maximum number of bytes for the next `recvmsg`.
    pub fn room(&self) -> usize {
        self.decoder.room()
    }

    /// Adds the bytes and descriptors of one `recvmsg`; then call [`next_reply`](Self::next_reply). The caller must
    /// close descriptors that stay in `fds`.
    ///
    /// # Errors
    /// The back end has violated the protocol.
    pub fn push(&mut self, bytes: &[u8], fds: &mut Vec<F>) -> Result<(), BackendViolation> {
        Ok(self.decoder.push(bytes, fds)?)
    }

    /// Returns the reply to the oldest pending request, if the reply has arrived.
    ///
    /// # Errors
    /// The back end has violated the protocol.
    pub fn next_reply(&mut self) -> Result<Option<BackendReply<F>>, BackendViolation> {
        let Some(message) = self.decoder.take()? else { return Ok(None) };
        let number = message.header.request.get();
        let expected = self
            .pending
            .pop_front_if(|(code, _)| code.number() == number && message.header.is_reply())
            .ok_or(BackendViolation::UnexpectedMessage(number))?;
        let (code, acknowledgement) = expected;
        let reply = if acknowledgement { acknowledged(&message) } else { parse(code, message) };
        reply.map(Some).ok_or(BackendViolation::MalformedReply(code))
    }
}

fn acknowledged<F>(message: &ReceivedMessage<F>) -> Option<BackendReply<F>> {
    let status = U64::read_from_bytes(&message.body).ok()?.get();
    Some(if status == 0 { BackendReply::Accepted } else { BackendReply::Refused(status) })
}

/// Parses the reply to a request that has one. Replies use the body layouts of requests.
fn parse<F>(code: RequestCode, message: ReceivedMessage<F>) -> Option<BackendReply<F>> {
    let ReceivedMessage { body, mut fds, .. } = message;
    Some(match code {
        RequestCode::GetVringBase => match FrontendRequest::parse(RequestCode::SetVringBase, &body).ok()? {
            FrontendRequest::SetVringBase { ring, base } => BackendReply::Base { ring, base },
            _ => return None,
        },
        RequestCode::GetConfig => match FrontendRequest::parse(code, &body) {
            Ok(FrontendRequest::GetConfig(access)) => BackendReply::Config(Some(access.contents)),
            _ => BackendReply::Config(None),
        },
        RequestCode::GetInflightFd => match FrontendRequest::parse(code, &body).ok()? {
            FrontendRequest::GetInflightFd(area) => BackendReply::Inflight { area, fd: fds.pop()? },
            _ => return None,
        },
        RequestCode::SetLogBase => BackendReply::LogSet,
        _ => BackendReply::Number(U64::read_from_bytes(&body).ok()?.get()),
    })
}
