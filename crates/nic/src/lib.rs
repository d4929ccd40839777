//! The card: a pure state machine, one folder per stop of a frame.
//!
//! A frame comes from the wire ([`uplink`]) or, when [`pacing`] lets it, from a transmit [`queue`], is prepared by
//! [`offload`], sent to whom the [`switch`] says, and ends on the wire or in the receive queues that `steering` finds;
//! [`interrupt`] and [`moderation`] decide who hears of it and when. [`mailbox`] and [`function`] are what drivers see
//! of the card.
//!
//! Time is an argument, memory and messages go through [`pcie::Bus`], frames through [`Wire`]. Nothing
//! happens between calls; register accesses change state only, and [`Nic::poll`] does the work.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod arrival;
mod board;
pub mod counters;
mod decoded;
pub mod doorbell;
pub mod file;
mod forward;
mod frame;
pub mod function;
pub mod interrupt;
mod link;
pub mod mailbox;
pub mod moderation;
pub mod offload;
pub mod pacing;
mod police;
mod port;
pub mod queue;
mod scratch;
mod state;
mod steering;
pub mod switch;
pub mod uplink;

pub use counters::{Counters, PoolCounters};
pub use port::{Budget, Config, Nic, Poll};
pub use state::{Damaged, RestoreError, State};
pub use uplink::{Unplugged, Wire};
