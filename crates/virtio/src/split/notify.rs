//! Notifications of a split ring in both directions, and their suppression (sections 2.7.7 and 2.7.10).

use super::{NO_INTERRUPT, NO_NOTIFY, SplitQueue};
use crate::error::RingError;
use crate::memory::{RingMemory, read_u16};

/// Number of entries after which a running index repeats.
const PERIOD: u32 = 1 << 16;

impl SplitQueue {
    /// Returns true if the driver must be interrupted for the chains returned since the last call.
    ///
    /// # Errors
    /// [`RingError`] if the available ring is not accessible.
    pub fn needs_interrupt<M: RingMemory>(&mut self, memory: &mut M) -> Result<bool, RingError> {
        if !self.unsignalled.any() {
            return Ok(false);
        }
        // The driver sets its event and then looks for used chains; the device has to do the opposite in this order.
        memory.fence();
        if self.features.event_index {
            let event = read_u16(memory, self.layout.used_event())?;
            Ok(self.unsignalled.pass(event, self.used, PERIOD))
        } else {
            self.unsignalled.forget();
            Ok(read_u16(memory, self.layout.addresses.driver)? & NO_INTERRUPT == 0)
        }
    }

    /// Asks the driver for a notification of the next available chain. Returns true if a chain is available already: then
    /// there may be no notification, and the caller fetches before it sleeps.
    ///
    /// # Errors
    /// [`RingError`] if the ring is malformed or not accessible.
    pub fn enable_notifications<M: RingMemory>(&mut self, memory: &mut M) -> Result<bool, RingError> {
        if self.features.event_index {
            memory.write(self.layout.available_event(), &self.available.to_le_bytes())?;
        } else {
            memory.write(self.layout.addresses.device, &0_u16.to_le_bytes())?;
        }
        memory.fence();
        self.has_chain(memory)
    }

    /// Tells the driver that the device wants no notifications, as a device that polls does. With event indices the
    /// driver still sends one per 65,536 chains, unless this is called again.
    ///
    /// # Errors
    /// [`RingError`] if the used ring is not accessible.
    pub fn disable_notifications<M: RingMemory>(&mut self, memory: &mut M) -> Result<(), RingError> {
        if self.features.event_index {
            // The driver must ignore the flag, so the event is as far away as possible.
            let event = self.available.wrapping_sub(1);
            memory.write(self.layout.available_event(), &event.to_le_bytes())?;
        } else {
            memory.write(self.layout.addresses.device, &NO_NOTIFY.to_le_bytes())?;
        }
        Ok(())
    }
}
