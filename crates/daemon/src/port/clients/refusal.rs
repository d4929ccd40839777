//! Refuses clients of a function that has another client.
//!
//! A starting QEMU connects to a vhost-user socket again as soon as the connection ends, without a pause, and prints some
//! lines each time. So the port holds a refused front end for a second (`held_front_end`), and serves it if the function
//! becomes free meanwhile. It holds one for each function, and further ones wait in the listening socket's queue. A refused
//! vfio-user client is disconnected at once, since it does not connect again.

use super::PortClients;
use super::held_front_end::HeldFrontEnd;
use super::service::{attach, is_shut, peer_pid};
use crate::flight::FlightRecordKind;
use crate::port::engine::PortEngine;
use host::socket::StreamSocket;
use i82576::Time;

impl PortClients {
    /// Refuses a client, and holds the connection of a front end for a while.
    pub(super) fn refuse(&mut self, index: usize, stream: StreamSocket, engine: &mut PortEngine, now: Time) {
        let slot = &mut self.slots[index];
        let pid = peer_pid(&stream);
        slot.refusals.count += 1;
        slot.own.flight.event(now, FlightRecordKind::Said("another client was turned away"), 0);
        if let Some(suppressed) = slot.log.allow(now) {
            tracing::warn!(
                function = slot.name,
                peer = pid,
                suppressed,
                "refused a client: another client is attached to the function"
            );
        }
        if !engine.card().is_virtio(slot.function) {
            // The client may have sent descriptors already.
            return slot.own.errands.turn_away(stream);
        }
        slot.held = Some(HeldFrontEnd::new(stream, now));
        slot.refusals.held = Some(pid);
        self.watch_listener(index);
    }

    /// Serves held front ends whose function has become free, and disconnects those whose time is over. Returns the
    /// time of the next call.
    pub(super) fn settle_held(&mut self, engine: &mut PortEngine, now: Time) -> Option<Time> {
        let mut next = None;
        for index in 0..self.slots.len() {
            let slot = &self.slots[index];
            let Some(until) = slot.held.as_ref().map(HeldFrontEnd::until) else { continue };
            let free = slot.connection.is_none() && !is_shut(slot, engine.card());
            if free {
                self.attach_held(index, engine, now);
            } else if now >= until {
                self.turn_away_held(index);
            } else {
                next = next.into_iter().chain([until]).min();
            }
        }
        next
    }

    /// Attaches the held front end of a function to the function, which has become free. Keeps holding it if the VF was disabled
    /// meanwhile.
    pub(super) fn let_held_in(&mut self, index: usize, engine: &mut PortEngine, now: Time) {
        if !is_shut(&self.slots[index], engine.card()) {
            self.attach_held(index, engine, now);
        }
    }

    /// Disconnects the held front end of a function, if there is one, and accepts further clients.
    fn turn_away_held(&mut self, index: usize) {
        if let Some(stream) = self.take_held(index) {
            self.slots[index].own.errands.turn_away(stream);
        }
    }

    fn attach_held(&mut self, index: usize, engine: &mut PortEngine, now: Time) {
        if let Some(stream) = self.take_held(index) {
            attach(&mut self.slots[index], stream, self.wait, engine.card_mut(), now);
        }
    }

    /// Takes the held front end of a function, and accepts further clients.
    fn take_held(&mut self, index: usize) -> Option<StreamSocket> {
        let slot = &mut self.slots[index];
        let held = slot.held.take()?;
        slot.refusals.held = None;
        self.watch_listener(index);
        Some(held.into_stream())
    }
}
