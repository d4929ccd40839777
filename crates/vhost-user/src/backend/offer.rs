//! Properties of a back end that it offers to front ends.

use crate::features::{device, protocol};
use crate::message::MAX_RING_SIZE;

/// Maximum queue pairs of a device. (The protocol's eventfd messages allow 256 rings.)
const MAX_PAIRS: u32 = 16;
/// Maximum memory regions of a front end; QEMU uses at most 512.
const MAX_REGIONS: usize = 512;

/// Properties of a back end, which a session offers to its front end.
///
/// QEMU refuses a back end that offers less after a reconnection, so every session of a device needs the same offer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BackendOffer {
    /// Number of queue pairs, clamped to 1-16.
    pub queue_pairs: u32,
    /// Feature bits of the device. Bit 30 (protocol features) is always offered as well.
    pub features: u64,
    /// Protocol features; [unsupported ones](protocol::SUPPORTED) are not offered.
    pub protocol_features: u64,
    /// Maximum memory regions, at most 512. QEMU hot-plugs memory only while regions are free.
    pub memory_regions: usize,
    /// Maximum descriptors of a ring, at most 32,768.
    pub ring_size: u32,
}

impl BackendOffer {
    /// Returns the offer of a network device with these feature bits: the protocol features that every back end should
    /// have, 64 memory regions, and rings of up to 32,768 descriptors.
    #[must_use]
    pub fn net(queue_pairs: u32, features: u64) -> Self {
        Self {
            queue_pairs,
            features,
            protocol_features: protocol::OFFERED_TO_NET,
            memory_regions: 64,
            ring_size: MAX_RING_SIZE,
        }
    }

    /// Returns the offer within the limits of a session.
    pub(super) fn limited(self) -> Self {
        Self {
            queue_pairs: self.queue_pairs.clamp(1, MAX_PAIRS),
            features: self.features | device::PROTOCOL_FEATURES,
            protocol_features: self.protocol_features & protocol::SUPPORTED,
            memory_regions: self.memory_regions.clamp(1, MAX_REGIONS),
            ring_size: self.ring_size.clamp(1, MAX_RING_SIZE),
        }
    }
}
