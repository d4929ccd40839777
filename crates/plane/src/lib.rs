//! The forwarding plane: decides on frames and moves them between ports of any kind of device.
//!
//! A port sends frames, receives frames into its own buffers, and has a policy and counters. The device behind a set of ports is a
//! *family*, such as a card with its rings and registers. A family keeps descriptors, offloads and interrupts to itself. It fills
//! the switch's tables ([`switch::Tables`]) and sets rates ([`pacing`]), hands over finished frames ([`Source`]), and receives
//! frames ([`Sink`]). Ports of several families can be on one plane.
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
mod policy;
pub mod ports;
mod sink;
pub mod source;
pub mod switch;
pub mod tag;
mod uncut;
pub mod uplink;
mod verdict;
pub mod watch;
mod watched;

pub use families::Joined;
pub use forward::Plane;
pub use ledger::{Ledger, PortCounters};
pub use ports::{Port, Ports};
pub use sink::{About, Fate, Forwarded, Missed, Sink};
pub use source::{Lane, Sender, Source, Visited};
pub use switch::Origin;
pub use uplink::{Uncut, Unplugged, Wire};
pub use verdict::{BurstTerms, Verdict};
