//! Device's side of a split or packed ring. The two formats differ only in the layout of their memory.

use virtio::layout::{LayoutError, RingAddresses, RingFeatures};
use virtio::packed::{PackedLayout, PackedPosition, PackedQueue};
use virtio::split::{SplitLayout, SplitQueue};
use virtio::{Chain, ChainBurst, RingError, RingMemory, UsedChain};

/// Device's side of a ring of either format, split or packed.
#[derive(Debug, Clone)]
pub(crate) enum VirtQueue {
    Split(SplitQueue),
    Packed(PackedQueue),
}

impl VirtQueue {
    /// Creates the device's side of a ring of either format, with its size and guest addresses, which continues at
    /// `position`.
    pub(crate) fn new(
        packed: bool,
        (size, addresses): (u32, RingAddresses),
        features: RingFeatures,
        position: u32,
    ) -> Result<Self, LayoutError> {
        if packed {
            let (layout, position) =
                (PackedLayout::new(size, addresses)?, PackedPosition::from_vhost_base(position));
            return Ok(Self::Packed(PackedQueue::new(layout, features, position)?));
        }
        // A split ring's running index has 16 bits.
        Ok(Self::Split(SplitQueue::new(SplitLayout::new(size, addresses)?, features, position as u16)))
    }

    /// Returns the position at which the ring continues, as vhost-user's ring base.
    pub(crate) fn position(&self) -> u32 {
        match self {
            Self::Split(queue) => queue.base().into(),
            Self::Packed(queue) => queue.base().vhost_base(),
        }
    }

    /// Returns the number of entries of the ring.
    pub(crate) fn size(&self) -> u16 {
        match self {
            Self::Split(queue) => queue.layout().size(),
            Self::Packed(queue) => queue.layout().size(),
        }
    }

    /// Fetches up to `most` chains into `burst`. Returns their number.
    #[inline]
    pub(crate) fn fetch<M: RingMemory>(
        &mut self,
        memory: &mut M,
        burst: &mut ChainBurst,
        most: usize,
    ) -> Result<usize, RingError> {
        match self {
            Self::Split(queue) => queue.fetch(memory, burst, most),
            Self::Packed(queue) => queue.fetch(memory, burst, most),
        }
    }

    /// Puts the chains that were fetched last back into the ring.
    pub(crate) fn unfetch(&mut self, chains: &[Chain]) {
        match self {
            Self::Split(queue) => queue.unfetch(chains),
            Self::Packed(queue) => queue.unfetch(chains),
        }
    }

    /// Returns chains to the driver by one publication, in the order in which they were fetched.
    #[inline]
    pub(crate) fn complete<M: RingMemory>(
        &mut self,
        memory: &mut M,
        returned: &[UsedChain],
    ) -> Result<(), RingError> {
        match self {
            Self::Split(queue) => queue.complete(memory, returned),
            Self::Packed(queue) => queue.complete(memory, returned),
        }
    }

    /// Returns true if the driver has to be interrupted for the returned chains.
    #[inline]
    pub(crate) fn needs_interrupt<M: RingMemory>(&mut self, memory: &mut M) -> Result<bool, RingError> {
        match self {
            Self::Split(queue) => queue.needs_interrupt(memory),
            Self::Packed(queue) => queue.needs_interrupt(memory),
        }
    }

    /// Asks the driver for a notification of the next available chain. Returns true if a chain is available already.
    #[inline]
    pub(crate) fn enable_notifications<M: RingMemory>(&mut self, memory: &mut M) -> Result<bool, RingError> {
        match self {
            Self::Split(queue) => queue.enable_notifications(memory),
            Self::Packed(queue) => queue.enable_notifications(memory),
        }
    }

    /// Asks the driver for no notifications.
    #[inline]
    pub(crate) fn disable_notifications<M: RingMemory>(&mut self, memory: &mut M) -> Result<(), RingError> {
        match self {
            Self::Split(queue) => queue.disable_notifications(memory),
            Self::Packed(queue) => queue.disable_notifications(memory),
        }
    }
}
