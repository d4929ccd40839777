//! The program that answers: for each request that it has read it sends a datagram of one byte. Left out: more than
//! one client at a time, since answers go to whoever has asked last; and what the device has no room for, which is
//! lost.

use super::Kernel;
use crate::device::Device;
use crate::packet::{self, Packet, SHORTEST, UDP_HEADERS};
use crate::platform::Platform;
use driver::vf::TxOffload;
use hypervisor::account::Category;
use hypervisor::cost::Cost;

/// Bytes of a response.
const RESPONSE: usize = 1;

impl<D> Kernel<D> {
    /// The system calls that answer so many requests, down to the driver. What a step does at the device happens as
    /// the step begins, so the driver's part is the next step's: no response leaves before it was made.
    pub(super) fn respond<P: Platform>(&mut self, platform: &mut P, requests: u64) {
        let copied = (RESPONSE as u64 * platform.cost(Cost::CopyWarm)).div_ceil(1_000);
        for _ in 0..requests {
            platform.charge(Category::User, platform.cost(Cost::TxSyscall) + copied);
            platform.system_call();
            platform.charge(Category::Kernel, platform.cost(Cost::TxStack));
        }
        self.due += requests;
    }

    /// The device gets the responses that are due.
    pub(super) fn send_responses<P: Platform>(&mut self, platform: &mut P)
    where
        D: Device<P>,
    {
        let mut frame = [0; SHORTEST];
        let datagram = &mut frame[..UDP_HEADERS + RESPONSE];
        packet::fill(datagram, self.device.mac(), self.peer, Packet::Udp(RESPONSE));
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
