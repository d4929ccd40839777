//! Connection of a vhost-user client (front end) to a virtio function: the socket, its session, and replies that are
//! not sent yet.
//!
//! | module | content |
//! |---|---|
//! | `offer` | features that a function offers |
//! | `apply` | events and tasks of the session, applied to card and bus |
//! | `costs` | costs of messages by their kind |
//! | `regions` | memory regions that wait to be mapped |
//! | `inflight` | records of unfinished descriptors |
//! | `log` | the migration log, which marks written pages |
//! | `kicks` | eventfds of kicks in the port's poller |
//! | `hand_over`, `saved` | a connection that is saved for the successor process, and continued there |
//!
//! After a crash no front end is kept for the successor process: its socket is closed, and it connects again. Split rings
//! continue at the used index in guest memory, so that nothing is lost.

mod apply;
mod costs;
mod hand_over;
mod inflight;
#[cfg(test)]
mod kick_moves;
mod kicks;
mod log;
mod offer;
mod regions;
pub(in crate::port) mod saved;

use super::connection::{
    ClientConnection, ClientServiceBudget, ClientServiceOutcome, ClientStall, ClientStallCause,
    DisconnectReason, PATIENCE, RECEIVES, SocketInterest, VisitResult,
};
use super::device::VfioFunction;
use super::errand::BlockingCallOutcome;
use super::holdings::ClientResources;
use crate::clock::TimeSource;
use crate::port::tokens;
use hand_over::FrontEndHandOver;
use host::dma::DmaTable;
use host::poll::Poller;
use host::socket::{ReceivedFds, SocketReceiveResult, SocketSendResult, StreamSocket};
use host::worker::DeferredCloseFd;
use i82576::Time;
use kicks::KickEventfds;
use regions::PendingMemoryRegions;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use units::WorkCost;
use vfio_user::server::SessionCounters;
use vhost_user::backend::{BackendProgress, BackendSession};
use vhost_user::outbox::OutgoingMessages;

/// Connection of a vhost-user client to one function of the card.
#[derive(Debug)]
pub(in crate::port) struct VhostUserConnection {
    stream: StreamSocket,
    session: BackendSession<DeferredCloseFd>,
    outbox: OutgoingMessages<DeferredCloseFd>,
    fds: ReceivedFds,
    interest: SocketInterest,
    kicks: KickEventfds,
    regions: PendingMemoryRegions,
    /// Ring that is stopped and whose position may not have been sent.
    stopped: Option<u32>,
    /// Time at which the client stalled, and the number of messages handled by then. Handling another message ends the
    /// stall.
    stalled: Option<(Time, u64)>,
    /// Reason to disconnect the client that was found outside of the vhost-user session.
    failed: Option<DisconnectReason>,
    /// True while the client's messages wait for the end of a blocking call.
    waiting: bool,
    hand_over: FrontEndHandOver,
}

impl VhostUserConnection {
    /// Creates the connection of a new client.
    pub(super) fn new(stream: StreamSocket) -> Self {
        Self {
            stream,
            session: BackendSession::new(offer::of_every_function()),
            outbox: OutgoingMessages::new(),
            fds: ReceivedFds::new(),
            interest: SocketInterest::default(),
            kicks: KickEventfds::new(),
            regions: PendingMemoryRegions::default(),
            stopped: None,
            stalled: None,
            failed: None,
            waiting: false,
            hand_over: FrontEndHandOver::None,
        }
    }

    fn receive(
        &mut self,
        device: &mut VfioFunction<'_>,
        buffer: &mut [u8],
        clock: &dyn TimeSource,
    ) -> VisitResult {
        let budget = ClientServiceBudget::begin(device.now);
        for _ in 0..RECEIVES {
            let handled = self.steps(device, budget, clock)?;
            self.send()?;
            if self.outbox.pending() == 0 {
                self.forget_stopped(device);
            }
            if handled != ClientServiceOutcome::Done || self.outbox.pending() > 0 {
                return Ok(handled);
            }
            let errands = device.errands();
            if errands.are_many() {
                errands.catch_up();
                self.waiting = true;
                return Ok(ClientServiceOutcome::Waiting);
            }
            // All whole messages are handled, so the session has room for at least a byte.
            let room = self.session.room().min(buffer.len());
            match self.stream.recv(&mut buffer[..room], &mut self.fds) {
                Ok(SocketReceiveResult::Bytes(_)) if self.fds.truncated() => {
                    return Err(DisconnectReason::lost_fds());
                }
                Ok(SocketReceiveResult::Bytes(count)) => self.push(&buffer[..count], device)?,
                Ok(SocketReceiveResult::WouldBlock) => return Ok(ClientServiceOutcome::Done),
                Ok(SocketReceiveResult::Closed) => return Err(DisconnectReason::Closed),
                Err(error) => return Err(DisconnectReason::failed(error)),
            }
        }
        Ok(ClientServiceOutcome::More)
    }

    fn push(&mut self, bytes: &[u8], device: &mut VfioFunction<'_>) -> Result<(), DisconnectReason> {
        device.own.account.charge(WorkCost::of_transfer(bytes.len()));
        let errands = device.errands();
        let mut fds = self.fds.drain().map(|fd| errands.keep(fd)).collect();
        self.session.push(bytes, &mut fds).map_err(DisconnectReason::failed)
    }

