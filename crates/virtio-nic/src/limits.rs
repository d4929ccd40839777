//! Features and limits of the card.

use virtio::VirtioFeatures;

/// Maximum number of VFs of a card.
pub const MAX_VFS: usize = 64;
/// Maximum number of queue pairs of a device.
pub const MAX_PAIRS: usize = 16;
/// Length of the longest frame that a device sends or receives, in bytes, check sequence excluded.
pub const LONGEST_FRAME: usize = 9_724;

/// Features that the card implements and a transport offers to drivers. The control queue and its features belong to the
/// VMM.
pub const FEATURES: VirtioFeatures = {
    use VirtioFeatures as F;
    F::CSUM
        .with(F::GUEST_CSUM)
        .with(F::MTU)
        .with(F::GUEST_TSO4)
        .with(F::GUEST_TSO6)
        .with(F::GUEST_ECN)
        .with(F::HOST_TSO4)
        .with(F::HOST_TSO6)
        .with(F::HOST_ECN)
        .with(F::MRG_RXBUF)
        .with(F::GUEST_ANNOUNCE)
        .with(F::MQ)
        .with(F::INDIRECT_DESC)
        .with(F::EVENT_IDX)
        .with(F::VERSION_1)
        .with(F::RING_PACKED)
        .with(F::IN_ORDER)
};
