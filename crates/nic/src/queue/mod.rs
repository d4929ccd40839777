//! The rings in guest memory: the card fetches and writes back descriptors in bursts, gathers frames from buffers and
//! scatters frames into them.

mod buffers;
mod io;
pub(crate) mod packet;
pub(crate) mod receive;
pub(crate) mod ring;
pub(crate) mod transmit;
pub(crate) mod write_back;

pub(crate) use io::QueueIo;

/// Maximum number of descriptors in one bus request.
pub(crate) const BURST: usize = 32;
