//! Executes steps of the virtual CPUs of the service domain and the guests.

use super::{ServerCore, ServerEvent, ServerMachine};
use crate::machine::parts::guest::{GuestKernel, ServerGuest};
use crate::machine::parts::platform::{AssignedVf, GuestPlatform};
use crate::machine::parts::split::ServiceDomainNetwork;
use hypervisor::account::CycleCategory;
use hypervisor::cost::CostConstant;
use hypervisor::cpu::{VcpuStep, VcpuStepOutcome};
use hypervisor::domain::DomainKind;
use sim::{VirtualDuration, VirtualInstant};

impl ServerMachine {
    pub(super) fn execute_service(&mut self, cpu: usize, mut step: VcpuStep, core: &mut ServerCore) {
        let (served, mut then) = self.service[cpu].step(&mut step, &core.table);
        let asked = if cpu == 0 {
            self.monitor.visit(&mut step, &mut then, &mut self.ports, &core.table)
        } else {
            None
        };
        let touched = self.network(cpu, &mut step, &mut then, core);
        let (done, began) = (step.now(), step.began());
        core.finish(step, then);
        if let Some(vm) = served {
            core.schedule(done, ServerEvent::Answered(vm));
        }
        if let Some(split) = &mut self.split {
            after(split, cpu, done, core);
        }
        let touched = |port: &usize| touched >> port & 1 == 1 || asked == Some(*port);
        (0..self.ports.len()).filter(touched).for_each(|port| self.sync(port, began, core));
    }

    pub(super) fn execute_guest(&mut self, index: usize, mut step: VcpuStep, core: &mut ServerCore) {
        let ServerGuest { system, port, hardware } = &mut self.vms[index];
        let began = step.began();
        let (table, eoi, chipset) = (&core.table, self.eoi, &mut self.chipset);
        let socket = self.topology.socket(step.thread());
        let cache = (socket, &mut self.caches[socket]);
        // Port, its next poll, and whether the kernel accessed it.
        let mut polled_port = None;
        let then = match (system, &mut self.split) {
            (GuestKernel::Direct { kernel, vf }, _) => {
                // Frames that have arrived by now can be found, if the kernel polls.
                let polls = kernel.polls_device() || hardware.controller.deliverable(&mut chipset.channels);
                let next = if polls { self.ports[*port].sync(began, chipset) } else { None };
                let device = AssignedVf { port: &mut self.ports[*port], vf: *vf, touched: false };
                let mut env = GuestPlatform { step: &mut step, hardware, chipset, device, table, eoi, cache };
                let then = kernel.step(&mut env);
                let touched = env.device.touched;
                polled_port = (polls || touched).then_some((*port, next, touched));
                then
            }
            (GuestKernel::Split(kernel), Some(split)) => {
                let device = split.front_end(index);
                kernel.step(&mut GuestPlatform {
                    step: &mut step,
                    hardware,
                    chipset,
                    device,
                    table,
                    eoi,
                    cache,
                })
            }
            (GuestKernel::Split(_), None) => VcpuStepOutcome::Block,
        };
        let done = step.now();
        let timer = core::mem::take(&mut hardware.timer_set);
        let interrupt_pending =
            then == VcpuStepOutcome::Block && hardware.controller.deliverable(&mut self.chipset.channels);
        let forwarded = core::mem::take(&mut hardware.forwarded);
        if core::mem::take(&mut hardware.notifies) {
            core.schedule(done, ServerEvent::ServiceCalled(index));
        }
        core.finish(step, then);
        if timer {
            self.set_timer(index, core);
        }
        // Its timer may have expired while it was about to sleep.
        if interrupt_pending {
            self.wake(index, done, core);
        }
        if forwarded > 0 {
            core.schedule(done, ServerEvent::Forwarded(index));
        }
        if let Some((port, mut next, touched)) = polled_port {
            if touched {
                next = self.ports[port].sync(began, &mut self.chipset);
            }
            self.settle(port, next, began, core);
        }
    }

    /// Completes a guest's device access and unblocks the guest's virtual CPU. Waking an idle thread costs
    /// more; on a busy thread only the switch remains.
    pub(super) fn answer(&mut self, vm: usize, now: VirtualInstant, core: &mut ServerCore) {
        let hardware = &mut self.vms[vm].hardware;
        hardware.waits = false;
        let (thread, domain) = (core.processors.home(hardware.vcpu), hardware.domain);
        if core.processors.running(thread, now).is_none() {
            let cycles = core.table[CostConstant::EventBlocked];
            core.processors.steal(thread, domain, CycleCategory::EventChannel, cycles, now);
        }
        self.wake(vm, now, core);
    }

    /// Passes a guest's device access to its device model, on the service domain's virtual CPU `vm` + 1
    /// (modulo their number). The choice is arbitrary: the scheduler moves the device model around.
    pub(super) fn forward(&mut self, vm: usize, now: VirtualInstant, core: &mut ServerCore) {
        let cpu = (vm + 1) % self.service.len().max(1);
        let Some(service) = self.service.get_mut(cpu) else { return };
        service.requests.push_back(vm);
        core.tell(service.vcpu, DomainKind::Dom0, 0, now);
        core.wake(service.vcpu, now);
    }
}

/// Longest delay of an event from the service domain to a guest.
const WITHHELD: VirtualDuration = VirtualDuration::from_micros(50);

/// Schedules, for the end of a virtual CPU's network step, the events to guests, the moves and the timer that
/// result from the step.
fn after(split: &mut ServiceDomainNetwork, cpu: usize, done: VirtualInstant, core: &mut ServerCore) {
    while let Some(vm) = split.next_notified() {
        core.schedule(done, ServerEvent::GuestCalled(vm));
    }
    while let Some(what) = split.next_leaving() {
        core.schedule(done, ServerEvent::Arrived(what));
    }
    if split.needs_timer(cpu) {
        core.schedule(done + WITHHELD, ServerEvent::TellGuests(cpu));
    }
}
