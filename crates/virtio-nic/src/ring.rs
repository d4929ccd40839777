//! Ring of a device: its start by a transport, and the position at which it continues.

use crate::limits::MAX_PAIRS;
use crate::queue::VirtQueue;
use crate::start::RingStartParameters;
use pcie::{Bus, Function, MemoryHint};
use plane::PortIndex;
use virtio::memory::BusMemory;
use virtio::packed::record::{self, OpenError};
use virtio::{ChainBurst, RingError, VirtioFeatures};

/// Reason why a ring cannot start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum RingStartError {
    /// The card has no such VF, or its devices have no such ring.
    #[error("a device has no ring {ring}: its rings are 0 to {}", 2 * MAX_PAIRS - 1)]
    NoRing {
        /// Number of the ring.
        ring: u32,
    },
    /// Size, addresses or position of the ring are invalid, or the ring is not accessible.
    #[error(transparent)]
    Open(#[from] OpenError),
}

/// Makes the recorded position of a VF's packed ring invalid, because the transport knows the position, or the ring has
/// ended.
pub fn forget_position<B: Bus>(vf: u8, ring: u32, bus: &mut B) {
    let (function, ring, mut hint) = (Function::Vf(vf), ring as u8, MemoryHint(0));
    record::forget(&mut BusMemory { bus, function, ring, hint: &mut hint });
}

/// Ring of a device: a receive ring or a transmit ring.
#[derive(Debug, Default)]
pub(crate) struct DeviceRing {
    /// The live ring. `None` if the ring is not started, is paused, or was stopped by a fault.
    pub(crate) queue: Option<VirtQueue>,
    /// True if the transport has enabled the ring.
    pub(crate) enabled: bool,
    /// True if the driver is asked to notify the device of the next chain.
    pub(crate) armed: bool,
    /// Number of looks at the ring since it was last visited, while the card polls it.
    pub(crate) looks: u8,
    /// Number of the ring among those of its device.
    number: u8,
    /// Position at which a paused or stopped ring continues; `None` if it never ran.
    position: Option<u32>,
    /// Hint to the part of the guest's memory that holds the ring.
    pub(crate) hint: MemoryHint,
    /// Hint to the part of the guest's memory that holds the ring's buffers.
    pub(crate) buffers: MemoryHint,
}

impl DeviceRing {
    /// Starts the ring with the transport's parameters.
    pub(crate) fn start<B: Bus>(
        &mut self,
        port: PortIndex,
        start: &RingStartParameters,
        accepted: VirtioFeatures,
        bus: &mut B,
    ) -> Result<(), RingStartError> {
        self.halt();
        self.number = start.ring as u8;
        let queue = VirtQueue::open(start, accepted, self.position, &mut self.memory(port, bus).1)?;
        (self.position, self.enabled, self.armed) = (Some(queue.position()), start.enabled, true);
        self.queue = Some(queue);
        Ok(())
    }

    /// Returns the position at which another device continues the ring; `None` if the ring never ran.
    pub(crate) fn position(&self) -> Option<u32> {
        self.queue.as_ref().map(VirtQueue::position).or(self.position)
    }

    /// Sets the position at which the ring continues, which has run in another process. A live ring stays as it is.
    pub(crate) fn continue_at(&mut self, position: u32) {
        self.position = Some(position);
    }

    /// Stops the use of the ring, and keeps its position. Chains that were fetched and not returned are fetched again when the
    /// ring continues.
    pub(crate) fn halt(&mut self) -> u32 {
        if let Some(queue) = self.queue.take() {
            self.position = Some(queue.position());
        }
        (self.hint, self.buffers) = (MemoryHint(0), MemoryHint(0));
        self.position.unwrap_or(0)
    }

    /// Fetches up to `most` chains into `burst`, and asks the driver for no more notifications. Returns the number of chains.
    #[inline]
    pub(crate) fn fetch<B: Bus>(
        &mut self,
        port: PortIndex,
        burst: &mut ChainBurst,
        most: usize,
        bus: &mut B,
    ) -> Result<usize, RingError> {
        if self.armed {
            let (Some(queue), mut memory) = self.memory(port, bus) else { return Ok(0) };
            queue.disable_notifications(&mut memory)?;
            // After a fault the ring stays armed, so that the next fetch finds the fault again and stops the ring.
            self.armed = false;
        }
        let (Some(queue), mut memory) = self.memory(port, bus) else { return Ok(0) };
        queue.fetch(&mut memory, burst, most)
    }

    /// Returns true if the live ring has a chain to fetch.
    pub(crate) fn has_chain<B: Bus>(&mut self, port: PortIndex, bus: &mut B) -> Result<bool, RingError> {
        let (Some(queue), mut memory) = self.memory(port, bus) else { return Ok(false) };
        queue.has_chain(&mut memory)
    }

    /// Asks the driver for a notification of its next chain. Returns true if there is a chain already.
    pub(crate) fn arm<B: Bus>(&mut self, port: PortIndex, bus: &mut B) -> Result<bool, RingError> {
        self.armed = true;
        let (Some(queue), mut memory) = self.memory(port, bus) else { return Ok(false) };
        queue.enable_notifications(&mut memory)
    }

    /// Returns the live ring, and the guest's memory by which the bus accesses it.
    #[inline]
    pub(crate) fn memory<'a, B>(
        &'a mut self,
        port: PortIndex,
        bus: &'a mut B,
    ) -> (Option<&'a mut VirtQueue>, BusMemory<'a, B>) {
        let (function, ring) = (Function::Vf(port.get()), self.number);
        (self.queue.as_mut(), BusMemory { bus, function, ring, hint: &mut self.hint })
    }

    /// Returns true if frames may pass the ring.
    #[inline]
    pub(crate) fn is_live(&self) -> bool {
        self.enabled && self.queue.is_some()
    }

    /// Returns the number of entries of the live ring.
    pub(crate) fn size(&self) -> Option<u32> {
        self.queue.as_ref().map(|queue| queue.size().into())
    }
}
