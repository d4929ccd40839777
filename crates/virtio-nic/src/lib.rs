//! Ports of virtio network devices on the forwarding plane. Each VF is one device with up to 16 queue pairs, whose rings a
//! transport starts and stops. Policy comes as [`VfRules`], since a device behind vhost-user never learns what its guest asks of
//! the control queue.
//!
//! | module | content |
//! |---|---|
//! | `card` | all devices, and the calls of a transport |
//! | `device` | one device: its rings, features and counters |
//! | `queue` | a ring of either format |
//! | [`rules`], `tables` | the policy of a VF, and the switch's tables that follow from it |
//! | `transmit` | a transmit ring: packets and their headers |
//! | `packet` | offload requests of a packet |
//! | `source`, `bursts` | transmit rings as sources of frames, one by one and in bursts |
//! | `learn` | the address of a VF whose rules have none |
//! | `receive`, `merge` | a receive ring: posted buffers, and the buffers of one frame |
//! | `sink` | receive rings as sinks of frames |
//! | `rounds` | visits to the transmit rings, frames from the uplink |
//! | `work`, `scratch` | parts of the card that the frame path uses; its private memory |
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod bursts;
mod card;
mod device;
mod learn;
mod merge;
mod packet;
mod queue;
mod receive;
mod rounds;
pub mod rules;
mod scratch;
mod sink;
mod source;
mod tables;
mod transmit;
mod work;

pub use card::Nic;
pub use device::{DeviceCounters, RingStart, RingStartError};
pub use rules::{VfRules, VlanMembership};

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
