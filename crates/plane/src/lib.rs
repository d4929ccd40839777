//! The forwarding plane: decides on frames and moves them between ports of any kind of device.
//!
//! A port sends frames, receives frames into its own buffers, and has a policy and counters. The device behind a set of
//! ports is a *family*, such as a card with its rings and registers. A family keeps descriptors, offloads and
//! interrupts to itself. It fills the switch's tables ([`switch::SwitchTables`]) and sets rates ([`pacing`]), hands
//! over finished frames ([`FrameSource`]), and receives frames ([`FrameSink`]). Ports of several families can be on one
//! plane.
//!
//! Time is an argument. A frame is bytes in a buffer of its sender's family ([`frame`]). Nothing happens between calls.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod bytes;
pub mod families;
mod forward;
pub mod frame;
pub mod ledger;
pub mod pacing;
pub mod ports;
mod settings;
mod sink;
pub mod source;
pub mod switch;
pub mod tag;
mod uncut;
pub mod uplink;
mod verdict;
mod visit;
pub mod watch;
mod watched;

pub use families::JoinedDevices;
pub use forward::Plane;
pub use ledger::{PortCounters, TrafficLedger};
pub use ports::{PortIndex, PortSet};
pub use sink::{DeliveryError, DeliveryFlags, DeliveryOutcome, ForwardResult, FrameSink};
pub use source::{FrameForwarder, FrameSource, TransmitQueueId};
pub use switch::FrameOrigin;
pub use uplink::{UnpluggedWire, UnsegmentedLayout, UplinkWire};
pub use verdict::{BurstTerms, BurstVerdict};
pub use visit::VisitResult;
