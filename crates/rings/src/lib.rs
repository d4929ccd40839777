//! Descriptor rings of network cards, worked in bursts, for any family of cards.
//!
//! A plain frame is one descriptor that asks for nothing. Up to 32 of them travel stop by stop: descriptors are read, the first 64
//! bytes of each frame are copied to private memory, each frame gets a verdict, and runs of equal verdicts are delivered, the bytes
//! behind the heads straight from sender to receiver. Counters, rates and descriptors are settled once a run or once a burst.
//!
//! A family implements [`Card`]: which descriptors come next, where a port receives, and its descriptor format ([`TxFormat`],
//! [`RxFormat`]). A frame for which a burst has no verdict is copied to private memory as a whole and sent through the plane alone.
//! Whatever is not one plain descriptor is the family's own.
//!
//! Left out: registers, contexts, segments, and which ring a frame of several queues goes to.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod card;
mod deliver;
mod forward;
mod frames;
mod posted;
mod ring;

pub use card::{Card, Misfit, Receiver, RxFormat, Spread, Terms, TxFormat};
pub use deliver::deliver;
pub use forward::forward;
pub use frames::Frames;
pub use posted::Posted;
pub use ring::Ring;
