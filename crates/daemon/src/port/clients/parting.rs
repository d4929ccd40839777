//! Disconnects clients from a port's functions. `ending` has the end of a connection.

use super::PortClients;
use super::connection::{ClientStall, DisconnectReason};
use super::ending::PendingDisconnect;
use super::service::is_shut;
use super::slot::OfferedFunction;
use crate::port::engine::PortEngine;
use host::socket::StreamSocket;
use i82576::Time;
use pcie::Function;
use units::WorkCost;

impl PortClients {
    /// Stops accepting clients and connecting to VMMs, and begins to disconnect every client.
    pub(in crate::port) fn end(&mut self, now: Time) {
        self.end_dials();
        self.close_doors();
        self.slots.iter_mut().for_each(OfferedFunction::turn_held_away);
        for index in 0..self.slots.len() {
            self.wind_down(index, now);
        }
    }

    /// Returns true if every client is disconnected and has closed its end of the connection.
    pub(in crate::port) fn are_gone(&self) -> bool {
        self.hung_up.is_empty() && self.slots.iter().all(|slot| slot.connection.is_none())
    }

    /// Begins to disconnect a function's client, which is served until it falls silent.
    pub(in crate::port) fn wind_down(&mut self, index: usize, now: Time) {
        let slot = &mut self.slots[index];
        if let Some(connection) = slot.connection.as_ref().filter(|_| slot.ending.is_none()) {
            slot.ending = Some(PendingDisconnect::new(connection.counters().messages, now));
        }
    }

    /// Begins to disconnect the vhost-user clients (front ends) of disabled virtio functions.
    pub(super) fn shut_disabled(&mut self, engine: &mut PortEngine, now: Time) {
        self.unsettled = true;
        for index in 0..self.slots.len() {
            if self.slots[index].connection.is_some() && is_shut(&self.slots[index], engine.card()) {
                self.wind_down(index, now);
            }
        }
    }

    /// Disconnects the clients that cannot continue after a reset of the card: front ends, because vhost-user has no
    /// message for a reset. The front ends connect again, and set their rings up anew.
    pub(in crate::port) fn disconnect_after_reset(&mut self, engine: &mut PortEngine, now: Time) {
        for index in 0..self.slots.len() {
            if self.slots[index].connection.as_ref().is_some_and(|connection| !connection.outlives_reset()) {
                self.disconnect(index, &DisconnectReason::Ended, engine, now);
            }
        }
    }

    /// Shuts the connection of a function's client down for writing, so that the client reads the end of the stream.
    pub(in crate::port) fn hang_up(
        &mut self,
        function: Function,
        stream: StreamSocket,
        engine: &PortEngine,
        now: Time,
    ) {
        let closer = engine.reach(function).worker().clone();
        let cost = self.hung_up.add(Some(function), stream, closer, &mut self.buffer, now);
        charge(&mut self.slots, function, cost);
    }

    /// Shuts the connection of a client down for writing that a former process has kept, and whose function is unknown.
    pub(in crate::port) fn hang_up_unknown(&mut self, stream: StreamSocket, engine: &PortEngine, now: Time) {
        let closer = engine.reach(Function::Pf).worker().clone();
        self.hung_up.add(None, stream, closer, &mut self.buffer, now);
    }

    /// Continues pending disconnections of clients. Returns the time of the next call.
    pub(in crate::port) fn continue_disconnects(
        &mut self,
        engine: &mut PortEngine,
        now: Time,
    ) -> Option<Time> {
        let mut next = self.cut_off_the_silent(engine, now);
        for index in 0..self.slots.len() {
            let slot = &mut self.slots[index];
            let (Some(ending), Some(connection)) = (&mut slot.ending, &slot.connection) else { continue };
            let idle = !slot.more && connection.is_idle();
            match ending.next_check(connection.counters().messages, idle, now) {
                Some(check) => next = next.into_iter().chain([check]).min(),
                None => self.disconnect(index, &DisconnectReason::Ended, engine, now),
            }
        }
        let Self { hung_up, slots, buffer, .. } = self;
        let drain = hung_up.drain(buffer, now, |function, cost| charge(slots, function, cost));
        let held = self.settle_held(engine, now);
        next.into_iter().chain(drain).chain(held).min()
    }

    /// Disconnects clients that stall for too long. Returns the earliest deadline of the clients that still stall.
    fn cut_off_the_silent(&mut self, engine: &mut PortEngine, now: Time) -> Option<Time> {
        let mut next = None;
        for index in 0..self.slots.len() {
            let Some(connection) = &self.slots[index].connection else { continue };
            let Some(deadline) = connection.deadline() else { continue };
            match connection.stall(now).filter(ClientStall::is_overdue) {
                Some(stall) => {
                    self.disconnect(index, &DisconnectReason::Failed(stall.to_string()), engine, now);
                }
                None => next = next.into_iter().chain([deadline]).min(),
            }
        }
        next
    }

    /// Disconnects clients that have truncated memory that they share with the card. Other clients are not affected.
    pub(in crate::port) fn evict_poisoned(&mut self, engine: &mut PortEngine, now: Time) {
        let events = host::memory::poison_events();
        if std::mem::replace(&mut self.poisoned, events) == events {
            return;
        }
        for index in 0..self.slots.len() {
            if engine.reach(self.slots[index].function).memory().poisoned() {
                let end = DisconnectReason::Failed(
                    "the client has truncated memory that it shares with the card".into(),
                );
                self.disconnect(index, &end, engine, now);
            }
        }
    }

    /// Removes the last of the port's functions, and disconnects its client.
    pub(in crate::port) fn remove_last(
        &mut self,
        engine: &mut PortEngine,
        now: Time,
    ) -> Option<OfferedFunction> {
        let last = self.slots.len().checked_sub(1)?;
        self.slots[last].turn_held_away();
        self.disconnect(last, &DisconnectReason::Ended, engine, now);
        let slot = self.slots.pop()?;
        // Closing the descriptor removes it from the poller too; a failure here has no consequence.
        let _ = slot.endpoint.listener().map(|listener| self.poller.remove(listener));
        self.dialer.iter().for_each(|dialer| dialer.stop(slot.function));
        Some(slot)
    }

    /// Resumes the clients after a pause, in which the successor process may have moved the peek offsets of their
    /// sockets.
    pub(in crate::port) fn resume(&mut self, engine: &mut PortEngine, now: Time) {
        for index in 0..self.slots.len() {
            // The poller may have reported what clients sent during the pause to the successor alone.
            let slot = &mut self.slots[index];
            slot.more = slot.connection.is_some();
            let resumed = slot.connection.as_mut().map(|connection| connection.resume(&mut slot.own));
            if let Some(Err(error)) = resumed {
                self.disconnect(index, &DisconnectReason::Failed(error.to_string()), engine, now);
            }
        }
    }
}

/// Charges the account of a function for the end of a client's connection, which a later client of the function pays.
fn charge(slots: &mut [OfferedFunction], function: Function, cost: WorkCost) {
    if let Some(slot) = slots.iter_mut().find(|slot| slot.function == function) {
        slot.own.account.charge(cost);
    }
}
