//! A virtual CPU of the service domain: its periodic tick, and device models of guests. [`super::split`] and
//! [`super::monitor`] have its network side and PF drivers.

use hypervisor::account::{Category, Charge};
use hypervisor::cost::{Cost, CostTable};
use hypervisor::cpu::{AfterStep, Step, VcpuId};
use std::collections::VecDeque;

/// State of a virtual CPU of the service domain.
#[derive(Debug)]
pub(crate) struct ServiceCpu {
    pub(crate) vcpu: VcpuId,
    /// Number of timer ticks that are pending.
    pub(crate) ticks: u32,
    /// Guests whose access waits for the device model on this virtual CPU.
    pub(crate) requests: VecDeque<usize>,
    /// An interrupt from another virtual CPU is pending.
    pub(crate) called: bool,
}

impl ServiceCpu {
    pub(crate) fn new(vcpu: VcpuId) -> Self {
        Self { vcpu, ticks: 0, requests: VecDeque::new(), called: false }
    }

    /// Executes one step of the virtual CPU. Returns the guest to unblock, if any.
    pub(crate) fn step(&mut self, step: &mut Step, table: &CostTable) -> (Option<usize>, AfterStep) {
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
            // The request came as an event, and the answer is sent as one.
            let events = table[Cost::EventUpcall] + table[Cost::EventSend] + table[Cost::EventRemote];
            step.charge(Category::EventChannel, events);
            step.charge(Category::DeviceModel, table[Cost::DeviceModel]);
        }
        let then =
            if self.ticks == 0 && self.requests.is_empty() { AfterStep::Block } else { AfterStep::Continue };
        (served, then)
    }
}
