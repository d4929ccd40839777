//! Ports of virtio network devices on the forwarding plane. Each VF is one device with up to 16 queue pairs, whose rings a
//! transport starts and stops. Policy comes as [`VfRules`], since a device behind vhost-user never learns what its guest asks of
//! the control queue.
//!
//! | module | content |
//! |---|---|
//! | `card` | all devices, and the calls of a transport |
//! | `device` | one device: its rings, features and counters |
//! | `limits` | features and limits of the card |
//! | `start`, `ring`, `queue` | a ring of a device: its start and its position; a ring of either format |
//! | [`rules`], `tables` | the policy of a VF, and the switch's tables that follow from it |
//! | `transmit` | a transmit ring: packets and their headers |
//! | `packet`, `paused` | offload requests of a packet; a packet that waits between two segments |
//! | `source`, `bursts` | transmit rings as sources of frames, one by one and in bursts |
//! | `learn`, `announce` | the address of a VF whose rules have none; announcements of guests that have moved |
//! | `deliver` | frames into receive rings, and their buffers back to the driver |
//! | `moderation`, `interrupt` | interrupts that are delayed |
//! | `receive`, `merge` | a receive ring: posted buffers, and the buffers of one frame |
//! | `coalesce`, `joined` | TCP segments that are joined for a receive ring |
//! | `sink` | receive rings as sinks of frames |
//! | `polling` | transmit rings whose drivers send no notifications |
//! | `part` | parts of the card on different threads |
//! | `rounds` | visits to the transmit rings, frames from the uplink |
//! | `work`, `scratch` | parts of the card that the frame path uses; its private memory |
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod announce;
mod bursts;
mod card;
mod changes;
mod coalesce;
mod deliver;
mod device;
mod interrupt;
mod joined;
mod learn;
mod limits;
mod merge;
mod moderation;
mod packet;
mod part;
mod paused;
mod polling;
mod queue;
mod receive;
mod ring;
mod rounds;
pub mod rules;
mod scratch;
mod sink;
mod source;
mod start;
mod tables;
mod transmit;
mod work;

pub use card::{KnownGuest, Nic};
pub use device::DeviceCounters;
pub use limits::{FEATURES, LONGEST_FRAME, MAX_PAIRS, MAX_VFS};
pub use moderation::InterruptIntervals;
pub use part::DetachedDevice;
pub use paused::PausedPacket;
pub use ring::{RingStartError, forget_position};
pub use rules::{VfRules, VlanMembership};
pub use start::RingStartParameters;
