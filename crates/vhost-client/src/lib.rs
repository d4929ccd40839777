//! A guest in this process behind vhost-user: it shares memory with the back end, starts a queue pair, and moves frames
//! through the rings, as a VMM with its guest does. The driver polls, or sleeps until an interrupt.
//!
//! | module | contents |
//! |---|---|
//! | [`net`] | driver of a network function with one queue pair |
//! | `interrupts` | state of a driver that sleeps until an interrupt |
//! | `startup` | negotiation of features, shared memory, and the start of rings |
//! | `connection` | requests that wait for their reply |
//! | `memory` | memory that the guest shares with the back end |
//! | `transmit`, `receive` | rings of the queue pair, with their buffers |
//! | `frame` | a received frame in its buffer |
//! | `error` | errors of attaching and of the rings |
#![forbid(unsafe_code)]

mod connection;
mod error;
mod frame;
mod interrupts;
mod memory;
pub mod net;
mod receive;
mod startup;
mod transmit;

pub use error::VhostClientError;
pub use frame::ReceivedVirtioFrame;
pub use net::{VirtioNet, VirtioNetConfig};
