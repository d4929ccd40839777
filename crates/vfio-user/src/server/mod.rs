//! Server of the vfio-user protocol: one [`ServerSession`] per connection, between a socket and a [`ServedDevice`].
//!
//! Refused with an error: migration, dirty page tracking, ioeventfds, twin sockets, DMA by message.

mod answer;
mod counters;
mod device;
mod dma;
mod info;
mod irq;
mod region;
mod resume;

use alloc::vec::Vec;

pub use counters::SessionCounters;
pub use device::{DmaWindow, DmaWindowFile, IrqChange, RegionInfo, RequestCompletionTiming, ServedDevice};

use crate::decoder::{Decoder, MessageBody, ProtocolError, ReceivedMessage};
use crate::outbox::MessageOutbox;
use crate::wire::{Command, Errno, MAX_DMA_MAPS, MessageHeader, MessageType, VersionCapabilities};
use answer::ReplyWriter;
use dma::{DmaWindowRange, DmaWindowTable};
use info::VersionNegotiationError;
use region::{SuspendedRead, SuspendedWrites};

/// Number of unsent reply bytes at which a session stops handling messages. A client that does not read its replies
/// costs the server at most this much memory and one more reply.
pub const OUTBOX_LIMIT: usize = 256 * 1024;

/// Protocol version and capabilities that client and server have agreed on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NegotiatedVersion {
    /// Negotiated minor version of the protocol.
    pub minor: u16,
    /// Capabilities that the client has stated.
    pub client: VersionCapabilities,
    /// True if the client may send `REGION_WRITE_MULTI`.
    pub write_multiple: bool,
}

/// Progress of a session in one call of [`ServerSession::step`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SessionProgress {
    /// Progress: the session has handled a message; call again.
    Handled,
    /// Progress: the device has suspended a read, a message of writes, or an unmap; call again to continue with it. The
    /// message stays undone, and no later message is handled before.
    Suspended,
    /// Progress: no whole message is buffered; wait for the socket to become readable.
    Starved,
    /// Progress: too many replies are unsent; wait for the socket to become writable, and do not read from it.
    Blocked,
    /// Progress: the device has not finished the last message; call [`ServerSession::complete`] when the device has
    /// finished, and do not read from the socket before.
    Waiting,
}

/// Client's request that the device finishes later.
#[derive(Debug)]
struct PendingRequest {
    request: MessageHeader,
    /// DMA window that the pending request maps, if it maps one.
    window: Option<DmaWindowRange>,
}

/// Server side of a vfio-user connection.
#[derive(Debug)]
pub struct ServerSession<F> {
    decoder: Decoder<F>,
    state: SessionState,
    failed: Option<ProtocolError>,
}

/// State of the session without the decoder: the message that the session handles borrows from the decoder.
#[derive(Debug)]
struct SessionState {
    max_dma_maps: u32,
    negotiated: Option<NegotiatedVersion>,
    dma: DmaWindowTable,
    waiting: Option<PendingRequest>,
    /// Finished part of the message of writes that the device has suspended.
    suspended: Option<SuspendedWrites>,
    /// Read part of the reply to the read that the device has suspended.
    suspended_read: Option<SuspendedRead>,
    counters: SessionCounters,
}

impl<F> Default for ServerSession<F> {
    fn default() -> Self {
        Self::new(MAX_DMA_MAPS)
    }
}

impl<F> ServerSession<F> {
    /// Creates the session of a new connection, with at most `max_dma_maps` DMA windows.
    pub fn new(max_dma_maps: u32) -> Self {
        Self {
            decoder: Decoder::new(max_body),
            state: SessionState {
                max_dma_maps,
                negotiated: None,
                dma: DmaWindowTable::new(max_dma_maps as usize),
                waiting: None,
                suspended: None,
                suspended_read: None,
                counters: SessionCounters::default(),
            },
            failed: None,
        }
    }

    /// Adds the received bytes and descriptors of one `recvmsg` call: never merge two, or descriptors go to the wrong
    /// message (see [`decoder`](crate::decoder)). Then call [`step`](Self::step) until it returns something else than
    /// [`SessionProgress::Handled`].
    ///
    /// # Errors
    /// Too many unread bytes are buffered.
    pub fn push(&mut self, bytes: &[u8], fds: impl IntoIterator<Item = F>) -> Result<(), ProtocolError> {
        self.decoder.push(bytes, fds)
    }

