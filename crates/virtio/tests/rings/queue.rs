//! Device's side of a ring of either format, so that one test runs on both formats.

use crate::memory::{DESCRIPTORS, DEVICE, DRIVER};
use virtio::chain::{Chain, ChainBurst, UsedChain};
use virtio::layout::{RingAddresses, RingFeatures};
use virtio::packed::{PackedLayout, PackedPosition, PackedQueue};
use virtio::split::{SplitLayout, SplitQueue};
use virtio::{RingError, RingMemory};

pub(crate) const ADDRESSES: RingAddresses =
    RingAddresses { descriptors: DESCRIPTORS, driver: DRIVER, device: DEVICE };

/// Returns the device's side of a new split ring.
pub(crate) fn split(size: u16, features: RingFeatures) -> SplitQueue {
    SplitQueue::new(SplitLayout::new(size.into(), ADDRESSES).unwrap(), features, 0)
}

/// Returns the device's side of a new packed ring.
pub(crate) fn packed(size: u16, features: RingFeatures) -> PackedQueue {
    let layout = PackedLayout::new(size.into(), ADDRESSES).unwrap();
    PackedQueue::new(layout, features, PackedPosition::START).unwrap()
}

/// Device's side of a ring of either format.
#[derive(Clone)]
pub(crate) enum EitherQueue {
    Split(SplitQueue),
    Packed(PackedQueue),
}

impl EitherQueue {
    pub(crate) fn new(is_packed: bool, size: u16, features: RingFeatures) -> Self {
        if is_packed { Self::Packed(packed(size, features)) } else { Self::Split(split(size, features)) }
    }

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

    pub(crate) fn complete<M: RingMemory>(
        &mut self,
        memory: &mut M,
        used: &[UsedChain],
    ) -> Result<(), RingError> {
        match self {
            Self::Split(queue) => queue.complete(memory, used),
            Self::Packed(queue) => queue.complete(memory, used),
        }
    }

    pub(crate) fn unfetch(&mut self, chains: &[Chain]) {
        match self {
            Self::Split(queue) => queue.unfetch(chains),
            Self::Packed(queue) => queue.unfetch(chains),
        }
    }

    pub(crate) fn needs_interrupt<M: RingMemory>(&mut self, memory: &mut M) -> Result<bool, RingError> {
        match self {
            Self::Split(queue) => queue.needs_interrupt(memory),
            Self::Packed(queue) => queue.needs_interrupt(memory),
        }
    }

    pub(crate) fn enable_notifications<M: RingMemory>(&mut self, memory: &mut M) -> Result<bool, RingError> {
        match self {
            Self::Split(queue) => queue.enable_notifications(memory),
            Self::Packed(queue) => queue.enable_notifications(memory),
        }
    }

    pub(crate) fn disable_notifications<M: RingMemory>(&mut self, memory: &mut M) -> Result<(), RingError> {
        match self {
            Self::Split(queue) => queue.disable_notifications(memory),
            Self::Packed(queue) => queue.disable_notifications(memory),
        }
    }

    /// Replaces the device by a successor that knows only the ring base, vhost-user's encoding of the position.
    pub(crate) fn restart(&mut self, features: RingFeatures) {
        match self {
            Self::Split(queue) => *queue = SplitQueue::new(*queue.layout(), features, queue.base()),
            Self::Packed(queue) => {
                let base = PackedPosition::from_vhost_base(queue.base().vhost_base());
                *queue = PackedQueue::new(*queue.layout(), features, base).unwrap();
            }
        }
    }
}
