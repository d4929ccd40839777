//! Prepares clients for the successor process.

use super::PortClients;
use super::device::VfioFunction;
use crate::port::engine::PortEngine;
use i82576::Time;

impl PortClients {
    /// Leaves the files of listening sockets to the successor process, with the clients in their queues. Disconnects front ends
    /// that the successor does not resume, and refused ones: they connect again, to the successor.
    pub(in crate::port) fn leave_sockets(&mut self, engine: &mut PortEngine, now: Time) {
        self.end_dials();
        for mut slot in self.slots.drain(..) {
            if let Some(connection) = slot.connection.take_if(|connection| !connection.is_kept()) {
                let (function, own) = (slot.function, &mut slot.own);
                let stream = connection.close(&mut VfioFunction { function, engine, own, now });
                slot.own.errands.turn_away(stream);
            }
            slot.turn_held_away();
            slot.endpoint.leave();
        }
    }

    /// Leaves the files of listening sockets to the port's next life, as a panic does. The clients stay, by the copies of their
    /// descriptors.
    pub(in crate::port) fn leave_socket_files(&mut self) {
        self.slots.drain(..).for_each(|slot| slot.endpoint.leave());
    }

    /// Lets each client finish the request that it has begun, before the port pauses for its successor. Returns true if one waits
    /// for a blocking call, or for room in its socket.
    pub(in crate::port) fn finish_requests(&mut self, engine: &mut PortEngine, now: Time) -> bool {
        let mut waits = false;
        for (index, slot) in self.slots.iter_mut().enumerate().filter(|(_, slot)| slot.ending.is_none()) {
            let Some(connection) = slot.connection.as_mut() else { continue };
            let mut device = VfioFunction { function: slot.function, engine, own: &mut slot.own, now };
            waits |= connection.finish_request(&mut device, &mut self.buffer);
            // Room in the socket wakes the port while replies wait for it, and not afterwards. After a failure the end of the
            // pause's time wakes the port.
            let _ = connection.watch(&self.poller, index);
        }
        waits
    }

    /// Prepares each client for the successor process, before the port is saved.
    pub(in crate::port) fn prepare_hand_over(&mut self, engine: &mut PortEngine, now: Time) {
        for index in 0..self.slots.len() {
            let slot = &mut self.slots[index];
            let Some(connection) = slot.connection.as_mut() else { continue };
            if slot.ending.is_some() && !connection.outlives_reset() {
                // A front end that is being disconnected connects again, if its VF admits one.
                continue;
            }
            let mut device = VfioFunction { function: slot.function, engine, own: &mut slot.own, now };
            if let Err(end) = connection.prepare_hand_over(&mut device, &mut self.buffer) {
                self.disconnect(index, &end, engine, now);
            }
        }
    }
}
