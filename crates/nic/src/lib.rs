//! The card: a pure state machine, one folder per stop of a frame.
//!
//! A frame comes from the wire (`uplink`) or, when [`plane::pacing`] permits, from a transmit [`queue`]. [`offload`] prepares
//! it, [`plane::switch`] chooses its receivers, and it ends on the wire or in the receive queues that `steering` chooses.
//! Crate `rings` calls these stops in order. [`interrupt`] and [`moderation`] decide which function is notified and when.
//! Drivers reach the card through [`mailbox`] and [`function`].
//!
//! Time is an argument, memory and messages go through [`pcie::Bus`], frames through [`Wire`]. The card does nothing
//! between calls: register accesses only change state, and [`Nic::poll`] does the work.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod board;
mod buffer;
mod bursts;
mod conditions;
mod config;
pub mod counters;
mod damaged;
mod decoded;
pub mod file;
pub mod function;
pub mod interrupt;
pub mod mailbox;
pub mod moderation;
pub mod offload;
mod police;
mod policy;
mod port;
pub mod queue;
mod queues;
mod receive;
mod rounds;
mod saved;
mod scratch;
mod sizes;
mod spaces;
mod stamps;
mod state;
mod statistics;
mod steering;
mod transmit;
mod uplink;
mod work;

pub use config::Config;
pub use counters::{Counters, PoolCounters};
pub use damaged::Damaged;
pub use function::doorbell;
pub use plane::frame::Sealed;
pub use plane::uplink::Uncut;
pub use plane::{Unplugged, Wire};
pub use port::{Budget, Nic, Poll};
pub use saved::{Basis, RestoreError, State};
