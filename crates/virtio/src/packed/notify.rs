//! Notifications of a packed ring in both directions, and their suppression by event structures (section 2.8.10).

use super::{DESCRIPTOR, DISABLE, ENABLE, MASK, PackedQueue};
use crate::error::RingError;
use crate::memory::RingMemory;

/// Position in the device's event structure with the flags [`ENABLE`] and [`DISABLE`], with which drivers ignore it. The
/// position of a ring that a device has used is never zero, as it is in a ring that a driver has just created.
const NOWHERE: u16 = u16::MAX;

impl PackedQueue {
    /// Returns true if the driver must be interrupted for the chains returned since the last call.
    ///
    /// # Errors
    /// [`RingError`] if the driver's event structure is not accessible.
    pub fn needs_interrupt<M: RingMemory>(&mut self, memory: &mut M) -> Result<bool, RingError> {
        if !self.unsignalled.any() {
            return Ok(false);
        }
        // The driver sets its event and then looks for used descriptors; the device has to do the opposite in this order.
        memory.fence();
        let mut event = [0; 4];
        // Position and flags belong together: they are read at once.
        memory.read(self.layout.addresses.driver, &mut event)?;
        let [low, high, flags_low, flags_high] = event;
        let flags = u16::from_le_bytes([flags_low, flags_high]) & MASK;
        if flags == DESCRIPTOR && self.features.event_index {
            return Ok(self.passes(u16::from_le_bytes([low, high])));
        }
        self.unsignalled.forget();
        // A reserved value may cost an interrupt too many, which is harmless.
        Ok(flags != DISABLE)
    }

    /// Returns true if the slots returned since the last call include the position of the driver's event. An index from
    /// the ring's previous round counts as smaller by the ring's size, as in Linux and DPDK.
    fn passes(&mut self, event: u16) -> bool {
        let size = self.layout.size;
        let index = event & 0x7fff;
        let same_round = (event >> 15 != 0) == self.used.wrap();
        let event = if same_round { index } else { index.wrapping_sub(size) };
        self.unsignalled.pass(event, self.used.index(), size.into())
    }

    /// Asks the driver for a notification of the next available chain. Returns true if a chain is available already: then
    /// there may be no notification, and the caller fetches before it sleeps.
    ///
    /// # Errors
    /// [`RingError`] if the ring is not accessible.
    pub fn enable_notifications<M: RingMemory>(&mut self, memory: &mut M) -> Result<bool, RingError> {
        let event = match self.available.bits() {
            position @ 1.. if self.features.event_index => (position, DESCRIPTOR),
            _ => (NOWHERE, ENABLE),
        };
        self.write_event(memory, event)?;
        memory.fence();
        self.has_chain(memory)
    }

    /// Tells the driver that the device wants no notifications, as a device that polls does.
    ///
    /// # Errors
    /// [`RingError`] if the device's event structure is not accessible.
    pub fn disable_notifications<M: RingMemory>(&mut self, memory: &mut M) -> Result<(), RingError> {
        self.write_event(memory, (NOWHERE, DISABLE))
    }

    /// Returns true if a device has used the ring since its driver created it. A front end may write the flags, but not the
    /// position: QEMU asks for no notifications of a transmit ring while it has no back end. `writes_position` is true if the
    /// device that has used the ring writes a position that is not zero; an earlier one writes flags that are not.
    pub(super) fn has_run<M: RingMemory>(
        &self,
        writes_position: bool,
        memory: &mut M,
    ) -> Result<bool, RingError> {
        let mut event = [0; 4];
        memory.read(self.layout.addresses.device, &mut event)?;
        let [low, high, ..] = event;
        Ok(if writes_position { [low, high] != [0; 2] } else { event != [0; 4] })
    }

    fn write_event<M: RingMemory>(
        &self,
        memory: &mut M,
        (position, flags): (u16, u16),
    ) -> Result<(), RingError> {
        let event = u32::from(position) | u32::from(flags) << 16;
        Ok(memory.write(self.layout.addresses.device, &event.to_le_bytes())?)
    }
}
