//! The interface between a kernel and its network device, a VF driver or the front end of a split driver.
//! Implementations charge the driver's cost, and the kernel charges the network stack's cost; the drivers themselves
//! contain no costs.

mod front;
mod vf;

use driver::vf::{TxError, TxOffload};
use i82576::MacAddress;

/// Events that an interrupt of a network device reported.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DeviceEvents {
    /// Frames may have been received: poll until no frame is left.
    pub received: bool,
    /// Frames were sent, so the device has room for more frames.
    pub transmitted: bool,
}

/// Network device of a kernel on a platform `P`.
pub trait NetworkDevice<P> {
    /// Returns the network device's MAC address.
    fn mac(&self) -> MacAddress;

    /// Handles an interrupt of one of the device's interrupt vectors. The receive interrupt stays disabled until
    /// [`NetworkDevice::receive_done`].
    fn interrupt(&mut self, platform: &mut P, vector: u16) -> DeviceEvents;

    /// Copies the next received frame to the front of `into`. Returns the frame's length, or `None` if no frame is
    /// pending.
    fn receive(&mut self, platform: &mut P, into: &mut [u8]) -> Option<usize>;

    /// Enables the receive interrupt after all frames were taken. Returns `true` if a frame arrived just
    /// before and needs another poll.
    fn receive_done(&mut self, platform: &mut P) -> bool;

    /// Queues a frame that the device sends.
    ///
    /// # Errors
    /// [`TxError`]: [`TxError::Full`] until an interrupt reports that frames were sent.
    fn transmit(&mut self, platform: &mut P, frame: &[u8], offload: &TxOffload) -> Result<(), TxError>;

    /// Returns the number of buffers of frames accepted and not yet reported as sent: one buffer per frame, more for a
    /// frame over 2 KB.
    fn unsent(&self) -> usize;

    /// Notifies the device of all queued frames that it does not know yet.
    fn flush(&mut self, platform: &mut P);
}
