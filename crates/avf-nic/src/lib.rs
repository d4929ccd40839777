//! Adaptive Virtual Functions as a card: a pure state machine beside the 82576 (`nic`). Registers, the mailbox between VF
//! and PF, interrupts, every reset, and rings.
//!
//! Time is an argument, memory and messages go through [`pcie::Bus`]. Register accesses change state only, and
//! [`Card::poll`] does the work. A guest is hostile: rings are checked at every visit, a descriptor is read once, a
//! visit takes one message of each VF at most, what a VF has waiting is bounded, and all that is dropped is counted.
//!
//! | module | what it is |
//! |---|---|
//! | [`card`] | all functions |
//! | [`poll`] | messages and interrupts |
//! | `function` | one VF's registers |
//! | `mailbox`, `admin` | queues of messages, of VFs and of the PF |
//! | `messages` | messages between VF and PF |
//! | `pf` | the PF's own registers: its admin queues, resets of VFs |
//! | [`doorbell`] | registers that a guest has as memory |
//! | `interrupt` | vectors, intervals, causes |
//! | `brake` | a VF that the PF holds back |
//! | `reset` | what a reset takes and what it leaves |
//! | `control` | what the PF driver has the card do |
//! | [`transmit`], `sending` | rings: packets out of buffers |
//! | [`packet`], `held` | what descriptors ask for a packet, and one that waits |
//! | `forward` | a visit to the queues, frames from the uplink |
//! | `work` | VFs as sources and sinks of frames (crate `rings`) |
//! | `ports` | VFs as ports of the plane: tables, rates |
//! | [`contents`], `scaling` | what a receive descriptor says of a frame, and the queue it goes to |
//! | `plain` | what descriptors say of plain frames, which travel in bursts (crate `rings`) |
//! | [`receive`], `delivery` | rings: frames into buffers |
//! | [`saved`] | the card and its plane set aside; each part knows what it can be |
//!
//! Left out: who gets a frame, which is the forwarding plane's; configuration space (`avf::config`).
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod admin;
mod brake;
pub mod card;
pub mod contents;
mod control;
mod counters;
mod delivery;
pub mod doorbell;
mod forward;
mod function;
mod held;
mod interrupt;
mod mailbox;
mod messages;
pub mod packet;
mod pf;
mod plain;
pub mod poll;
mod ports;
pub mod receive;
mod reset;
mod ring;
pub mod saved;
mod scaling;
mod sending;
pub mod transmit;
mod work;

pub use card::Card;
pub use counters::Counters;
pub use delivery::Arrival;
pub use packet::PacketOrders;
pub use poll::Poll;
pub use receive::Missed;
pub use rings::{Staging, Taken};
pub use saved::{Basis, RestoreError, State};
