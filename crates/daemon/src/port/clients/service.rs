//! Accepts, serves and disconnects a port's clients. `ending` ends a connection without a reset, and
//! the implementations of `connection` handle messages.

use super::PortClients;
use super::connection::{ClientConnection, ClientServiceOutcome, DisconnectReason};
use super::device::VfioFunction;
use super::errand::{BlockingCallOutcome, CompletedBlockingCall};
use super::pages::SharedRegisterPages;
use super::privacy::PrivacyCheck;
use super::slot::OfferedFunction;
use super::vfio::VfioUserConnection;
use super::vhost::VhostUserConnection;
use crate::clock::TimeSource;
use crate::config::file::DoorbellMode;
use crate::flight::FlightRecordKind;
use crate::port::engine::PortEngine;
use crate::port::engine::bus::FunctionBus;
use crate::port::engine::family::PortCard;
use host::dma::MapDmaRegionError;
use host::memory::FileMapError;
use host::socket::StreamSocket;
use i82576::Time;
use pcie::Function;
use std::io;
use units::WorkCost;
use units::work::DETACHED_DEBT;

/// Hint in status and log for a guest whose memory the card cannot reach.
pub(in crate::port) const SHARE_HINT: &str = "the guest's memory is not shared, so no frame can move: \
     add share=on to QEMU's memory-backend (memory-backend-memfd, and -machine memory-backend=ID), \
     or shared=on to Cloud Hypervisor's --memory";

/// Returns true if a guest drives the function although the card cannot reach the guest's memory.
pub(in crate::port) fn lacks_memory(
    card: &dyn PortCard,
    slot: &OfferedFunction,
    reach: &FunctionBus,
) -> bool {
    let unreachable = reach.memory().shareable_regions() == 0 && !reach.memory().is_empty();
    slot.own.ring_without_memory
        || (unreachable || slot.privacy == PrivacyCheck::Private) && card.is_bus_master(slot.function)
}

impl PortClients {
    /// Marks a function whose client has sent messages or accepts replies again, to be served next.
    pub(in crate::port) fn mark(&mut self, index: usize) {
        if let Some(slot) = self.slots.get_mut(index) {
            if !slot.more {
                slot.pending_since = self.message_times.since();
            }
            slot.more = slot.connection.is_some();
        }
    }

    /// Has the card look at a ring that the guest of a function has kicked. The ring's eventfd may be gone meanwhile,
    /// which has no consequence.
    pub(in crate::port) fn kick(&self, place: usize, ring: u32, engine: &mut PortEngine) {
        let vf = self.slots.get(place).and_then(|slot| slot.function.vf());
        if let (Some(vf), Some((nic, bus))) = (vf, engine.virtio()) {
            bus.note_kick(nic, vf.get(), ring);
        }
    }

    /// Accepts a new client for a function. Rejects the client if the function already has one, or is a disabled virtio
    /// function. Leaves the client in the listening socket's queue if the function's client has hung up, and is not
    /// disconnected yet.
    pub(in crate::port) fn accept(&mut self, index: usize, engine: &mut PortEngine, now: Time) {
        let Some(slot) = self.slots.get_mut(index) else { return };
        slot.note_backlog(now);
        if slot.is_worker_behind {
            // The client waits in the socket's queue, and costs no descriptor.
            return self.watch_listener(index);
        }
        if slot.connection.as_ref().is_some_and(|connection| connection.stream().is_hung_up()) {
            // The end of the old client's stream may lie behind many unread messages. The new client waits meanwhile, and
            // is not refused. The socket's queue costs no descriptor, and a successor process inherits it.
            (slot.has_queued_client, slot.more) = (true, true);
            return self.watch_listener(index);
        }
        let name = &slot.name;
        let Some(listener) = slot.endpoint.listener_mut() else { return };
        let stream = match listener.accept() {
            Ok(Some(stream)) => stream,
            Ok(None) => return,
            Err(error) => {
                if let Some(suppressed) = slot.log.allow(now) {
                    tracing::warn!(function = name, %error, suppressed, "cannot accept a client");
                }
                return;
            }
        };
        slot.own.account.charge(WorkCost::ACCEPT);
        match &slot.connection {
            // Without a connection the VMM shows its guest no link, and tries again.
            // The connection that has filled the queue of a shut listening socket, or a client that has given up.
            _ if engine.card().is_virtio(slot.function) && stream.is_hung_up() && !stream.has_unread() => {
                slot.own.errands.turn_away(stream);
            }
            // The client was in the queue when the function was disabled.
            None if is_shut(slot, engine.card()) => slot.own.errands.turn_away(stream),
            None => attach(slot, stream, self.wait, engine.card_mut(), now),
            Some(_) => self.refuse(index, stream, engine, now),
        }
    }

