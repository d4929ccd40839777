#![doc = include_str!("../README.md")]
//!
//! # Modules
//!
//! | module | contents |
//! |---|---|
//! | `card`, `packets` | traits of a family: bursts, and the careful way |
//! | `visit` | a visit to a transmit queue: bursts, and packets between them |
//! | `burst`, `frames` | a burst from a transmit queue |
//! | `send`, `finished`, `packet`, `buffers`, `held` | a packet, or the rest of one that waits |
//! | `cut` | a large packet, cut into segments for one receiver |
//! | `deliver`, `arrive` | a frame into a receive queue; a frame from the uplink |
//! | `cross`, `trunk` | frames to and from other parts of the card |
//! | `ring`, `posted` | indices of a ring, posted receive descriptors |
//! | `places`, `staging` | private memory |
#![no_std]
#![forbid(unsafe_code)]
#![cfg_attr(not(test), warn(clippy::cast_lossless, clippy::cast_possible_truncation, clippy::cast_sign_loss))]

extern crate alloc;

mod arrive;
mod buffers;
mod burst;
mod card;
mod cross;
mod cut;
mod deliver;
mod finished;
mod frames;
mod held;
mod packet;
mod packets;
mod places;
mod posted;
mod ring;
mod send;
mod staging;
mod trunk;
mod visit;

pub use arrive::arrive;
pub use buffers::{BufferChain, MAX_BUFFERS};
pub use card::{
    BurstCard, FrameRunProperties, InvalidChecksumRequest, PlainReceiver, QueueAndHash, RxFormat, TxFormat,
};
pub use deliver::deliver;
pub use frames::SHORTEST;
pub use held::PausedPacketMemory;
pub use packet::{CopiedPacket, NextPacketResult, PacketDropReason, PacketOffloads};
pub use packets::{FrameReceiver, PacketTransmitter};
pub use places::FrameMemory;
pub use posted::PostedDescriptors;
pub use ring::Ring;
pub use staging::StagedPacket;
pub use trunk::leave_trunk;
pub use visit::visit;
