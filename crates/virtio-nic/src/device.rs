//! A virtio network device: its features, its rings and its counters. A transport, such as vhost-user, changes the rings by the
//! methods of [`Nic`](crate::Nic).

use crate::MAX_PAIRS;
use crate::packet::PacketRequest;
use crate::queue::VirtQueue;
use crate::receive::PostedBuffers;
use crate::rules::VfRules;
use crate::work::ring_memory;
use alloc::boxed::Box;
use pcie::{Bus, MemoryHint};
use plane::PortIndex;
use rings::HeldPacket;
use units::MacAddress;
use virtio::layout::{LayoutError, RingAddresses, RingFeatures};
use virtio::{ChainBurst, RingError, VirtioFeatures};

/// Ring that a transport starts. Ring 2k receives and ring 2k + 1 transmits, for queue pair k.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RingStart {
    /// Number of the ring.
    pub ring: u32,
    /// Number of entries of the ring.
    pub size: u32,
    /// True if the ring is packed.
    pub packed: bool,
    /// True if the ring is enabled. A disabled ring delivers nothing, and the frames that the guest sends are dropped.
    pub enabled: bool,
    /// Position at which the ring begins, as vhost-user's messages have it. `None` continues where the ring was paused.
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

/// Counters of a device's events.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DeviceCounters {
    /// Number of rings that were stopped because they are malformed or not in the guest's memory.
    pub faults: u64,
    /// Number of sent packets that were dropped because their chain or their header is malformed.
    pub malformed: u64,
    /// Number of sent packets that requested a checksum.
    pub checksums: u64,
    /// Number of sent packets that requested segmentation.
    pub segmented: u64,
    /// Number of packets that a receiver got unsegmented.
    pub passed_uncut: u64,
    /// Number of notifications by the driver.
    pub kicks: u64,
    /// Number of interrupts to the driver.
    pub calls: u64,
}

/// Ring of a device, in one direction.
#[derive(Debug, Default)]
pub(crate) struct DeviceRing {
    /// The live ring. `None` if the ring is not started, is paused, or was stopped by a fault.
    pub(crate) queue: Option<VirtQueue>,
    /// True if the transport has enabled the ring.
    pub(crate) enabled: bool,
    /// True if the driver may notify the device of the ring.
    pub(crate) armed: bool,
    /// Position at which a paused or stopped ring continues.
    position: u32,
    /// Hint where the ring is in the guest's memory.
    pub(crate) hint: MemoryHint,
    /// Hint where the ring's buffers are.
    pub(crate) buffers: MemoryHint,
}

impl DeviceRing {
    /// Starts the ring.
    pub(crate) fn start(&mut self, start: &RingStart, features: RingFeatures) -> Result<(), RingStartError> {
        self.halt();
        let position = start.position.unwrap_or(self.position);
        self.queue = Some(VirtQueue::new(start, features, position)?);
        (self.position, self.enabled, self.armed) = (position, start.enabled, true);
        Ok(())
    }

    /// Stops the use of the ring, and keeps its position. Chains that were fetched and not returned are fetched again when the
    /// ring continues.
    pub(crate) fn halt(&mut self) -> u32 {
        if let Some(queue) = self.queue.take() {
            self.position = queue.position();
        }
        (self.hint, self.buffers) = (MemoryHint(0), MemoryHint(0));
        self.position
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

/// Receive ring with the buffers that were fetched from it.
#[derive(Debug, Default)]
pub(crate) struct ReceiveRing {
    pub(crate) ring: DeviceRing,
    /// Fetched buffers; `None` before the first frame.
    pub(crate) posted: Option<Box<PostedBuffers>>,
}

/// Virtio network device of a VF.
#[derive(Debug, Default)]
pub(crate) struct VirtioDevice {
    pub(crate) rules: VfRules,
    /// Source address of the first frame, of a VF whose rules have no address.
    pub(crate) learned: Option<MacAddress>,
    pub(crate) accepted: VirtioFeatures,
    pub(crate) receive: [ReceiveRing; MAX_PAIRS],
    pub(crate) transmit: [DeviceRing; MAX_PAIRS],
    /// Packet that is paused between two of its segments.
    pub(crate) held: HeldPacket<PacketRequest>,
    /// Transmit rings that may hold packets, a bit each.
    pub(crate) ready: u16,
    /// Receive rings with filled buffers that the driver has not got back, a bit each.
    pub(crate) filled: u16,
    /// Number of the first queue pairs whose receive rings are live.
    pub(crate) pairs: u16,
    pub(crate) counters: DeviceCounters,
}

impl VirtioDevice {
    /// Returns the ring with a number of the transport.
    pub(crate) fn ring_mut(&mut self, ring: u32) -> Option<&mut DeviceRing> {
        let pair = ring as usize / 2;
        if ring.is_multiple_of(2) {
            self.receive.get_mut(pair).map(|receive| &mut receive.ring)
        } else {
            self.transmit.get_mut(pair)
        }
    }

    /// Forgets buffers that were fetched from a receive ring: the driver may have withdrawn them.
    pub(crate) fn forget_buffers(&mut self, ring: u32) {
        let pair = ring as usize / 2;
        if let Some(receive) = self.receive.get_mut(pair).filter(|_| ring.is_multiple_of(2)) {
            receive.posted = None;
            self.filled &= !(1 << pair);
        }
    }

    /// Counts the queue pairs that may receive: the first ones whose receive rings are live.
    pub(crate) fn count_pairs(&mut self) {
        self.pairs = self.receive.iter().take_while(|receive| receive.ring.is_live()).count() as u16;
    }

    /// Stops a ring after a fault, until the transport starts it again.
    #[cold]
    pub(crate) fn fail(&mut self, ring: u32) {
        self.counters.faults += 1;
        if let Some(ring) = self.ring_mut(ring) {
            ring.halt();
        }
        self.forget_buffers(ring);
        self.count_pairs();
        if !ring.is_multiple_of(2) {
            self.ready &= !(1 << (ring / 2));
        }
    }

    /// Returns the VF's address: the first of its rules, or the learned one.
    pub(crate) fn address(&self) -> Option<MacAddress> {
        self.rules.addresses.first().copied().or(self.learned)
    }
}