    /// Serves each client with pending messages, if the account of its function has credit. So a client whose messages
    /// cost much misses turns, and the others do not.
    pub(in crate::port) fn serve(&mut self, engine: &mut PortEngine, clock: &dyn TimeSource) {
        self.begin_round(engine);
        for index in 0..self.slots.len() {
            let slot = &mut self.slots[index];
            if slot.more && slot.own.account.has_credit() {
                self.visit(index, engine, clock);
            }
        }
    }

    /// Credits the account of each function. The card leaves the requests of VFs that are still in debt to a later round. A
    /// VF that spends its credit on messages in each round may send requests.
    pub(in crate::port) fn begin_round(&mut self, engine: &mut PortEngine) {
        let in_debt = self.slots.iter_mut().filter_map(|slot| {
            slot.own.account.begin_round();
            slot.function.vf().filter(|_| !slot.own.account.has_credit())
        });
        engine.card_mut().hold_requests(in_debt.collect());
    }

    /// Forgets the debts of all functions: the port has no work that waits for them.
    pub(in crate::port) fn forget_debts(&mut self) {
        self.slots.iter_mut().for_each(|slot| slot.own.account.limit_debt(WorkCost(0)));
    }

    /// Charges the accounts of VFs for their requests and resets, which the card has served.
    pub(in crate::port) fn settle_work(&mut self, engine: &mut PortEngine) {
        engine.card_mut().settle_work(&mut |vf, cost| {
            if let Some(place) = self.place(vf) {
                self.slots[place].own.account.charge(cost);
            }
        });
    }

    fn visit(&mut self, index: usize, engine: &mut PortEngine, clock: &dyn TimeSource) {
        let slot = &mut self.slots[index];
        let Some(connection) = slot.connection.as_mut() else { return };
        let (function, own) = (slot.function, &mut slot.own);
        let mut device = VfioFunction { function, engine, own, now: clock.now() };
        let visited = connection.visit(&mut device, &mut self.buffer, clock);
        let now = device.now;
        match visited {
            // The client has hung up and reads no replies, and the next client waits for the function.
            Ok(ClientServiceOutcome::Done) if slot.has_queued_client => {
                return self.disconnect(index, &DisconnectReason::Closed, engine, now);
            }
            Ok(visit) => slot.more = visit == ClientServiceOutcome::More,
            Err(end) => return self.disconnect(index, &end, engine, now),
        }
        if let Err(error) = connection.watch(&self.poller, index) {
            return self.disconnect(index, &DisconnectReason::Failed(error.to_string()), engine, now);
        }
        warn_of_refusals(slot, now);
        warn_of_unshared_memory(slot, engine, now);
    }

