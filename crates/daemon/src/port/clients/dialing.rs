//! Connects functions with `socket_mode = "client"` to their VMMs, by the thread of `dialer`: while a function has no client
//! and may have one, the thread tries to connect to the function's socket.

use super::PortClients;
use super::dialer::{DialerOutcome, VmmDialer, VmmSocketDial};
use super::dialer_event::DialerEvent;
use super::service::{attach, is_shut};
use crate::port::engine::PortEngine;
use host::socket::StreamSocket;
use i82576::Time;

impl PortClients {
    /// Sets the thread that connects to VMMs, and shuts the doors of listening sockets.
    pub(in crate::port) fn set_dialer(&mut self, dialer: Option<VmmDialer>) {
        self.dialer = dialer;
    }

    /// Handles what the dialer's thread has done. Has it connect to the VMM of each function that has lost its client or was
    /// enabled, and stop for functions that were disabled. Has it shut the doors of disabled functions.
    pub(in crate::port) fn dial(&mut self, engine: &mut PortEngine, now: Time) {
        while let Some(outcome) = self.dialer.as_ref().and_then(VmmDialer::outcome) {
            self.dialed(outcome, engine, now);
            self.unsettled = true;
        }
        // Most rounds of the port's loop change nothing.
        if !std::mem::take(&mut self.unsettled) {
            return;
        }
        self.settle_doors(engine, now);
        let Some(dialer) = &self.dialer else { return };
        for slot in &mut self.slots {
            if slot.endpoint.dial().is_none() {
                continue;
            }
            slot.note_backlog(now);
            let is_ready = slot.connection.is_none() && !is_shut(slot, engine.card());
            let wanted = is_ready && !slot.is_worker_behind;
            let Some(dial) = slot.endpoint.dial_mut() else { continue };
            match (wanted, dial.number) {
                (true, None) => {
                    self.dials += 1;
                    dialer.connect(VmmSocketDial {
                        function: slot.function,
                        number: self.dials,
                        path: slot.socket.clone(),
                        access: dial.access,
                        pause: dial.begin(self.dials, now),
                    });
                }
                (false, Some(_)) => {
                    (dial.number, dial.why) = (None, None);
                    dialer.stop(slot.function);
                }
                _ => {}
            }
        }
    }

    /// Stops to connect to VMMs, because the port ends.
    pub(super) fn end_dials(&mut self) {
        let Some(dialer) = self.dialer.take() else { return };
        while let Some(outcome) = dialer.outcome() {
            dialer.discard(outcome.event.into_streams());
        }
    }

    /// Closes connections that are not needed. The VMMs may have sent descriptors already, so the function's worker thread
    /// closes them.
    fn close_all(&self, index: usize, streams: Vec<StreamSocket>) {
        let errands = &self.slots[index].own.errands;
        streams.into_iter().for_each(|stream| errands.turn_away(stream));
    }

    fn dialed(&mut self, outcome: DialerOutcome, engine: &mut PortEngine, now: Time) {
        let DialerOutcome { function, number, event } = outcome;
        let index = self.slots.iter().position(|slot| slot.function == function);
        let Some(index) = index else {
            // The VF was withdrawn meanwhile.
            if let Some(dialer) = &self.dialer {
                dialer.discard(event.into_streams());
            }
            return;
        };
        match event {
            DialerEvent::Connected(stream) => self.connected(index, number, stream, engine, now),
            DialerEvent::Unconnected(why) => self.unconnected(index, number, why, now),
            DialerEvent::Drained(streams) => self.close_all(index, streams),
            DialerEvent::Unshut(why) => {
                let what =
                    "cannot shut the socket of the disabled function to VMMs yet; the host keeps trying";
                self.slots[index].warn(now, what, &why);
            }
            DialerEvent::Opened => self.opened(index, number),
            DialerEvent::Unopened(error) => {
                self.slots[index].warn(now, "cannot open the socket of the function to VMMs", &error);
                self.opened(index, number);
            }
        }
    }

    /// Attaches the VMM to which the dialer has connected.
    fn connected(
        &mut self,
        index: usize,
        number: u64,
        stream: StreamSocket,
        engine: &mut PortEngine,
        now: Time,
    ) {
        let slot = &mut self.slots[index];
        match slot.endpoint.dial_mut() {
            Some(dial) if dial.number == Some(number) && slot.connection.is_none() => {
                dial.note_connection(now);
                attach(slot, stream, self.wait, engine.card_mut(), now);
            }
            // The order was stopped after the dialer had carried it out.
            _ => slot.own.errands.turn_away(stream),
        }
    }

    /// Records and logs why the dialer has not connected to the VMM of a function.
    fn unconnected(&mut self, index: usize, number: u64, why: String, now: Time) {
        let slot = &mut self.slots[index];
        let Some(dial) = slot.endpoint.dial_mut().filter(|dial| dial.number == Some(number)) else { return };
        if let Some(suppressed) = slot.log.allow(now) {
            let (name, socket) = (&slot.name, slot.socket.display());
            tracing::info!(
                function = name,
                %socket,
                why,
                suppressed,
                "cannot connect to the VMM's socket yet; the host keeps trying"
            );
        }
        dial.why = Some(why);
    }
}
