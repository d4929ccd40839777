//! A virtual CPU of the service domain: a periodic tick, and a device model for guests that have one. Left out: the
//! service domain's network side ([`super::split`]), and the PF drivers ([`super::monitor`]).

use hypervisor::account::{Category, Charge};
use hypervisor::cost::{Cost, CostTable};
use hypervisor::cpu::{Step, Then, VcpuId};
use std::collections::VecDeque;

/// A virtual CPU of the service domain.
#[derive(Debug)]
pub(crate) struct ServiceCpu {
    pub(crate) vcpu: VcpuId,
    /// Ticks that have come.
    pub(crate) ticks: u32,
    /// Guests whose access waits for the device model that runs here.
    pub(crate) requests: VecDeque<usize>,
    /// Another has sent it an interrupt that it has not taken.
    pub(crate) called: bool,
}

impl ServiceCpu {
    pub(crate) fn new(vcpu: VcpuId) -> Self {
        Self { vcpu, ticks: 0, requests: VecDeque::new(), called: false }
    }

    /// One step; answers which guest may go on, if one may.
    pub(crate) fn step(&mut self, step: &mut Step, table: &CostTable) -> (Option<usize>, Then) {
        if core::mem::take(&mut self.called) {
            step.charge(Category::EventChannel, table[Cost::EventUpcall]);
        }
        if self.ticks > 0 {
            self.ticks -= 1;
            step.charge(Category::Timer, table[Cost::HypervisorTick]);
            step.charge(Category::EventChannel, table[Cost::EventUpcall]);
            step.charge(Category::Kernel, table[Cost::GuestTick] + table[Cost::ServiceTick]);
        }
        let served = self.requests.pop_front();
        if served.is_some() {
            // The request came as an event, and so does the answer go.
            let events = table[Cost::EventUpcall] + table[Cost::EventSend] + table[Cost::EventRemote];
            step.charge(Category::EventChannel, events);
            step.charge(Category::DeviceModel, table[Cost::DeviceModel]);
        }
        let then = if self.ticks == 0 && self.requests.is_empty() { Then::Block } else { Then::Continue };
        (served, then)
    }
}
