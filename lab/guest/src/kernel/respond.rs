//! The responding program: sends a datagram of one byte for each request it has read. It serves one client at
//! a time: responses go to the sender of the last request. A response that the device has no room for is
//! dropped.

use super::KernelModel;
use crate::device::NetworkDevice;
use crate::packet::{self, ReceivedPacket, SHORTEST, UDP_HEADERS};
use crate::platform::KernelPlatform;
use driver::vf::TxOffload;
use hypervisor::account::CycleCategory;
use hypervisor::cost::CostConstant;

/// Payload bytes of a response to a request.
const RESPONSE: usize = 1;

impl<D> KernelModel<D> {
    /// Charges the system calls that answer `requests` requests. The device gets the responses in the next
    /// step: accesses take effect as a step begins, so a response sent in this step would leave before it was
    /// made.
    pub(super) fn respond<P: KernelPlatform>(&mut self, platform: &mut P, requests: u64) {
        let copied = (RESPONSE as u64 * platform.cost(CostConstant::CopyWarm)).div_ceil(1_000);
        for _ in 0..requests {
            platform.charge(CycleCategory::User, platform.cost(CostConstant::TxSyscall) + copied);
            platform.system_call();
            platform.charge(CycleCategory::Kernel, platform.cost(CostConstant::TxStack));
            platform.packet(RESPONSE as u64);
        }
        self.due += requests;
    }

    /// Gives the pending responses of the program to the device.
    pub(super) fn send_responses<P: KernelPlatform>(&mut self, platform: &mut P)
    where
        D: NetworkDevice<P>,
    {
        let mut frame = [0; SHORTEST];
        let datagram = &mut frame[..UDP_HEADERS + RESPONSE];
        packet::fill(datagram, self.device.mac(), self.peer, ReceivedPacket::Udp(RESPONSE));
        for _ in 0..core::mem::take(&mut self.due) {
            match self.device.transmit(platform, &frame, &TxOffload::default()) {
                Ok(()) => {
                    self.counters.responses += 1;
                    self.device.flush(platform);
                }
                Err(_) => self.counters.send_drops += 1,
            }
        }
    }
}
