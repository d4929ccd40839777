//! The rings in guest memory: the card fetches and writes back descriptors in bursts, gathers frames from buffers and
//! scatters frames into them.

mod buffers;
mod io;
pub mod packet;
pub mod receive;
pub mod ring;
pub mod transmit;
pub mod write_back;

pub use io::QueueIo;

/// Maximum number of descriptors in one bus request.
pub const BURST: usize = 32;