    /// Handles whole messages until none is left, too many replies are unsent, the client has to wait for a blocking
    /// call, or the budget is used up.
    fn steps(
        &mut self,
        device: &mut VfioFunction<'_>,
        budget: ClientServiceBudget,
        clock: &dyn TimeSource,
    ) -> VisitResult {
        while !self.waiting {
            device.now = clock.now();
            if budget.is_used_up(&device.own.account, device.now) {
                return Ok(ClientServiceOutcome::More);
            }
            device.own.account.charge(WorkCost::MESSAGE);
            match self.session.step(&mut self.outbox).map_err(DisconnectReason::failed)? {
                BackendProgress::Handled => {}
                BackendProgress::Starved | BackendProgress::Blocked => return Ok(ClientServiceOutcome::Done),
                BackendProgress::Waiting => self.waiting = true,
                BackendProgress::Event(event) => {
                    self.forget_stopped(device);
                    self.apply_charged(event, device);
                }
                BackendProgress::Task(task) => {
                    self.forget_stopped(device);
                    let windows = device.engine.reach(device.function).memory().len();
                    device.own.account.charge(costs::of_task(&task, windows));
                    self.begin(task, device);
                }
            }
        }
        Ok(ClientServiceOutcome::Waiting)
    }

    fn send(&mut self) -> Result<(), DisconnectReason> {
        while let Some(chunk) = self.outbox.chunk() {
            let fds: Vec<BorrowedFd<'_>> = chunk.fds.iter().map(AsFd::as_fd).collect();
            match self.stream.send(chunk.bytes, &fds) {
                Ok(SocketSendResult::Bytes(count)) => self.outbox.sent(count),
                Ok(SocketSendResult::WouldBlock) => return Ok(()),
                Ok(SocketSendResult::Closed) => return Err(DisconnectReason::Closed),
                Err(error) => return Err(DisconnectReason::failed(error)),
            }
        }
        Ok(())
    }

    /// Updates the stall state: the client stalls while a message is incomplete or replies are unsent. Only another
    /// handled message ends a stall, not single bytes.
    fn note_stall(&mut self, now: Time) {
        let stalls = !self.waiting && (self.session.partial().0 > 0 || self.outbox.pending() > 0);
        let messages = self.session.counters().messages;
        let since = self.stalled.filter(|(_, before)| *before == messages).map_or(now, |(since, _)| since);
        self.stalled = stalls.then_some((since, messages));
    }
}

impl ClientConnection for VhostUserConnection {
    fn stream(&self) -> &StreamSocket {
        &self.stream
    }

    fn rings_by_message(&self) -> bool {
        false
    }

    fn counters(&self) -> SessionCounters {
        SessionCounters { messages: self.session.counters().messages, ..SessionCounters::default() }
    }

    fn visit(
        &mut self,
        device: &mut VfioFunction<'_>,
        buffer: &mut [u8],
        clock: &dyn TimeSource,
    ) -> VisitResult {
        if let Some(reason) = self.failed.take() {
            return Err(reason);
        }
        self.begin_inherited(device);
        let visited = self.receive(device, buffer, clock);
        if let Err(DisconnectReason::Failed(_)) = visited {
            // Replies to earlier messages go out before the end, if the socket accepts them at once.
            let _ = self.send();
        }
        self.note_stall(device.now);
        visited
    }

    fn finish(&mut self, device: &mut VfioFunction<'_>, outcome: BlockingCallOutcome) {
        self.waiting = false;
        self.called(outcome, device);
    }

    fn watch(&mut self, poller: &Poller, place: usize) -> io::Result<()> {
        self.kicks.watch(poller, place)?;
        let state = (self.waiting, self.outbox.pending() > 0);
        self.interest.update(state, &self.stream, poller, tokens::connection(place))
    }

    fn move_kicks(&mut self, worker: Option<&Arc<Poller>>, own: &Poller, place: usize) -> io::Result<bool> {
        self.kicks.move_to(worker, own, place)
    }

    fn unwatch(&mut self, poller: &Poller) {
        self.kicks.unwatch(poller);
        // Closing the descriptor removes it from the poller too; a failure here has no consequence.
        let _ = poller.remove(&self.stream);
    }

    fn stall(&self, now: Time) -> Option<ClientStall> {
        let (since, _) = self.stalled?;
        let missing = match self.session.partial() {
            (received, size) if received > 0 => ClientStallCause::Message { received, size },
            _ => ClientStallCause::Replies(self.outbox.pending()),
        };
        Some(ClientStall { missing, silent: now.since(since) })
    }

    fn deadline(&self) -> Option<Time> {
        self.stalled.map(|(since, _)| since + PATIENCE)
    }

    fn is_idle(&self) -> bool {
        self.outbox.pending() == 0 && !self.stream.has_unread()
    }

    fn finish_request(&mut self, device: &mut VfioFunction<'_>, buffer: &mut [u8]) -> bool {
        self.finish_message(device, buffer)
    }

    fn prepare_hand_over(
        &mut self,
        device: &mut VfioFunction<'_>,
        buffer: &mut [u8],
    ) -> Result<(), DisconnectReason> {
        self.save(device, buffer);
        Ok(())
    }

    fn resume(&mut self, own: &mut ClientResources) -> io::Result<()> {
        if matches!(self.hand_over, FrontEndHandOver::Saved) {
            self.end_hand_over(own);
        }
        Ok(())
    }

    fn is_kept(&self) -> bool {
        !matches!(self.hand_over, FrontEndHandOver::None)
    }

    /// Returns false: vhost-user has no message for a reset.
    fn outlives_reset(&self) -> bool {
        false
    }

    fn close(mut self: Box<Self>, device: &mut VfioFunction<'_>) -> StreamSocket {
        self.end_hand_over(device.own);
        let reach = device.engine.reach_mut(device.function);
        reach.unmap_all();
        reach.change_log(DmaTable::remove_log);
        reach.clear_eventfds();
        device.own.ring_without_memory = false;
        let Self { stream, session, outbox, fds, regions, .. } = *self;
        let errands = device.errands();
        errands.discard((session, outbox, fds, regions));
        errands.next_client();
        stream
    }
}
