//! Handles the split driver's events in a server: network steps of the service domain, its interrupts, and events to
//! and from guests.

use super::{ServerCore, ServerEvent, ServerMachine};
use crate::machine::parts::bus::FunctionMemory;
use crate::machine::parts::split::{MovableBackEndPart, ServiceCpuView, ServiceDomainNetwork};
use hypervisor::account::{CycleCategory, CycleSink};
use hypervisor::cost::CostConstant;
use hypervisor::cpu::{VcpuStep, VcpuStepOutcome};
use hypervisor::domain::DomainKind;
use hypervisor::evtchn::{EventChannelError, EventSendOutcome};
use hypervisor::remap::{RemappedInterrupt, VectorOwner};
use sim::{TraceLabel, VirtualInstant};

const SPLIT: TraceLabel = TraceLabel::new("split");
const INTERRUPT: TraceLabel = TraceLabel::new("interrupt");
const TO_GUEST: TraceLabel = TraceLabel::new("to guest");
const TO_SERVICE: TraceLabel = TraceLabel::new("to service");
const REDIRECTED: TraceLabel = TraceLabel::new("redirected");
const ARRIVED: TraceLabel = TraceLabel::new("arrived");

impl ServerMachine {
    /// Executes a network step of a service domain's virtual CPU. Returns the bit mask of ports whose cards it
    /// accessed.
    pub(super) fn network(
        &mut self,
        cpu: usize,
        step: &mut VcpuStep,
        then: &mut VcpuStepOutcome,
        core: &mut ServerCore,
    ) -> u64 {
        let Some(split) = &mut self.split else { return 0 };
        if let Some(port) = split.next_poll(cpu) {
            // Frames that have arrived by now can be found.
            self.ports[port].sync(step.began(), &mut self.chipset);
        }
        let (ports, chipset, table) = (&mut self.ports, &mut self.chipset, &core.table);
        let socket = self.topology.socket(step.thread());
        let cache = &mut self.caches[socket];
        let mut view = ServiceCpuView { cpu, socket, cache, step, ports, chipset, table, touched: 0 };
        split.step(&mut view);
        let touched = view.touched;
        if split.has_work(cpu, &mut self.chipset) {
            *then = VcpuStepOutcome::Continue;
        }
        self.interrupt_workers(cpu, step, core);
        touched
    }

    /// Wakes the virtual CPUs whose workers were given frames. A sleeping virtual CPU is sent one interrupt; a virtual
    /// CPU about to sleep checks its queues again.
    fn interrupt_workers(&mut self, cpu: usize, step: &mut VcpuStep, core: &mut ServerCore) {
        for other in (0..self.service.len()).filter(|other| *other != cpu) {
            if !self.split.as_ref().is_some_and(|split| split.has_frames(other)) {
                continue;
            }
            let vcpu = self.service[other].vcpu;
            if !core.processors.is_blocked(vcpu) {
                core.wake(vcpu, step.began());
            } else if !core::mem::replace(&mut self.service[other].called, true) {
                let cycles = core.table[CostConstant::EventSend] + core.table[CostConstant::EventRemote];
                step.charge(CycleCategory::EventChannel, cycles);
                core.schedule(step.now(), ServerEvent::ServiceWake(other));
            }
        }
    }

    /// Counts a tick for the dispatcher, which samples the load. If the load requires moves, wakes every virtual CPU to
    /// move its workers, cards and interfaces.
    pub(super) fn dispatch(&mut self, now: VirtualInstant, core: &mut ServerCore) {
        if self.split.as_mut().is_some_and(ServiceDomainNetwork::tick) {
            core.trace.note(now, SPLIT, REDIRECTED, &[]);
            self.service.iter().for_each(|cpu| core.wake(cpu.vcpu, now));
        }
    }

    /// Completes a move of a worker thread, card or interface, and wakes the virtual CPU that now has it.
    pub(super) fn arrived(&mut self, what: MovableBackEndPart, now: VirtualInstant, core: &mut ServerCore) {
        let Some(split) = &mut self.split else { return };
        let (cpu, notified) = split.arrive(what, &mut self.chipset.channels);
        core.trace.note(now, SPLIT, ARRIVED, &[cpu as u64]);
        notified.into_iter().for_each(|notified| self.upcall_service(Ok(notified), 0, now, core));
        core.wake(self.service[cpu].vcpu, now);
    }

    /// Handles the timer of a virtual CPU that delays events to guests, and wakes the virtual CPU to send the events.
    pub(super) fn tell_guests(&mut self, cpu: usize, now: VirtualInstant, core: &mut ServerCore) {
        if let Some(split) = &mut self.split {
            split.timer(cpu);
            core.wake(self.service[cpu].vcpu, now);
        }
    }

    /// Delivers the service domain's event to a guest.
    pub(super) fn call_guest(&mut self, vm: usize, now: VirtualInstant, core: &mut ServerCore) {
        let Some((service, (own, _))) = self.split.as_ref().map(|split| (split.domain(), split.channel(vm)))
        else {
            return;
        };
        if !matches!(self.chipset.channels.send(service, own), Ok(EventSendOutcome::Upcall(_))) {
            return;
        }
        let hardware = &mut self.vms[vm].hardware;
        hardware.controller.event();
        let (vcpu, kind) = (hardware.vcpu, hardware.kind);
        core.trace.note(now, SPLIT, TO_GUEST, &[vm as u64]);
        core.tell(vcpu, kind, 0, now);
        self.wake(vm, now, core);
    }

    /// Delivers a guest's event to the service domain's virtual CPU of its worker thread.
    pub(super) fn call_service(&mut self, vm: usize, now: VirtualInstant, core: &mut ServerCore) {
        let Some((_, theirs)) = self.split.as_ref().map(|split| split.channel(vm)) else { return };
        let sent = self.chipset.channels.send(self.vms[vm].hardware.domain, theirs);
        core.trace.note(now, SPLIT, TO_SERVICE, &[vm as u64]);
        self.upcall_service(sent, 0, now, core);
    }

    /// Delivers an interrupt of a card driven by the service domain.
    pub(super) fn interrupt_service(
        &mut self,
        interrupt: &RemappedInterrupt,
        now: VirtualInstant,
        core: &mut ServerCore,
    ) {
        let VectorOwner { domain, rid, entry } = interrupt.owner;
        let is_it = |path: &FunctionMemory| path.assigned.rid == rid;
        let card = self.ports.iter().position(|port| port.functions.paths.iter().any(is_it));
        let event = self.split.as_ref().zip(card).and_then(|(split, card)| split.interrupt(card, entry));
        let Some(event) = event else { return };
        core.trace.note(now, SPLIT, INTERRUPT, &[u64::from(rid.0), entry.into()]);
        let raised = self.chipset.channels.raise(domain, event);
        self.upcall_service(raised, core.table[CostConstant::EventSend], now, core);
    }

    /// Delivers an event-channel upcall to a virtual CPU of the service domain, and charges the cycles of sending it.
    fn upcall_service(
        &mut self,
        notified: Result<EventSendOutcome, EventChannelError>,
        sending: u64,
        now: VirtualInstant,
        core: &mut ServerCore,
    ) {
        let Ok(EventSendOutcome::Upcall(cpu)) = notified else { return };
        let vcpu = self.service[usize::from(cpu)].vcpu;
        core.tell(vcpu, DomainKind::Dom0, sending, now);
        core.wake(vcpu, now);
    }
}