    /// Handles one message of the client, and queues at most one reply.
    ///
    /// # Errors
    /// The connection must end: send the contents of `out` without blocking, then [`close`](Self::close). Every
    /// later call returns the same error.
    pub fn step<D: ServedDevice<F>>(
        &mut self,
        device: &mut D,
        out: &mut MessageOutbox<F>,
    ) -> Result<SessionProgress, ProtocolError> {
        if let Some(error) = self.failed {
            return Err(error);
        }
        if self.state.waiting.is_some() {
            return Ok(SessionProgress::Waiting);
        }
        if out.pending() >= OUTBOX_LIMIT {
            return Ok(SessionProgress::Blocked);
        }
        let Some(message) = self.decoder.next_message()? else { return Ok(SessionProgress::Starved) };
        let size = message.header.size.get() as usize;
        let outcome = self.state.message(message, device, out);
        self.failed = outcome.err();
        if self.is_suspended() {
            self.decoder.put_back(size);
            return Ok(SessionProgress::Suspended);
        }
        outcome.map(|()| SessionProgress::Handled)
    }

    /// Returns true if the device has suspended a message, which the next [`step`](Self::step) continues.
    pub fn is_suspended(&self) -> bool {
        self.state.is_suspended()
    }

    /// Returns true if the suspended message is an unmap. Another session that has the remaining windows can handle the message
    /// again with the same effect.
    pub fn is_repeatable(&self) -> bool {
        self.state.dma.is_unmapping()
    }

    /// Finishes the request for which the device had returned [`RequestCompletionTiming::Later`], with success or an error:
    /// queues the reply, and lets [`step`](Self::step) handle the next message. Does nothing without such a
    /// request.
    pub fn complete(&mut self, outcome: Result<(), Errno>, out: &mut MessageOutbox<F>) {
        if let Some(PendingRequest { request, window }) = self.state.waiting.take() {
            let mut answer = ReplyWriter::new(request, out);
            let outcome = outcome.map(|()| self.state.done(window, &mut answer));
            self.state.refuse(outcome, &mut answer);
        }
    }

    /// Ends the session of a closed connection: unmaps all DMA windows and drops all eventfds. The caller decides on a
    /// reset of the device.
    pub fn close<D: ServedDevice<F>>(mut self, device: &mut D) {
        self.state.dma.clear(device);
        for index in 0..device.info().irqs {
            // A device that fails here has nothing left to disable.
            let _ = device.set_irqs(IrqChange::Disable { index });
        }
    }

    /// Returns the negotiated version and capabilities, after a successful `VERSION`.
    pub fn negotiated(&self) -> Option<&NegotiatedVersion> {
        self.state.negotiated.as_ref()
    }

    /// Returns the number of the client's mapped DMA windows.
    pub fn dma_maps(&self) -> usize {
        self.state.dma.len()
    }

    /// Returns the session's counters of messages and accesses.
    pub fn counters(&self) -> SessionCounters {
        let mut counters = self.state.counters;
        counters.dropped_fds += self.decoder.dropped_fds();
        counters
    }
}

/// Returns the maximum body of a client's message in bytes: the command's limit for a request, and 0 for a reply, since
/// the server sends no requests.
fn max_body(header: &MessageHeader) -> usize {
    match (header.kind(), Command::from_number(header.command.get())) {
        (MessageType::Command, Some(command)) => command.max_request_body(),
        _ => 0,
    }
}

impl SessionState {
    fn is_suspended(&self) -> bool {
        self.suspended.is_some() || self.suspended_read.is_some() || self.dma.is_unmapping()
    }

    fn message<F, D: ServedDevice<F>>(
        &mut self,
        message: ReceivedMessage<'_, F>,
        device: &mut D,
        out: &mut MessageOutbox<F>,
    ) -> Result<(), ProtocolError> {
        self.counters.messages += u64::from(!self.is_suspended());
        let ReceivedMessage { header, body, fds } = message;
        if header.kind() == MessageType::Reply {
            self.counters.unasked_replies += 1;
            self.counters.dropped_fds += fds.len() as u64;
            return Ok(());
        }
        let mut answer = ReplyWriter::new(header, out);
        let outcome = match check(&header, body) {
            Ok((Command::Version, body)) if self.negotiated.is_none() => self.version(body, &mut answer)?,
            Ok((command, body)) => self.request(command, body, fds, device, &mut answer),
            Err(errno) => Err(errno),
        };
        self.refuse(outcome, &mut answer);
        Ok(())
    }

