//! The seam between a kernel and its network device, and the VF driver behind it. What a device's driver costs is
//! charged here, what the stack above costs in the kernel. Left out: other devices, which bring their own
//! implementation.

use crate::platform::Platform;
use driver::DmaHal;
use driver::vf::{Event, TxError, TxOffload, Vf};
use hypervisor::account::Category;
use hypervisor::cost::Cost;
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

    /// Lets the other side know of frames to send that it has not heard of.
    fn flush(&mut self, platform: &mut P);
}

impl<P: Platform + DmaHal> Device<P> for Vf {
    fn mac(&self) -> MacAddress {
        Vf::mac(self)
    }

    fn interrupt(&mut self, platform: &mut P, vector: u16) -> Heard {
        match self.handle_interrupt(platform, vector) {
            Event::Received => Heard { received: true, transmitted: false },
            Event::Transmitted(_) => Heard { received: false, transmitted: true },
            Event::Mailbox | Event::Unknown => Heard::default(),
        }
    }

    fn receive(&mut self, platform: &mut P, into: &mut [u8]) -> Option<usize> {
        let received = Vf::receive(self, platform, into).ok()??;
        platform.charge(Category::Driver, platform.cost(Cost::RxDriver));
        Some(received.length)
    }

    fn receive_done(&mut self, platform: &mut P) -> bool {
        // The card interrupts again for what came since the last look.
        Vf::receive_done(self, platform);
        false
    }

    fn transmit(&mut self, platform: &mut P, frame: &[u8], offload: &TxOffload) -> Result<(), TxError> {
        platform.charge(Category::Driver, platform.cost(Cost::TxDriver));
        Vf::transmit(self, platform, frame, offload)
    }

    fn flush(&mut self, platform: &mut P) {
        Vf::flush(self, platform);
    }
}
