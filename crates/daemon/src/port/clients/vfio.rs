//! Connection of a vfio-user client: the socket, its session, and replies that are not sent yet.
//!
//! A successor can resume the client at any moment. Messages stay in the socket until they are handled, replies are
//! written to a file before they are sent, and one step saves the progress of both ([`ClientMessageProgress`],
//! [`journal`](super::journal)).
//!
//! Only the first part of an incomplete message leaves the socket early. A stream may be cut anywhere, and the kernel
//! charges a client some 3 KB for each piece in the socket, however short. A message in many pieces would fill the
//! socket before it is whole, and the client could not send the rest. So when no more bytes are there, the port holds
//! the received part in the reply file and consumes it, in one step. It keeps the descriptors of the part before. A
//! successor finds the part in the file, and the rest in the socket.
//!
//! `device` carries out the messages, and `partial` holds the received part of an incomplete one.

mod partial;

use super::connection::{
    ClientConnection, ClientServiceBudget, ClientServiceOutcome, ClientStall, ClientStallCause,
    DisconnectReason, PATIENCE, RECEIVES, SocketInterest, VisitResult,
};
use super::device::VfioFunction;
use super::errand::BlockingCallOutcome;
use super::holdings::ClientResources;
use super::journal::ClientMessageProgress;
use super::pages::SharedRegisterPages;
use crate::clock::TimeSource;
use crate::port::tokens;
use host::poll::Poller;
use host::socket::{ReceivedFds, ReplyLog, SocketReceiveResult, SocketSendResult, StreamSocket};
use host::worker::DeferredCloseFd;
use i82576::Time;
use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use units::WorkCost;
use vfio_user::outbox::MessageOutbox;
use vfio_user::server::{ServerSession, SessionCounters, SessionProgress};

/// Connection of a vfio-user client to one function of the card.
#[derive(Debug)]
pub(in crate::port) struct VfioUserConnection {
    stream: StreamSocket,
    session: ServerSession<DeferredCloseFd>,
    outbox: MessageOutbox<DeferredCloseFd>,
    replies: ReplyLog,
    fds: ReceivedFds,
    /// Copies of received file descriptors, each with the stream position up to which the socket holds the original.
    /// While a copy exists, consuming bytes from the socket cannot close the last reference to a descriptor, which
    /// could block. The worker thread closes the copies.
    copies: VecDeque<(u64, DeferredCloseFd)>,
    /// Number of bytes consumed from the client's socket.
    consumed: u64,
    /// Bytes that were received by peeking and are still in the socket.
    left: usize,
    /// Bytes of the first unfinished message that were consumed and are held for the successor process.
    taken: usize,
    /// Arrival time of the last byte of an incomplete message.
    since: Option<Time>,
    interest: SocketInterest,
    /// True while messages wait for a pending blocking call.
    waiting: bool,
}

impl VfioUserConnection {
    /// Creates the connection of a new client, and keeps the client's socket, reply file and register pages for a
    /// successor process. The client waits until that is done.
    pub(super) fn open(stream: StreamSocket, own: &mut ClientResources, now: Time) -> io::Result<Self> {
        let replies = ReplyLog::new()?;
        let connection = Self::inherit(stream, ServerSession::default(), MessageOutbox::new(), replies, now)?;
        let own_fds = [connection.stream.as_fd(), connection.replies.as_fd()];
        // Without copies the process is out of descriptors, and a successor cannot resume the client.
        let copies = own_fds.iter().map(BorrowedFd::try_clone_to_owned).collect::<Result<Vec<_>, _>>();
        let mut fds = copies.unwrap_or_default();
        let pages = own.pages.as_ref().and_then(|pages| SharedRegisterPages::fd(pages).ok());
        fds.extend(pages.filter(|_| !fds.is_empty()));
        let fds = own.successor.begin().into_iter().zip(fds).collect();
        own.errands.keep_client(fds, own.successor.keeper(0));
        Ok(Self { waiting: true, ..connection })
    }

    /// Continues the connection of a client of the previous host process.
    pub(in crate::port) fn inherit(
        stream: StreamSocket,
        session: ServerSession<DeferredCloseFd>,
        outbox: MessageOutbox<DeferredCloseFd>,
        replies: ReplyLog,
        now: Time,
    ) -> io::Result<Self> {
        stream.peek_from(0)?;
        let (fds, copies) = (ReceivedFds::new(), VecDeque::new());
        let taken = session.partial().received();
        let since = (taken > 0).then_some(now);
        let (interest, consumed, left, waiting) = (SocketInterest::default(), 0, 0, false);
        Ok(Self {
            stream,
            session,
            outbox,
            replies,
            fds,
            copies,
            consumed,
            left,
            taken,
            since,
            interest,
            waiting,
        })
    }

