//! Rings in guests' memory that the port's card polls while there is traffic, so that their drivers send no notifications.

use super::PortEngine;

impl PortEngine {
    /// Returns true if the card polls rings, so that a packet may come without an event.
    pub(in crate::port) fn polls_rings(&self) -> bool {
        self.card.polls_rings()
    }

    /// Looks for a packet in the rings that the card polls. Returns true if there is one, which the next poll sends.
    pub(in crate::port) fn look_at_rings(&mut self) -> bool {
        self.card.look_at_rings(&mut self.bus)
    }

    /// Asks the drivers of polled rings for a notification of their next packet, before the port sleeps. Returns true if a
    /// ring has a packet already.
    pub(in crate::port) fn arm_rings(&mut self) -> bool {
        self.card.arm_rings(&mut self.bus)
    }
}