    /// Finishes a request, and inserts the DMA window that the request maps.
    fn done<F>(&mut self, window: Option<DmaWindowRange>, answer: &mut ReplyWriter<'_, F>) {
        if let Some(window) = window {
            self.dma.insert(window);
        }
        answer.send(&[]);
    }

    fn refuse<F>(&mut self, outcome: Result<(), Errno>, answer: &mut ReplyWriter<'_, F>) {
        if let Err(errno) = outcome {
            self.counters.refused += 1;
            answer.fail(errno);
        }
    }

    /// Replies to the client's request now, or records the request for a later reply.
    fn settle<F>(
        &mut self,
        window: Option<DmaWindowRange>,
        completion: RequestCompletionTiming,
        answer: &mut ReplyWriter<'_, F>,
    ) {
        match completion {
            RequestCompletionTiming::Now => self.done(window, answer),
            RequestCompletionTiming::Later => {
                self.waiting = Some(PendingRequest { request: answer.request(), window });
            }
        }
    }

    fn version<F>(
        &mut self,
        body: &[u8],
        answer: &mut ReplyWriter<'_, F>,
    ) -> Result<Result<(), Errno>, ProtocolError> {
        match info::version(body, self.max_dma_maps, answer) {
            Ok(negotiated) => self.negotiated = Some(negotiated),
            Err(VersionNegotiationError::Refused(errno)) => return Ok(Err(errno)),
            Err(VersionNegotiationError::Fatal(error)) => {
                answer.fail(Errno::EINVAL);
                return Err(error);
            }
        }
        Ok(Ok(()))
    }

    fn request<F, D: ServedDevice<F>>(
        &mut self,
        command: Command,
        body: &[u8],
        mut fds: Vec<F>,
        device: &mut D,
        answer: &mut ReplyWriter<'_, F>,
    ) -> Result<(), Errno> {
        let Some(negotiated) = self.negotiated else { return Err(Errno::EINVAL) };
        if !matches!(command, Command::DmaMap | Command::DeviceSetIrqs) {
            self.counters.dropped_fds += fds.len() as u64;
            fds.clear();
        }
        let Self { counters, suspended, suspended_read, .. } = self;
        match command {
            Command::RegionWrite => region::write((counters, suspended), body, device, answer),
            Command::RegionRead => region::read((counters, suspended_read), body, device, answer),
            Command::RegionWriteMulti if negotiated.write_multiple => {
                region::write_multi((counters, suspended), body, device, answer)
            }
            Command::DmaMap => {
                let (window, completion) = self.dma.map(body, fds, device)?;
                self.settle(Some(window), completion, answer);
                Ok(())
            }
            Command::DmaUnmap => self.dma.unmap(body, device, answer),
            Command::DeviceGetInfo => info::device(body, device, answer),
            Command::DeviceGetRegionInfo => info::region(body, device, answer),
            Command::DeviceGetIrqInfo => info::irq(body, device, answer),
            Command::DeviceSetIrqs => {
                let completion = irq::set(body, fds, device)?;
                self.settle(None, completion, answer);
                Ok(())
            }
            Command::DeviceReset => device.reset().map(|()| answer.send(&[])),
            _ => Err(Errno::EINVAL),
        }
    }
}

/// Returns a message's command and its body, or an error if the message is invalid or the command unsupported.
fn check<'a>(header: &MessageHeader, body: MessageBody<'a>) -> Result<(Command, &'a [u8]), Errno> {
    if header.kind() == MessageType::Unknown || header.is_error() {
        return Err(Errno::EINVAL);
    }
    match (Command::from_number(header.command.get()), body) {
        (Some(Command::DeviceGetRegionIoFds | Command::DirtyPages), _) => Err(Errno::ENOTSUP),
        (Some(command), MessageBody::Whole(body)) => Ok((command, body)),
        _ => Err(Errno::EINVAL),
    }
}
