//! Adapts the VF driver to a kernel's network device. Link changes are ignored.

use super::{Device, DeviceEvents};
use crate::platform::Platform;
use driver::DmaHal;
use driver::vf::{Event, TxError, TxOffload, Vf};
use hypervisor::account::Category;
use hypervisor::cost::Cost;
use i82576::MacAddress;

impl<P: Platform + DmaHal> Device<P> for Vf {
    fn mac(&self) -> MacAddress {
        Vf::mac(self)
    }

    fn interrupt(&mut self, platform: &mut P, vector: u16) -> DeviceEvents {
        match self.handle_interrupt(platform, vector) {
            Event::Received => DeviceEvents { received: true, transmitted: false },
            Event::Transmitted(_) => DeviceEvents { received: false, transmitted: true },
            Event::Mailbox | Event::Unknown => DeviceEvents::default(),
        }
    }

    fn receive(&mut self, platform: &mut P, into: &mut [u8]) -> Option<usize> {
        let received = Vf::receive(self, platform, into).ok()??;
        platform.charge(Category::Driver, platform.cost(Cost::RxDriver));
        Some(received.length)
    }

    fn receive_done(&mut self, platform: &mut P) -> bool {
        // No frame can be missed: the card interrupts again for frames that arrived since the last poll.
        Vf::receive_done(self, platform);
        false
    }

    fn transmit(&mut self, platform: &mut P, frame: &[u8], offload: &TxOffload) -> Result<(), TxError> {
        platform.charge(Category::Driver, platform.cost(Cost::TxDriver));
        Vf::transmit(self, platform, frame, offload)
    }

    fn unsent(&self) -> usize {
        self.tx_pending()
    }

    fn flush(&mut self, platform: &mut P) {
        Vf::flush(self, platform);
    }
}
