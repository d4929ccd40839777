//! Lets a modelled kernel use the front end of a split driver as its network device. VLAN tags are not
//! supported.

use super::{DeviceEvents, NetworkDevice};
use crate::platform::KernelPlatform;
use driver::vf::{TxError, TxOffload};
use hypervisor::account::CycleCategory;
use hypervisor::cost::CostConstant;
use i82576::MacAddress;
use split::front::{NetworkFrontendHal, TransmitError};
use split::{NetworkFrontend, PendingOffloads};

impl<P: KernelPlatform + NetworkFrontendHal> NetworkDevice<P> for NetworkFrontend {
    fn mac(&self) -> MacAddress {
        NetworkFrontend::mac(self)
    }

    fn interrupt(&mut self, platform: &mut P, _: u16) -> DeviceEvents {
        let transmitted = self.clean(platform) > 0;
        DeviceEvents { received: self.has_received(platform), transmitted }
    }

    fn receive(&mut self, platform: &mut P, into: &mut [u8]) -> Option<usize> {
        let received = NetworkFrontend::receive(self, platform, into)?;
        let look = if self.merges() { platform.cost(CostConstant::MergeSegment) } else { 0 };
        let cycles = u64::from(received.frames) * (platform.cost(CostConstant::Frontend) + look);
        platform.charge(CycleCategory::Driver, cycles);
        Some(received.length)
    }

    fn receive_done(&mut self, platform: &mut P) -> bool {
        NetworkFrontend::receive_done(self, platform)
    }

    fn transmit(&mut self, platform: &mut P, frame: &[u8], offload: &TxOffload) -> Result<(), TxError> {
        platform.charge(CycleCategory::Driver, platform.cost(CostConstant::Frontend));
        let offload = PendingOffloads {
            csum_blank: offload.l4_checksum || offload.tso.is_some(),
            segment: offload.tso,
        };
        NetworkFrontend::transmit(self, platform, frame, offload).map_err(|refused| match refused {
            TransmitError::Full => TxError::Full,
            TransmitError::Length(length) => TxError::Length(length),
        })
    }

    fn unsent(&self) -> usize {
        NetworkFrontend::unsent(self)
    }

    fn flush(&mut self, platform: &mut P) {
        NetworkFrontend::flush(self, platform);
    }
}
