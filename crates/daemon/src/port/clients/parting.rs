//! Clients are let go. Left out: how a connection ends (`ending`).

use super::Clients;
use super::connection::{Half, Over};
use super::ending::WindDown;
use crate::port::engine::Engine;
use host::socket::Stream;
use i82576::Time;
use pcie::Function;

impl Clients {
    /// Begins the end: takes no new clients, and lets every client go.
    pub(in crate::port) fn end(&mut self, now: Time) {
        for slot in &mut self.slots {
            // No one waits for the socket any more; a failure here has no consequence.
            let _ = self.poller.remove(&slot.listener);
            slot.next = None;
        }
        for index in 0..self.slots.len() {
            self.wind_down(index, now);
        }
    }

    /// Returns whether every client is let go and has closed its end.
    pub(in crate::port) fn are_gone(&self) -> bool {
        self.hung_up.is_empty() && self.slots.iter().all(|slot| slot.connection.is_none())
    }

    /// Serves a function's client from now on only until it falls silent.
    pub(in crate::port) fn wind_down(&mut self, index: usize, now: Time) {
        let slot = &mut self.slots[index];
        if let Some(connection) = slot.connection.as_ref().filter(|_| slot.ending.is_none()) {
            slot.ending = Some(WindDown::new(connection.counters().messages, now));
        }
    }

    /// Tells a function's client that this was the end.
    pub(in crate::port) fn hang_up(
        &mut self,
        function: Function,
        stream: Stream,
        engine: &Engine,
        now: Time,
    ) {
        let closer = engine.reach(function).worker().clone();
        self.hung_up.add(stream, closer, &mut self.buffer, now);
    }

    /// Goes on with what has to end. Returns when to look again.
    pub(in crate::port) fn part(&mut self, engine: &mut Engine, now: Time) -> Option<Time> {
        let mut next = self.cut_off_the_silent(engine, now);
        for index in 0..self.slots.len() {
            let slot = &mut self.slots[index];
            let (Some(ending), Some(connection)) = (&mut slot.ending, &slot.connection) else { continue };
            let idle = !slot.more && connection.is_idle();
            match ending.look(connection.counters().messages, idle, now) {
                Some(look) => next = next.into_iter().chain([look]).min(),
                None => self.disconnect(index, &Over::Ended, engine, now),
            }
        }
        let drain = self.hung_up.drain(&mut self.buffer, now);
        next.into_iter().chain(drain).min()
    }

    /// Cuts off clients that are silent in the middle of a message for too long. Returns when to look again.
    fn cut_off_the_silent(&mut self, engine: &mut Engine, now: Time) -> Option<Time> {
        let mut next = None;
        for index in 0..self.slots.len() {
            let Some(connection) = &self.slots[index].connection else { continue };
            let Some(deadline) = connection.deadline() else { continue };
            match connection.half(now).filter(Half::is_overdue) {
                Some(half) => self.disconnect(index, &Over::Failed(half.to_string()), engine, now),
                None => next = next.into_iter().chain([deadline]).min(),
            }
        }
        next
    }

    /// Cuts off clients that have shrunk memory they had shared; the others never notice.
    pub(in crate::port) fn evict_poisoned(&mut self, engine: &mut Engine, now: Time) {
        let events = host::memory::poison_events();
        if std::mem::replace(&mut self.poisoned, events) == events {
            return;
        }
        for index in 0..self.slots.len() {
            if engine.reach(self.slots[index].function).memory().poisoned() {
                let over = Over::Failed("its shared memory was truncated under the card".into());
                self.disconnect(index, &over, engine, now);
            }
        }
    }

    /// Takes the last slot away, with its client.
    pub(in crate::port) fn remove_last(&mut self, engine: &mut Engine, now: Time) -> Option<super::Slot> {
        let last = self.slots.len().checked_sub(1)?;
        self.slots[last].next = None;
        self.disconnect(last, &Over::Ended, engine, now);
        let slot = self.slots.pop()?;
        // Closing the descriptor removes it from the poller too; a failure here has no consequence.
        let _ = self.poller.remove(&slot.listener);
        Some(slot)
    }

    /// Serves clients on after a successor may have looked into their sockets.
    pub(in crate::port) fn go_on(&mut self, engine: &mut Engine, now: Time) {
        for index in 0..self.slots.len() {
            // The poller may have reported what clients sent during the pause to the successor alone.
            let slot = &mut self.slots[index];
            slot.more = slot.connection.is_some();
            if let Some(Err(error)) = slot.connection.as_ref().map(super::connection::Connection::go_on) {
                self.disconnect(index, &Over::Failed(error.to_string()), engine, now);
            }
        }
    }
}