    fn receive(
        &mut self,
        device: &mut VfioFunction<'_>,
        buffer: &mut [u8],
        clock: &dyn TimeSource,
    ) -> VisitResult {
        if self.waiting {
            return Ok(ClientServiceOutcome::Waiting);
        }
        let budget = ClientServiceBudget::begin(device.now);
        for _ in 0..RECEIVES {
            match self.steps(device, budget, buffer, clock)? {
                done @ ClientServiceOutcome::Done if self.outbox.pending() > 0 => return Ok(done),
                ClientServiceOutcome::Done => {}
                other => return Ok(other),
            }
            let errands = device.errands();
            if errands.are_many() {
                errands.catch_up();
                self.waiting = true;
                return Ok(ClientServiceOutcome::Waiting);
            }
            match self.stream.peek(buffer, &mut self.fds) {
                Ok(SocketReceiveResult::Bytes(_)) if self.fds.truncated() => {
                    return Err(DisconnectReason::lost_fds());
                }
                Ok(SocketReceiveResult::Bytes(count)) => self.push(&buffer[..count], device)?,
                Ok(SocketReceiveResult::WouldBlock) => return self.hold_part(device, buffer),
                Ok(SocketReceiveResult::Closed) => return Err(DisconnectReason::Closed),
                Err(error) => return Err(DisconnectReason::failed(error)),
            }
        }
        Ok(ClientServiceOutcome::More)
    }

    fn push(&mut self, bytes: &[u8], device: &mut VfioFunction<'_>) -> Result<(), DisconnectReason> {
        device.own.account.charge(WorkCost::of_transfer(bytes.len()));
        self.left += bytes.len();
        self.since = None;
        let errands = device.errands();
        let behind = self.consumed + self.left as u64;
        for fd in self.fds.iter() {
            let copy = fd.try_clone_to_owned().map_err(DisconnectReason::failed)?;
            self.copies.push_back((behind, errands.keep(copy)));
        }
        let fds = self.fds.drain().map(|fd| errands.keep(fd));
        self.session.push(bytes, fds).map_err(DisconnectReason::failed)
    }

    /// Handles whole messages until none is left, replies pile up, a message has to wait, or the budget is used up.
    fn steps(
        &mut self,
        device: &mut VfioFunction<'_>,
        budget: ClientServiceBudget,
        buffer: &mut [u8],
        clock: &dyn TimeSource,
    ) -> VisitResult {
        loop {
            device.now = clock.now();
            if budget.is_used_up(&device.own.account, device.now) {
                self.settle(device, buffer)?;
                return Ok(ClientServiceOutcome::More);
            }
            device.own.account.charge(WorkCost::MESSAGE);
            let pending = self.outbox.pending();
            let step = self.session.step(device, &mut self.outbox).map_err(DisconnectReason::failed)?;
            device.own.account.charge(WorkCost::of_transfer(self.outbox.pending() - pending));
            // The journal must hold the removal of a window before it can hold another window over it.
            if step != SessionProgress::Handled || device.own.successor.is_touched() {
                self.settle(device, buffer)?;
            }
            match step {
                SessionProgress::Handled => {}
                SessionProgress::Suspended => return Ok(ClientServiceOutcome::More),
                SessionProgress::Starved => break,
                SessionProgress::Waiting => {
                    self.waiting = true;
                    return Ok(ClientServiceOutcome::Waiting);
                }
                SessionProgress::Blocked if self.outbox.pending() > 0 => break,
                SessionProgress::Blocked => {}
            }
        }
        Ok(ClientServiceOutcome::Done)
    }

    /// Saves the progress of the client for the successor process, takes handled messages out of the socket, and sends
    /// replies.
    fn settle(&mut self, device: &mut VfioFunction<'_>, buffer: &mut [u8]) -> Result<(), DisconnectReason> {
        self.note(device, buffer).map_err(DisconnectReason::failed)?;
        self.send()
    }

    fn note(&mut self, device: &mut VfioFunction<'_>, buffer: &mut [u8]) -> io::Result<()> {
        let done = self.taken + self.left - self.session.undone();
        if done > 0 {
            // Not for a suspended message alone: a successor handles the whole message again.
            device.save_configuration();
        }
        // The taken part begins the first message, so it is done together with that message.
        let handled = done.saturating_sub(self.taken);
        let fresh = self.outbox.fresh();
        let moves = !fresh.is_empty() && self.replies.make_room(fresh.len());
        self.replies.append(fresh)?;
        let before = device.own.successor.progress();
        let agreed = self.session.negotiated().map(|agreed| (agreed.minor, agreed.write_multiple));
        let mut progress = ClientMessageProgress { extent: self.replies.extent(), agreed, ..before };
        if done > 0 {
            // The descriptors of the message may be kept although its rest came before the first part was taken.
            device.own.successor.release_held();
            progress = progress.without_held();
        }
        if done == 0 && progress == before && !device.own.successor.is_touched() {
            return Ok(());
        }
        self.step(handled, progress, device, buffer)?;
        if moves {
            self.replies.settle()?;
        }
        if done > 0 && std::mem::take(&mut self.taken) > 0 {
            self.replies.release()?;
        }
        Ok(())
    }

