//! Descriptor rings of network cards, worked in bursts, for any family of cards.
//!
//! A plain frame is one descriptor that asks for nothing. Up to 32 of them travel stop by stop: descriptors are read, the first 64
//! bytes of each frame are copied to private memory, each frame gets a verdict, and runs of equal verdicts are delivered, the bytes
//! behind the heads straight from sender to receiver. Counters, rates and descriptors are settled once a run or once a burst.
//!
//! A family implements [`Card`]: which descriptors come next, where a port receives, and its descriptor format ([`TxFormat`],
//! [`RxFormat`]). A frame for which a burst has no verdict is copied to private memory as a whole and sent through the plane alone.
//!
//! Any other packet takes the careful way, for which a family implements [`Packets`]: the next packet of a queue, copied to private
//! memory, and what its descriptors ask for ([`Orders`]). The packet gets its checksums or is cut into segments, as its port's rate
//! allows; what is left of it waits ([`Held`]). A frame that is not plain for its receiver is looked at and put into buffers by
//! [`Arrivals`], and so is one from the uplink.
//!
//! | module | contents |
//! |---|---|
//! | `card`, `packets` | traits of a family: bursts, and the careful way |
//! | `visit` | a visit to a transmit queue: bursts, and packets between them |
//! | `forward`, `frames` | a burst from a transmit queue |
//! | `send`, `finished`, `packet`, `buffers`, `held` | a packet, or the rest of one that waits |
//! | `cut` | a large packet, cut into segments for one receiver |
//! | `arrive`, `deliver` | a frame into a receive queue, from the plane or from the uplink |
//! | `ring`, `posted` | indices of a ring, posted receive descriptors |
//! | `places`, `staging` | private memory |
//!
//! Left out: registers, contexts, and which ring a frame of several queues goes to.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod arrive;
mod buffers;
mod card;
mod cut;
mod deliver;
mod finished;
mod forward;
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

pub use arrive::{arrive, deliver};
pub use buffers::{Buffers, MAX_BUFFERS};
pub use card::{Card, Misfit, Receiver, RxFormat, Spread, Terms, TxFormat};
pub use held::Held;
pub use packet::{Flaw, Orders, Packet, Taken};
pub use packets::{Arrivals, Packets};
pub use places::Places;
pub use posted::Posted;
pub use ring::Ring;
pub use staging::Staging;
pub use visit::visit;
