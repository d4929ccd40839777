//! The seam between a kernel and its network device: a VF's driver, or the front end of a split driver. What a
//! device's driver costs is charged here, what the stack above costs in the kernel. Left out: the drivers
//! themselves, which know nothing of prices.

mod front;
mod vf;

use driver::vf::{TxError, TxOffload};
use i82576::MacAddress;

/// What a device's interrupt was about.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Heard {
    /// Frames may be there: poll until there is none.
    pub received: bool,
    /// Frames have left: there is room to send again.
    pub transmitted: bool,
}

/// A network device of a kernel on a platform `P`.
pub trait Device<P> {
    /// Its address.
    fn mac(&self) -> MacAddress;

    /// Its interrupt handler for a vector. It leaves the receive interrupt off until [`Device::receive_done`].
    fn interrupt(&mut self, platform: &mut P, vector: u16) -> Heard;

    /// Takes the next frame, copied to the front of `into`: its length.
    fn receive(&mut self, platform: &mut P, into: &mut [u8]) -> Option<usize>;

    /// Every frame was taken: the next may interrupt. `true` if one came just before that, and is to be taken
    /// by another poll.
    fn receive_done(&mut self, platform: &mut P) -> bool;

    /// Takes a frame to send.
    ///
    /// # Errors
    /// [`TxError`]: [`TxError::Full`] until an interrupt says that frames have left.
    fn transmit(&mut self, platform: &mut P, frame: &[u8], offload: &TxOffload) -> Result<(), TxError>;

    /// Buffers of frames that it took and has not heard of as sent: a frame each, or 2 KB or more of a large one.
    fn unsent(&self) -> usize;

    /// Lets the other side know of frames to send that it has not heard of.
    fn flush(&mut self, platform: &mut P);
}