    /// Disconnects a client from its function. Releases the client's memory and interrupts at once, and the socket
    /// after the client has read the end of the stream. Resets the function, so that the next client finds no state of
    /// the former one.
    pub(in crate::port) fn disconnect(
        &mut self,
        index: usize,
        end: &DisconnectReason,
        engine: &mut PortEngine,
        now: Time,
    ) {
        let slot = &mut self.slots[index];
        let Some(mut connection) = slot.connection.take() else { return };
        connection.unwatch(&self.poller);
        slot.retire(connection.counters());
        slot.own.flight.event(now, FlightRecordKind::Said(end.words()), 0);
        let (function, own) = (slot.function, &mut slot.own);
        let mut device = VfioFunction { function, engine, own, now };
        if !device.reset_for_next_client() {
            tracing::error!(
                function = slot.name,
                "cannot reset the function after the disconnection of its client"
            );
        }
        // The account is the function's, so its next client pays a part of the debt: a VMM that connects in a loop waits for each
        // turn.
        device.own.account.charge(WorkCost::DETACH);
        end_claims(device.engine, function, end);
        device.save_configuration();
        let stream = connection.close(&mut device);
        device.own.account.limit_debt(DETACHED_DEBT);
        slot.own.pages = None;
        if let Some(vf) = function.vf() {
            engine.card_mut().unshare_pages(vf);
        }
        if let Some(suppressed) = slot.log.allow(now) {
            let name = &slot.name;
            match end {
                DisconnectReason::Closed => {
                    tracing::info!(function = name, suppressed, "the client has closed the connection");
                }
                DisconnectReason::Ended => {
                    tracing::info!(function = name, suppressed, "the client was disconnected");
                }
                DisconnectReason::Failed(why) => {
                    tracing::warn!(
                        function = name,
                        why,
                        suppressed,
                        "the client was disconnected after an error"
                    );
                }
            }
        }
        self.show_links(engine, now);
        match end {
            DisconnectReason::Closed => self.slots[index].own.errands.discard(stream),
            DisconnectReason::Ended | DisconnectReason::Failed(_) => {
                self.hang_up(function, stream, engine, now);
            }
        }
        self.let_held_in(index, engine, now);
        self.watch_listener(index);
    }

    /// Handles the outcomes of blocking calls, and resumes the clients that waited for them.
    pub(in crate::port) fn finish_errands(&mut self, engine: &mut PortEngine, now: Time) {
        while let Ok(done) = self.done.try_recv() {
            match self.slots.iter().position(|slot| slot.function == done.function) {
                Some(index) => self.finish_errand(index, done, engine, now),
                None => done.release(),
            }
        }
    }

    fn finish_errand(
        &mut self,
        index: usize,
        done: CompletedBlockingCall,
        engine: &mut PortEngine,
        now: Time,
    ) {
        let slot = &mut self.slots[index];
        let is_of_former_client = slot.own.errands.is_of_former_client(&done);
        match (&done.outcome, &mut slot.connection) {
            (BlockingCallOutcome::QueueEmptied, _) => self.worker_caught_up(index),
            (BlockingCallOutcome::MemorySampled(is_blank), _) if !is_of_former_client => {
                slot.privacy = PrivacyCheck::sampled(*is_blank);
                warn_of_unshared_memory(slot, engine, now);
            }
            (_, Some(connection)) if !is_of_former_client => {
                let (function, own) = (slot.function, &mut slot.own);
                let mut device = VfioFunction { function, engine, own, now };
                connection.finish(&mut device, done.outcome);
                slot.more = true;
            }
            _ => done.release(),
        }
    }
}

/// Forgets the addresses of a VF's guest after its client has left. A guest can have the host end the connection, and its VMM then
/// connects again: such a guest keeps its addresses, if the VMM comes back within minutes.
fn end_claims(engine: &mut PortEngine, function: Function, end: &DisconnectReason) {
    let Some(vf) = function.vf() else { return };
    if matches!(end, DisconnectReason::Closed) {
        engine.release_claims(vf);
        return;
    }
    engine.keep_claims_for_return(vf);
    if let Some((nic, _)) = engine.virtio() {
        nic.expect_same_guest(vf.get());
    }
}

/// Connects a new client to its function.
pub(super) fn attach(
    slot: &mut OfferedFunction,
    stream: StreamSocket,
    wait: DoorbellMode,
    card: &mut dyn PortCard,
    now: Time,
) {
    slot.own.account.charge(WorkCost::ATTACH);
    slot.own.pages = pages(slot, wait, card, now);
    match open(stream, slot, card, now) {
        Ok(connection) => {
            slot.own.flight.event(now, FlightRecordKind::Said("a client has connected"), 0);
            if let Some(suppressed) = slot.log.allow(now) {
                let peer = peer_pid(connection.stream());
                tracing::info!(function = slot.name, peer, suppressed, "a client has connected");
            }
            // The next visit adds the socket to the poller.
            (slot.connection, slot.more) = (Some(connection), true);
        }
        Err(error) => {
            slot.own.pages = None;
            if let Some(suppressed) = slot.log.allow(now) {
                let name = &slot.name;
                tracing::error!(function = name, %error, suppressed, "cannot set up a client's connection");
            }
        }
    }
}

