//! Device's side of a split or packed ring. The two formats differ only in the layout of their memory.

use crate::start::RingStartParameters;
use virtio::layout::RingFeatures;
use virtio::packed::record::{self, FirstPosition, OpenError, RingOwner};
use virtio::packed::{PackedLayout, PackedPosition, PackedQueue};
use virtio::split::{SplitLayout, SplitQueue};
use virtio::{Chain, ChainBurst, RingError, RingMemory, UsedChain, VirtioFeatures};

/// Device's side of a ring of either format, split or packed.
#[derive(Debug, Clone)]
pub(crate) enum VirtQueue {
    Split(SplitQueue),
    Packed(PackedQueue),
}

impl VirtQueue {
    /// Begins to use a ring of either format with the transport's parameters. A ring whose position the transport does
    /// not give continues at `paused`. A packed ring continues at the position of its record, if the record is of this
    /// ring.
    pub(crate) fn open<M: RingMemory>(
        start: &RingStartParameters,
        accepted: VirtioFeatures,
        paused: Option<u32>,
        memory: &mut M,
    ) -> Result<Self, OpenError> {
        let RingStartParameters { size, packed, addresses, position, .. } = *start;
        let features = RingFeatures::of(accepted);
        if !packed {
            record::forget(memory);
            // A split ring's running index has 16 bits.
            let position = position.or(paused).unwrap_or(0) as u16;
            return Ok(Self::Split(SplitQueue::new(SplitLayout::new(size, addresses)?, features, position)));
        }
        let receives = start.ring.is_multiple_of(2);
        let first = match (position, paused) {
            (Some(given), _) if receives => FirstPosition::Given(PackedPosition::from_vhost_base(given)),
            (Some(given), _) => FirstPosition::GivenForTransmit(PackedPosition::from_vhost_base(given)),
            (None, Some(paused)) => FirstPosition::Paused(PackedPosition::from_vhost_base(paused)),
            (None, None) => FirstPosition::Given(PackedPosition::START),
        };
        let owner = RingOwner { memory: start.memory, features: accepted.bits() };
        let layout = PackedLayout::new(size, addresses)?;
        let queue = PackedQueue::open(layout, features, (first, owner), memory)?.0;
        Ok(Self::Packed(if receives { queue } else { queue.read_only() }))
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

    /// Returns true if the ring has a chain to fetch.
    #[inline]
    pub(crate) fn has_chain<M: RingMemory>(&mut self, memory: &mut M) -> Result<bool, RingError> {
        match self {
            Self::Split(queue) => queue.has_chain(memory),
            Self::Packed(queue) => queue.has_chain(memory),
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
