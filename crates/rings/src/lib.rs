//! Descriptor rings of network cards, worked in bursts, for any family of cards.
//!
//! A plain frame is one data descriptor that asks for checksums at most. Up to 32 of them travel stop by stop: descriptors are read,
//! the first 64 bytes of each frame are copied to private memory, each frame gets a verdict, and runs of equal verdicts are delivered,
//! the bytes behind the heads straight from sender to receiver. Counters, rates and descriptors are settled once a run or once a burst.
//!
//! A family implements [`BurstCard`]: which descriptors come next, where a port receives, and its descriptor format
//! ([`TxFormat`], [`RxFormat`]). A frame for which a burst has no verdict is copied to private memory as a whole and
//! sent through the plane alone.
//!
//! Any other packet takes the careful way, for which a family implements [`PacketTransmitter`]: it reads the
//! descriptors of the next packet, which name its buffers and its offload requests ([`PacketOffloads`]). The segments
//! of a large packet for one port go from the sender's buffers to the receiver's. Every other packet is copied to
//! private memory, gets its checksums or is cut there, as its port's rate permits; the rest of it waits
//! ([`HeldPacket`]). [`FrameReceiver`] puts a frame into buffers that is not plain for its receiver, or that is from
//! the uplink.
//!
//! | module | contents |
//! |---|---|
//! | `card`, `packets` | traits of a family: bursts, and the careful way |
//! | `visit` | a visit to a transmit queue: bursts, and packets between them |
//! | `burst`, `frames` | a burst from a transmit queue |
//! | `send`, `finished`, `packet`, `buffers`, `held` | a packet, or the rest of one that waits |
//! | `cut` | a large packet, cut into segments for one receiver |
//! | `deliver`, `arrive` | a frame into a receive queue; a frame from the uplink |
//! | `ring`, `posted` | indices of a ring, posted receive descriptors |
//! | `places`, `staging` | private memory |
//!
//! The card's crate has registers and contexts, and chooses the ring of a frame for several queues.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod arrive;
mod buffers;
mod burst;
mod card;
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
mod visit;

pub use arrive::arrive;
pub use buffers::{BufferChain, MAX_BUFFERS};
pub use card::{
    BurstCard, InvalidChecksumRequest, PlainReceiver, QueueAndHash, RunProperties, RxFormat, TxFormat,
};
pub use deliver::deliver;
pub use held::HeldPacket;
pub use packet::{CopiedPacket, NextPacket, PacketDropReason, PacketOffloads};
pub use packets::{FrameReceiver, PacketTransmitter};
pub use places::FrameMemory;
pub use posted::PostedDescriptors;
pub use ring::Ring;
pub use staging::StagedPacket;
pub use visit::visit;