    /// Saves the client's `progress` in the journal, valid at once, and consumes `bytes` of the socket.
    fn step(
        &mut self,
        bytes: usize,
        progress: ClientMessageProgress,
        device: &mut VfioFunction<'_>,
        buffer: &mut [u8],
    ) -> io::Result<()> {
        if bytes == 0 {
            device.own.successor.step(progress);
            return Ok(());
        }
        let (consuming, peeked) = (bytes as u64, self.left as u64);
        device.own.successor.step(ClientMessageProgress { consuming, peeked, ..progress });
        self.consume(bytes, buffer)?;
        device.own.successor.step(progress);
        Ok(())
    }

    fn consume(&mut self, mut bytes: usize, buffer: &mut [u8]) -> io::Result<()> {
        while bytes > 0 {
            let room = bytes.min(buffer.len());
            let consumed = self.stream.consume(&mut buffer[..room])?;
            if consumed == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            bytes -= consumed;
            self.left -= consumed;
            self.consumed += consumed as u64;
        }
        while self.copies.pop_front_if(|(behind, _)| *behind <= self.consumed).is_some() {}
        Ok(())
    }

    fn send(&mut self) -> Result<(), DisconnectReason> {
        while let Some(chunk) = self.outbox.chunk() {
            let sent = if chunk.fds.is_empty() {
                self.replies.send(&self.stream, chunk.bytes.len())
            } else {
                let fds: Vec<_> = chunk.fds.iter().map(AsFd::as_fd).collect();
                self.replies.send_with(&self.stream, chunk.bytes, &fds)
            };
            match sent {
                Ok(SocketSendResult::Bytes(count)) => self.outbox.sent(count),
                Ok(SocketSendResult::WouldBlock) => return Ok(()),
                Ok(SocketSendResult::Closed) => return Err(DisconnectReason::Closed),
                Err(error) => return Err(DisconnectReason::failed(error)),
            }
        }
        if self.outbox.is_between_messages() {
            self.replies.trim().map_err(DisconnectReason::failed)?;
        }
        Ok(())
    }
}

impl ClientConnection for VfioUserConnection {
    fn stream(&self) -> &StreamSocket {
        &self.stream
    }

    fn counters(&self) -> SessionCounters {
        self.session.counters()
    }

    fn visit(
        &mut self,
        device: &mut VfioFunction<'_>,
        buffer: &mut [u8],
        clock: &dyn TimeSource,
    ) -> VisitResult {
        let visited = self.receive(device, buffer, clock);
        if let Err(DisconnectReason::Failed(_)) = visited {
            // Replies to earlier messages go out before the end, if the socket accepts them at once.
            let _ = self.settle(device, buffer);
        }
        visited
    }

    fn finish(&mut self, device: &mut VfioFunction<'_>, outcome: BlockingCallOutcome) {
        self.waiting = false;
        // If a request waited, the outcome is its result.
        self.session.complete(device.finish(outcome), &mut self.outbox);
    }

    fn watch(&mut self, poller: &Poller, place: usize) -> io::Result<()> {
        let state = (self.waiting, self.outbox.pending() > 0);
        self.interest.update(state, &self.stream, poller, tokens::connection(place))
    }

    fn unwatch(&mut self, poller: &Poller) {
        // Closing the descriptor removes it from the poller too; a failure here has no consequence.
        let _ = poller.remove(&self.stream);
    }

    fn stall(&self, now: Time) -> Option<ClientStall> {
        let since = self.since.filter(|_| !self.waiting)?;
        let partial = self.session.partial();
        let missing = ClientStallCause::Message { received: partial.received(), size: partial.size() };
        Some(ClientStall { missing, silent: now.since(since) })
    }

    fn deadline(&self) -> Option<Time> {
        self.since.filter(|_| !self.waiting).map(|since| since + PATIENCE)
    }

    fn is_idle(&self) -> bool {
        self.outbox.pending() == 0 && !self.session.is_suspended() && !self.stream.has_unread()
    }

    /// Waits until the keeper has the socket of a new client. The end of the process that has accepted the client would end its
    /// connection before.
    fn finish_request(&mut self, device: &mut VfioFunction<'_>, _: &mut [u8]) -> bool {
        self.waiting && device.own.successor.progress().stream == 0
    }

    fn prepare_hand_over(
        &mut self,
        device: &mut VfioFunction<'_>,
        buffer: &mut [u8],
    ) -> Result<(), DisconnectReason> {
        // The successor repeats an unmap, which may take long.
        if !self.session.is_suspended() || self.session.is_repeatable() {
            return Ok(());
        }
        while self.session.is_suspended() {
            device.own.account.begin_round();
            self.session.step(device, &mut self.outbox).map_err(DisconnectReason::failed)?;
        }
        self.settle(device, buffer)
    }

    /// Restores the peek offset of the socket, which another process may have moved.
    fn resume(&mut self, _: &mut ClientResources) -> io::Result<()> {
        self.stream.peek_from(self.left)
    }

    fn is_kept(&self) -> bool {
        true
    }

    fn outlives_reset(&self) -> bool {
        true
    }

    fn close(self: Box<Self>, device: &mut VfioFunction<'_>) -> StreamSocket {
        let Self { stream, session, outbox, fds, copies, .. } = *self;
        session.close(device);
        device.own.successor.end();
        let errands = device.errands();
        errands.discard((outbox, fds, copies));
        errands.next_client();
        stream
    }
}
