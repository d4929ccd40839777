#![doc = include_str!("../README.md")]
//!
//! # Modules
//!
//! | module | content |
//! |---|---|
//! | `card` | all functions |
//! | `poll` | messages and interrupts |
//! | `function` | one VF's registers |
//! | `mailbox`, `admin`, `admin_ring` | message queues of VFs and of the PF; the registers of such a queue |
//! | `messages` | passes messages between VFs and the PF |
//! | `pf` | the PF's registers: its admin queues, resets of VFs |
//! | [`doorbell`] | registers that a guest maps |
//! | `interrupt` | vectors, intervals, causes |
//! | `brake` | the PF's restraint of a VF |
//! | `owed` | work for VFs that the port charges; VFs without credit |
//! | `reset` | resets, and the state that each keeps |
//! | `control` | orders of the PF driver |
//! | `tx_ring`, `transmit` | transmit rings; their VFs as sources of frames |
//! | `packet`, `held` | a packet's offload requests; the saved form of a pending packet |
//! | `rounds` | visits to the transmit queues, frames from the uplink |
//! | `part` | parts of a card on several threads; VFs of other families on the same plane |
//! | `work`, `scratch` | parts of the card that the frame path uses; its private memory |
//! | `ports` | VFs as ports of the plane: tables, rates |
//! | `contents`, `scaling` | packet type and checksums of a received frame; its hash and queue |
//! | `bursts`, `plain` | rings and descriptors of plain frames, which pass in bursts (crate `rings`) |
//! | `rx_ring`, `receive` | receive rings; their VFs as sinks of frames |
//! | `saved` | saved state of the card and its plane, and its check |
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod admin;
mod admin_ring;
mod brake;
mod bursts;
mod card;
mod contents;
mod control;
mod counters;
pub mod doorbell;
mod function;
mod held;
mod interrupt;
mod mailbox;
mod messages;
mod owed;
mod packet;
mod part;
mod pf;
mod plain;
mod poll;
mod reset;
mod rounds;
mod rx_ring;
mod saved;
mod scaling;
mod scratch;
mod sink;
mod source;
mod tables;
mod tx_ring;
mod work;

pub use card::Nic;
pub use counters::VfEventCounters;
pub use packet::DescriptorOffloads;
pub use part::DetachedVf;
pub use poll::PollResult;
pub use rings::{NextPacketResult, StagedPacket};
pub use rx_ring::ReceiveError;
pub use saved::{NicBaseState, NicState, RestoreError};
pub use sink::RxDescriptorFields;
