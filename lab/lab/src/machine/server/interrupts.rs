//! Timers of guests and interrupts of devices in a server, with the hypervisor's work for both.

use super::{ServerCore, ServerEvent, ServerMachine};
use hypervisor::account::CycleCategory;
use hypervisor::cost::CostConstant;
use hypervisor::domain::DomainKind;
use hypervisor::remap::{RemappedInterrupt, VectorOwner};
use sim::{TraceLabel, VirtualInstant};

const WORLD: TraceLabel = TraceLabel::new("world");
const INTERRUPT: TraceLabel = TraceLabel::new("interrupt");

impl ServerMachine {
    /// Schedules a guest's timer as programmed by its kernel.
    pub(super) fn set_timer(&mut self, vm: usize, core: &mut ServerCore) {
        let at = self.vms[vm].hardware.controller.deadline();
        self.timers[vm] = core.replace(self.timers[vm], at, ServerEvent::Timer(vm));
    }

    /// Handles the expiry of a guest's timer: the hypervisor's own timer interrupt, and the guest's.
    pub(super) fn timer(&mut self, vm: usize, now: VirtualInstant, core: &mut ServerCore) {
        let hardware = &mut self.vms[vm].hardware;
        hardware.controller.run_timer(now, &mut self.chipset.channels);
        let (vcpu, domain, kind) = (hardware.vcpu, hardware.domain, hardware.kind);
        if kind != DomainKind::Native {
            let thread = core.processors.home(vcpu);
            core.processors.steal(
                thread,
                domain,
                CycleCategory::Timer,
                core.table[CostConstant::HypervisorTick],
                now,
            );
        }
        self.wake(vm, now, core);
        self.set_timer(vm, core);
    }

    /// Wakes a guest that has work, unless the guest is blocked until its device model completes an access.
    pub(super) fn wake(&mut self, vm: usize, now: VirtualInstant, core: &mut ServerCore) {
        let hardware = &self.vms[vm].hardware;
        if !hardware.waits {
            core.wake(hardware.vcpu, now);
        }
    }

    /// Advances a port's card and wire to `now`.
    pub(super) fn sync(&mut self, port: usize, now: VirtualInstant, core: &mut ServerCore) {
        let next = self.ports[port].sync(now, &mut self.chipset);
        self.settle(port, next, now, core);
    }

    /// Delivers a port's interrupts and schedules its next poll.
    pub(super) fn settle(
        &mut self,
        port: usize,
        next: Option<VirtualInstant>,
        now: VirtualInstant,
        core: &mut ServerCore,
    ) {
        self.port_events[port] = core.replace(self.port_events[port], next, ServerEvent::Port(port));
        let mut sent = core::mem::take(&mut self.ports[port].functions.sent);
        for (rid, message) in sent.drain(..) {
            if let Some(interrupt) = self.chipset.deliver_message(rid, message) {
                self.interrupt(&interrupt, now, core);
            }
        }
        self.ports[port].functions.sent = sent;
    }

    /// Handles a device's interrupt: interrupts the virtual CPU on the owner's thread, and wakes the owner.
    /// On an idle thread this charges no VM exit: the exit was charged when the guest went idle.
    fn interrupt(&mut self, interrupt: &RemappedInterrupt, now: VirtualInstant, core: &mut ServerCore) {
        let VectorOwner { domain, entry, .. } = interrupt.owner;
        let Some(index) = self.guests.get(domain.index()).copied().flatten() else {
            return self.interrupt_service(interrupt, now, core);
        };
        let hardware = &mut self.vms[index].hardware;
        core.trace.note(now, WORLD, INTERRUPT, &[index as u64, entry.into()]);
        let (vcpu, kind) = (hardware.vcpu, hardware.kind);
        let deliverable = hardware.signal(entry, interrupt.guest.vector, &mut self.chipset.channels);
        let sending = if kind == DomainKind::Pvm { core.table[CostConstant::EventSend] } else { 0 };
        core.tell(vcpu, kind, sending, now);
        if deliverable {
            self.wake(index, now, core);
        }
    }
}
