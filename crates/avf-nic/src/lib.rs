//! The Adaptive Virtual Function card, the second family beside the 82576 (`nic`): a pure state machine of registers, the mailbox
//! between VF and PF, interrupts, resets and rings.
//!
//! Time is an argument, memory and interrupts go through [`pcie::Bus`]. Register accesses only change state.
//! [`Nic::visit_ready`] and [`Nic::arrive`] move frames, [`Nic::poll`] messages and interrupts. A guest is hostile:
//! rings are checked at every visit, a descriptor is read once, a poll takes at most one message of each VF, pending messages
//! are bounded, and every drop is counted.
//!
//! | module | content |
//! |---|---|
//! | [`card`] | all functions |
//! | [`poll`] | messages and interrupts |
//! | `function` | one VF's registers |
//! | `mailbox`, `admin`, `admin_ring` | message queues of VFs and of the PF; the registers of such a queue |
//! | `messages` | passes messages between VFs and the PF |
//! | `pf` | the PF's registers: its admin queues, resets of VFs |
//! | [`doorbell`] | registers that a guest maps |
//! | `interrupt` | vectors, intervals, causes |
//! | `brake` | the PF's restraint of a VF |
//! | `reset` | resets, and the state that each keeps |
//! | `control` | orders of the PF driver |
//! | [`tx_ring`], `source` | transmit rings; their VFs as sources of frames |
//! | [`packet`], `held` | a packet's offload requests; the saved form of a pending packet |
//! | `rounds` | visits to the transmit queues, frames from the uplink |
//! | `work`, `scratch` | parts of the card that the frame path uses; its private memory |
//! | `tables` | VFs as ports of the plane: switch tables, rates |
//! | [`contents`], `scaling` | packet type and checksums of a received frame; its hash and queue |
//! | `bursts`, `plain` | rings and descriptors of plain frames, which pass in bursts (crate `rings`) |
//! | [`rx_ring`], `sink` | receive rings; their VFs as sinks of frames |
//! | `counters` | counters of a VF's messages, interrupts and errors |
//! | [`saved`] | saved state of the card and its plane, and its check |
//!
//! The crate `plane` forwards frames; `avf::config` has the configuration space.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod admin;
mod admin_ring;
mod brake;
mod bursts;
pub mod card;
pub mod contents;
mod control;
mod counters;
pub mod doorbell;
mod function;
mod held;
mod interrupt;
mod mailbox;
mod messages;
pub mod packet;
mod pf;
mod plain;
pub mod poll;
mod reset;
mod rounds;
pub mod rx_ring;
pub mod saved;
mod scaling;
mod scratch;
mod sink;
mod source;
mod tables;
pub mod tx_ring;
mod work;

pub use card::Nic;
pub use counters::VfEventCounters;
pub use packet::DescriptorOffloads;
pub use poll::PollResult;
pub use rings::{NextPacket, StagedPacket};
pub use rx_ring::ReceiveError;
pub use saved::{BaseState, NicState, RestoreError};
pub use sink::RxDescriptorFields;
