//! A virtual CPU of the service domain: its periodic tick, and device models of guests. [`super::split`] has
//! the service domain's network drivers, and [`super::monitor`] has the PF drivers.

use hypervisor::account::{CycleCategory, CycleSink};
use hypervisor::cost::{CostConstant, CostTable};
use hypervisor::cpu::{VcpuId, VcpuStep, VcpuStepOutcome};
use std::collections::VecDeque;

/// State of a virtual CPU of the service domain: pending ticks, device accesses and interrupts.
#[derive(Debug)]
pub(crate) struct ServiceCpu {
    pub(crate) vcpu: VcpuId,
    /// Number of pending timer ticks of the service domain's virtual CPU.
    pub(crate) ticks: u32,
    /// Guests that wait for the device model on this virtual CPU to complete a device access.
    pub(crate) requests: VecDeque<usize>,
    /// An interrupt from another virtual CPU of the service domain is pending.
    pub(crate) called: bool,
}

impl ServiceCpu {
    pub(crate) fn new(vcpu: VcpuId) -> Self {
        Self { vcpu, ticks: 0, requests: VecDeque::new(), called: false }
    }

    /// Executes one step of the service domain's virtual CPU. Returns the guest to unblock, if any.
    pub(crate) fn step(
        &mut self,
        step: &mut VcpuStep,
        table: &CostTable,
    ) -> (Option<usize>, VcpuStepOutcome) {
        if core::mem::take(&mut self.called) {
            step.charge(CycleCategory::EventChannel, table[CostConstant::EventUpcall]);
        }
        if self.ticks > 0 {
            self.ticks -= 1;
            step.charge(CycleCategory::Timer, table[CostConstant::HypervisorTick]);
            step.charge(CycleCategory::EventChannel, table[CostConstant::EventUpcall]);
            step.charge(
                CycleCategory::Kernel,
                table[CostConstant::GuestTick] + table[CostConstant::ServiceTick],
            );
        }
        let served = self.requests.pop_front();
        if served.is_some() {
            // The request came as an event, and the answer is sent as one.
            let events = table[CostConstant::EventUpcall]
                + table[CostConstant::EventSend]
                + table[CostConstant::EventRemote];
            step.charge(CycleCategory::EventChannel, events);
            step.charge(CycleCategory::DeviceModel, table[CostConstant::DeviceModel]);
        }
        let then = if self.ticks == 0 && self.requests.is_empty() {
            VcpuStepOutcome::Block
        } else {
            VcpuStepOutcome::Continue
        };
        (served, then)
    }
}
