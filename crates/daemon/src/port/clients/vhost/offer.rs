//! Offer of a virtio function to its front end.

use crate::port::tokens::RINGS;
use vhost_user::backend::BackendOffer;
use vhost_user::features::{device, protocol};
use virtio::VirtioFeatures;

/// Features that a function offers. They must not become fewer in a later version of softiov: QEMU gives up a back end
/// that offers less after a reconnection.
const FEATURES: VirtioFeatures = virtio_nic::FEATURES;

/// Returns the offer to a vhost-user client, which is the same for every virtio function and at any time.
pub(super) fn of_every_function() -> BackendOffer {
    let offer = BackendOffer::net(RINGS / 2, FEATURES.bits() | device::LOG_ALL);
    let own = 1 << protocol::LOG_SHMFD | 1 << protocol::INFLIGHT_SHMFD;
    BackendOffer { protocol_features: offer.protocol_features | own, ..offer }
}

/// Returns the accepted features that the card interprets. The others are those of the protocol.
pub(super) fn accepted(bits: u64) -> VirtioFeatures {
    VirtioFeatures::from_bits(bits & FEATURES.bits())
}
