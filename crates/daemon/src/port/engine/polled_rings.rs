//! Rings that the port polls while there is traffic: rings in guests' memory, whose drivers then send no notifications, and
//! trunks from other workers.

use super::PortEngine;

impl PortEngine {
    /// Returns true if the card polls rings, so that a packet may come without an event.
    pub(in crate::port) fn polls_rings(&self) -> bool {
        self.card.polls_rings()
    }

    /// Looks for a packet in the rings that the card polls, and for a frame in a trunk. Returns true if there is one.
    pub(in crate::port) fn look_at_rings(&mut self) -> bool {
        self.card.look_at_rings(&mut self.bus)
            || self.card.workers().is_some_and(|workers| workers.have_frames())
    }

    /// Prepares rings for the port's sleep: asks drivers for notifications, and other workers to wake the port. Returns true
    /// if there is a packet or a frame already.
    pub(in crate::port) fn arm_rings(&mut self) -> bool {
        let has_packet = self.card.arm_rings(&mut self.bus);
        has_packet || self.card.workers().is_some_and(|workers| !workers.may_sleep())
    }
}
