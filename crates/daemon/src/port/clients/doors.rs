//! Shuts the listening sockets of disabled functions to front ends, and opens them again, by the thread of `dialer`. Accepts
//! no clients of a function whose worker thread is behind.
//!
//! A front end that connects waits for an answer, and a QEMU whose machine runs halts the machine meanwhile. One whose
//! connection is closed at once connects again and again. So the front ends of a disabled function wait in connect(2), for
//! which QEMU has a thread.

use super::PortClients;
use super::endpoint::DoorState;
use super::service::is_shut;
use crate::port::engine::PortEngine;
use crate::port::tokens;
use host::poll::PollInterest;
use i82576::Time;

impl PortClients {
    /// Has the dialer shut the doors of disabled functions, and open those of enabled ones.
    pub(super) fn settle_doors(&mut self, engine: &PortEngine, now: Time) {
        for index in 0..self.slots.len() {
            let (Some(dialer), slot) = (&self.dialer, &mut self.slots[index]) else { return };
            let Some(listener) = slot.endpoint.listener() else { continue };
            let shut = is_shut(slot, engine.card());
            if shut == (slot.door == DoorState::Shut) && slot.door != DoorState::Unknown {
                continue;
            }
            let door = match listener.door() {
                Ok(door) => door,
                Err(error) => {
                    slot.warn(now, "cannot shut or open the socket of the function", &error);
                    self.unsettled = true;
                    continue;
                }
            };
            self.dials += 1;
            if shut {
                slot.door = DoorState::Shut;
                dialer.shut(slot.function, self.dials, door);
            } else {
                slot.door = DoorState::Opening(self.dials);
                dialer.open(slot.function, self.dials, door);
            }
            self.watch_listener(index);
        }
    }

    /// Accepts clients of a function whose door the dialer has opened, unless it was shut again meanwhile.
    pub(super) fn opened(&mut self, index: usize, number: u64) {
        let slot = &mut self.slots[index];
        if slot.door == DoorState::Opening(number) {
            slot.door = DoorState::Open;
            self.watch_listener(index);
        }
    }

    /// Accepts clients of a function again, whose worker thread has caught up.
    pub(super) fn worker_caught_up(&mut self, index: usize) {
        self.slots[index].is_worker_behind = false;
        self.unsettled = true;
        self.watch_listener(index);
    }

    /// Has the poller report new clients of a function, if the function's door is open, no refused client is held, none waits in
    /// the queue for the end of a client that has hung up, and the worker thread is not behind. That thread closes the sockets of
    /// clients, and the kernel's queue holds a few only.
    pub(super) fn watch_listener(&mut self, index: usize) {
        let slot = &mut self.slots[index];
        let Some(listener) = slot.endpoint.listener() else { return };
        let is_busy = slot.held.is_some() || slot.has_queued_client || slot.is_worker_behind;
        let wanted = slot.door == DoorState::Open && !is_busy;
        let changed = match (slot.watched, wanted) {
            (false, true) => self.poller.add(listener, tokens::listener(index), PollInterest::READ),
            (true, false) => self.poller.remove(listener),
            _ => return,
        };
        slot.watched = wanted;
        if let Err(error) = changed {
            tracing::error!(
                function = slot.name,
                %error,
                "cannot wait for clients of the function; restart the host"
            );
        }
    }

    /// Accepts no more clients, because the port ends.
    pub(super) fn close_doors(&mut self) {
        for index in 0..self.slots.len() {
            self.slots[index].door = DoorState::Shut;
            self.watch_listener(index);
        }
    }
}
