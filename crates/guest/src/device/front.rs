//! Adapts the front end of a split driver to a kernel's network device. VLAN tags are not supported.

use super::{Device, DeviceEvents};
use crate::platform::Platform;
use driver::vf::{TxError, TxOffload};
use hypervisor::account::Category;
use hypervisor::cost::Cost;
use i82576::MacAddress;
use split::front::{Hal, TransmitError};
use split::{Front, Offload};

impl<P: Platform + Hal> Device<P> for Front {
    fn mac(&self) -> MacAddress {
        Front::mac(self)
    }

    fn interrupt(&mut self, platform: &mut P, _: u16) -> DeviceEvents {
        let transmitted = self.clean(platform) > 0;
        DeviceEvents { received: self.has_received(platform), transmitted }
    }

    fn receive(&mut self, platform: &mut P, into: &mut [u8]) -> Option<usize> {
        let received = Front::receive(self, platform, into)?;
        let look = if self.merges() { platform.cost(Cost::MergeSegment) } else { 0 };
        let cycles = u64::from(received.frames) * (platform.cost(Cost::Frontend) + look);
        platform.charge(Category::Driver, cycles);
        Some(received.length)
    }

    fn receive_done(&mut self, platform: &mut P) -> bool {
        Front::receive_done(self, platform)
    }

    fn transmit(&mut self, platform: &mut P, frame: &[u8], offload: &TxOffload) -> Result<(), TxError> {
        platform.charge(Category::Driver, platform.cost(Cost::Frontend));
        let offload =
            Offload { csum_blank: offload.l4_checksum || offload.tso.is_some(), segment: offload.tso };
        Front::transmit(self, platform, frame, offload).map_err(|refused| match refused {
            TransmitError::Full => TxError::Full,
            TransmitError::Length(length) => TxError::Length(length),
        })
    }

    fn unsent(&self) -> usize {
        Front::unsent(self)
    }

    fn flush(&mut self, platform: &mut P) {
        Front::flush(self, platform);
    }
}
