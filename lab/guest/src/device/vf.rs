//! Lets a modelled kernel use the VF driver as its network device. Link changes are ignored.

use super::{DeviceEvents, NetworkDevice};
use crate::platform::KernelPlatform;
use driver::DmaHal;
use driver::vf::{TxError, TxOffload, Vf, VfInterruptCause};
use hypervisor::account::CycleCategory;
use hypervisor::cost::CostConstant;
use i82576::MacAddress;

impl<P: KernelPlatform + DmaHal> NetworkDevice<P> for Vf {
    fn mac(&self) -> MacAddress {
        Vf::mac(self)
    }

    fn interrupt(&mut self, platform: &mut P, vector: u16) -> DeviceEvents {
        match self.handle_interrupt(platform, vector) {
            VfInterruptCause::Received => DeviceEvents { received: true, transmitted: false },
            VfInterruptCause::Transmitted(_) => DeviceEvents { received: false, transmitted: true },
            VfInterruptCause::Mailbox | VfInterruptCause::Unknown => DeviceEvents::default(),
        }
    }

    fn receive(&mut self, platform: &mut P, into: &mut [u8]) -> Option<usize> {
        let received = Vf::receive(self, platform, into).ok()??;
        platform.charge(CycleCategory::Driver, platform.cost(CostConstant::RxDriver));
        Some(received.length)
    }

    fn receive_done(&mut self, platform: &mut P) -> bool {
        // No frame can be missed: the card interrupts again for frames that arrived since the last poll.
        Vf::receive_done(self, platform);
        false
    }

    fn transmit(&mut self, platform: &mut P, frame: &[u8], offload: &TxOffload) -> Result<(), TxError> {
        platform.charge(CycleCategory::Driver, platform.cost(CostConstant::TxDriver));
        Vf::transmit(self, platform, frame, offload)
    }

    fn unsent(&self) -> usize {
        self.tx_pending()
    }

    fn flush(&mut self, platform: &mut P) {
        Vf::flush(self, platform);
    }
}
