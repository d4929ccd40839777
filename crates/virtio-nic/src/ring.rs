//! Ring of a device: its start by a transport, and the position at which it continues.

use crate::limits::MAX_PAIRS;
use crate::queue::VirtQueue;
use pcie::{Bus, Function, MemoryHint};
use plane::PortIndex;
use virtio::layout::{LayoutError, RingAddresses, RingFeatures};
use virtio::memory::BusMemory;
use virtio::packed::PackedPosition;
use virtio::{ChainBurst, RingError};

/// Parameters with which a transport starts a ring. Ring 2k receives and ring 2k + 1 transmits, for queue pair k.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RingStartParameters {
    /// Number of the ring.
    pub ring: u32,
    /// Number of entries of the ring.
    pub size: u32,
    /// True if the ring is packed.
    pub packed: bool,
    /// True if the ring is enabled. A disabled ring delivers nothing, and the frames that the guest sends are dropped.
    pub enabled: bool,
    /// Position at which the ring begins, as vhost-user's ring base. `None` continues where the ring was paused.
    pub position: Option<u32>,
    /// Guest addresses of the parts of the ring.
    pub addresses: RingAddresses,
}

/// Reason why a ring cannot start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum RingStartError {
    /// The card has no such VF, or its devices have no such ring.
    #[error("a device has no ring {ring}: its rings are 0 to {}", 2 * MAX_PAIRS - 1)]
    NoRing {
        /// Number of the ring.
        ring: u32,
    },
    /// Size, addresses or position of the ring are invalid.
    #[error(transparent)]
    Layout(#[from] LayoutError),
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
    /// Position at which a paused or stopped ring continues; `None` if it never ran.
    position: Option<u32>,
    /// Hint to the part of the guest's memory that holds the ring.
    pub(crate) hint: MemoryHint,
    /// Hint to the part of the guest's memory that holds the ring's buffers.
    pub(crate) buffers: MemoryHint,
}

impl DeviceRing {
    /// Starts the ring with the transport's parameters.
    pub(crate) fn start(
        &mut self,
        start: &RingStartParameters,
        features: RingFeatures,
    ) -> Result<(), RingStartError> {
        self.halt();
        let first = if start.packed { PackedPosition::START.vhost_base() } else { 0 };
        let position = start.position.or(self.position).unwrap_or(first);
        let RingStartParameters { size, packed, addresses, .. } = *start;
        self.queue = Some(VirtQueue::new(packed, (size, addresses), features, position)?);
        (self.position, self.enabled, self.armed) = (Some(position), start.enabled, true);
        Ok(())
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
        let Some(queue) = &mut self.queue else { return Ok(0) };
        let mut memory = ring_memory(bus, port, &mut self.hint);
        if self.armed {
            queue.disable_notifications(&mut memory)?;
            self.armed = false;
        }
        queue.fetch(&mut memory, burst, most)
    }

    /// Asks the driver for a notification of its next chain. Returns true if there is a chain already.
    pub(crate) fn arm<B: Bus>(&mut self, port: PortIndex, bus: &mut B) -> Result<bool, RingError> {
        let Some(queue) = &mut self.queue else { return Ok(false) };
        self.armed = true;
        queue.enable_notifications(&mut ring_memory(bus, port, &mut self.hint))
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

/// Returns the guest's memory, which the bus accesses, for one ring.
#[inline]
pub(crate) fn ring_memory<'a, B>(
    bus: &'a mut B,
    port: PortIndex,
    hint: &'a mut MemoryHint,
) -> BusMemory<'a, B> {
    BusMemory { bus, function: Function::Vf(port.get()), hint }
}
