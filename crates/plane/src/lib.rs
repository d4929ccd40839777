#![doc = include_str!("../README.md")]
#![no_std]
#![forbid(unsafe_code)]
#![cfg_attr(not(test), warn(clippy::cast_lossless, clippy::cast_possible_truncation, clippy::cast_sign_loss))]

extern crate alloc;

mod batch;
pub mod bytes;
mod contents;
mod families;
mod forward;
pub mod frame;
pub mod guard;
pub mod ledger;
pub mod pacing;
pub mod ports;
mod settings;
pub mod shares;
mod sink;
mod source;
pub mod switch;
pub mod tag;
mod trunk;
mod uncut;
pub mod uplink;
mod verdict;
mod visit;
pub mod watch;
mod watched;

pub use batch::{TrunkBatch, TrunkFrameHeader, TrunkFramePlaces, TrunkRun};
pub use families::JoinedDevices;
pub use forward::ForwardingPlane;
pub use ledger::{PortCounters, TrafficLedger};
pub use ports::{PortIndex, PortSet};
pub use sink::{DeliveryError, DeliveryFlags, DeliveryOutcome, ForwardResult, FrameSink};
pub use source::{FrameForwarder, FrameSource, TransmitQueueId};
pub use switch::FrameOrigin;
pub use trunk::FrameTrunk;
pub use uncut::UncutOutcome;
pub use uplink::{UnpluggedWire, UnsegmentedPacketLayout, UplinkWire};
pub use verdict::{BurstFrameVerdict, PortBurstSettings};
pub use visit::TransmitQueuePollResult;
