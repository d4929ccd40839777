#![doc = include_str!("../README.md")]
//!
//! # Modules
//!
//! A frame comes from the wire (`uplink`) or, when [`plane::pacing`] permits, from a transmit `queue`. `offload`
//! prepares it, [`plane::switch`] chooses its receivers, and it ends on the wire or in the receive queues that
//! `steering` chooses. Crate `rings` calls these modules in this order. `interrupt` and `moderation` decide which
//! function is notified and when. Drivers reach the card through `mailbox` and `function`.
//!
//! | module | content |
//! |---|---|
//! | `port` | [`Nic`]: the card, and a poll of it |
//! | `function` | registers of the PF and of VFs, by slot; doorbells that a guest maps; configuration space and resets |
//! | `file`, `decoded` | the register file, and values that follow from it |
//! | `policy`, `police` | registers as the plane's tables and rates; VFs that misbehave |
//! | `rounds`, `transmit` | visits to the transmit queues; the queues as sources of the plane |
//! | `work`, `bursts` | the parts of the card that a frame touches; its rings as crate `rings` uses them |
//! | `queue`, `queues` | a transmit ring, a receive ring, and their registers; all queues |
//! | `offload` | headers, checksums and hashes in the form of descriptors |
//! | `receive`, `steering`, `buffer` | a frame for a receive queue: its queue, its contents; frames that wait for descriptors |
//! | `uplink`, `stamps` | the MAC; time stamps |
//! | `interrupt`, `moderation` | causes and vectors; throttles |
//! | `mailbox` | messages between VFs and the PF |
//! | `counters`, `statistics` | counters, and the registers that show them |
//! | `board` | NVM, PHY, clock and timer |
//! | `spaces`, `config` | configuration spaces of the functions; settings of a card |
//! | `state`, `saved`, `damaged` | the card's state, its saved form, and states that no card can have |
//! | `conditions`, `scratch`, `sizes` | settings of a poll; private memory of a call; sizes |
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod board;
mod buffer;
mod bursts;
mod card;
mod conditions;
mod config;
mod counters;
mod damaged;
mod decoded;
mod file;
mod function;
mod interrupt;
mod mac;
mod mailbox;
mod moderation;
mod offload;
mod police;
mod queue;
mod queues;
mod rounds;
mod saved;
mod scratch;
mod sink;
mod sizes;
mod source;
mod spaces;
mod stamps;
mod state;
mod statistics;
mod steering;
mod switch;
mod work;

pub use card::{Nic, PollBudget, PollResult};
pub use config::NicConfig;
pub use counters::{PoolCounterArray, PoolCounters};
pub use damaged::InvalidStateError;
pub use function::doorbell;
pub use plane::frame::TrustedChecksum;
pub use plane::uplink::UnsegmentedPacketLayout;
pub use plane::{UnpluggedWire, UplinkWire};
pub use saved::{NicBaseState, NicState, NicStateV2, RestoreError};
