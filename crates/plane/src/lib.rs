//! The forwarding plane: what decides about frames and moves them, whatever kind of device its ports belong to.
//!
//! A port is a source of frames, a sink of frames with buffers of its own, a policy, and counters. What is behind ports is a
//! *family*: a card with its rings and registers, or a back end with its own. The family keeps what is in its own terms
//! (descriptors, offloads, interrupts), says of its ports' policy in plain values ([`switch::Tables`], [`pacing`]), hands
//! over finished frames ([`Source`]), and takes those that the plane brings ([`Sink`]). Ports of several families
//! can be on one plane.
//!
//! Time is an argument, frames are bytes in a buffer of the sender's side ([`frame`]). Nothing happens between calls.
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
