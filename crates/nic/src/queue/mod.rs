//! The rings in guest memory: descriptors fetched and written back in bursts, frames gathered from buffers
//! and scattered into them. Left out: what happens to a frame in between.

mod buffers;
mod io;
pub mod packet;
pub mod receive;
pub mod ring;
pub mod transmit;
pub mod write_back;

pub use io::QueueIo;

/// Descriptors moved by one bus request at the most.
pub const BURST: usize = 32;