/// Returns true if a function may have no client now. Only the end of the connection notifies the function's VMM of the
/// missing link.
pub(super) fn is_shut(slot: &OfferedFunction, card: &dyn PortCard) -> bool {
    slot.function.vf().is_some_and(|vf| card.is_disconnected(vf))
}

/// Creates the connection of a new client, by the protocol of the function's family.
fn open(
    stream: StreamSocket,
    slot: &mut OfferedFunction,
    card: &dyn PortCard,
    now: Time,
) -> io::Result<Box<dyn ClientConnection>> {
    Ok(match card.is_virtio(slot.function) {
        true => Box::new(VhostUserConnection::new(stream)),
        false => Box::new(VfioUserConnection::open(stream, &mut slot.own, now)?),
    })
}

/// Creates register pages for a new client, if the port offers pages to map. Without pages the client is served by
/// messages alone.
fn pages(
    slot: &mut OfferedFunction,
    wait: DoorbellMode,
    card: &dyn PortCard,
    now: Time,
) -> Option<SharedRegisterPages> {
    let vf = slot.function.vf().filter(|_| wait != DoorbellMode::Sleep)?;
    let pages = SharedRegisterPages::new(vf, card);
    if let (Err(error), Some(suppressed)) = (&pages, slot.log.allow(now)) {
        tracing::warn!(
            function = slot.name,
            %error,
            suppressed,
            "cannot create doorbell pages; each doorbell write is a message to the host"
        );
    }
    pages.ok().flatten()
}

/// Logs a refused DMA window, eventfd or ring with its remedy. A VMM shows its user only an error number.
fn warn_of_refusals(slot: &mut OfferedFunction, now: Time) {
    let (name, own) = (&slot.name, &mut slot.own);
    if let Some(error) = own.refused_eventfd.take()
        && let Some(suppressed) = slot.log.allow(now)
    {
        let remedy = error.remedy();
        tracing::warn!(function = name, %error, remedy, suppressed, "refused a client's eventfd for an interrupt");
    }
    if let Some(fault) = own.ring_fault.take()
        && let Some(suppressed) = slot.log.allow(now)
    {
        tracing::warn!(function = name, fault, suppressed, "the card does not serve a ring of the client");
    }
    let Some(error) = own.refused.take() else { return };
    let remedy = match &error {
        MapDmaRegionError::TooMuchMemory { .. } => "raise client_memory in the configuration",
        MapDmaRegionError::LimitReached | MapDmaRegionError::Memory(FileMapError::TooManyMappings) => {
            "back the guest's memory with fewer files"
        }
        _ => return,
    };
    if let Some(suppressed) = slot.log.allow(now) {
        tracing::warn!(function = name, %error, remedy, suppressed, "refused a client's request to map guest memory");
    }
}

/// Logs once that a client shares no memory. Such a client's guest works, but no frame can move to or from it.
fn warn_of_unshared_memory(slot: &mut OfferedFunction, engine: &PortEngine, now: Time) {
    let (card, reach) = (engine.card(), engine.reach(slot.function));
    if slot.privacy == PrivacyCheck::Due && card.is_bus_master(slot.function) {
        slot.privacy = PrivacyCheck::begin(reach.memory(), &slot.own.errands);
    }
    if slot.warned || !lacks_memory(card, slot, reach) {
        return;
    }
    slot.warned = true;
    if slot.log.allow(now).is_some() {
        tracing::warn!(function = slot.name, "{SHARE_HINT}");
    }
}

/// Returns the process id of a client, or 0 if it is unknown.
pub(super) fn peer_pid(stream: &StreamSocket) -> i32 {
    stream.peer().map(|peer| peer.pid).unwrap_or_default()
}
