//! Drives a modelled machine whose virtual CPUs run test programs.

use std::vec::Vec;

use sim::{EventQueue, EventTrace, Frequency, TraceLabel, VirtualDuration, VirtualInstant};

use crate::account::{CycleCategory, CycleLedgerSnapshot, CycleSink};
use crate::cpu::{
    HardwareThreadAction, HardwareThreadId, HostMachine, ProcessorConfig, ScheduledThreadVisit, VcpuId,
    VcpuStep, VcpuStepOutcome,
};
use crate::domain::{DomainId, DomainKind};

const CPU: TraceLabel = TraceLabel::new("cpu");
const STEP: TraceLabel = TraceLabel::new("step");

/// Event that the test harness delivers to the machine.
#[derive(Debug)]
pub(super) enum MachineEvent {
    Visit(HardwareThreadId),
    Wake(VcpuId),
    Interrupt { thread: HardwareThreadId, cycles: u64 },
}

/// Test program of a virtual CPU: charges the work of one step, and returns whether the virtual CPU continues
/// or blocks.
pub(super) type VcpuProgram = fn(&mut VcpuStep, turn: u64) -> VcpuStepOutcome;

#[derive(Debug)]
pub(super) struct MachineHarness {
    pub(super) machine: HostMachine,
    pub(super) events: EventQueue<MachineEvent>,
    pub(super) trace: EventTrace,
    programs: Vec<(VcpuProgram, u64)>,
    /// Steps that the machine has run: virtual CPU, start, end and contention of each.
    pub(super) steps: Vec<(VcpuId, VirtualInstant, VirtualInstant, bool)>,
}

/// Returns a configuration of `cores` cores with `threads` threads each at 1 GHz, so that a clock cycle is a
/// nanosecond. A switch between virtual CPUs costs no cycles.
pub(super) fn config(cores: u16, threads: u16) -> ProcessorConfig {
    ProcessorConfig {
        cores,
        threads_per_core: threads,
        clock: Frequency::from_hertz(1_000_000_000),
        contention_permille: 1_500,
        switch: 0,
        refill: 0,
        displacement: 0,
        working_set: 0,
        cache: 0,
        reload: 0,
        slice: VirtualDuration::from_micros(10),
    }
}

pub(super) fn thread(index: u16) -> HardwareThreadId {
    HardwareThreadId::new(index)
}

pub(super) fn nanos(nanos: u64) -> VirtualInstant {
    VirtualInstant::from_nanos(nanos)
}

impl MachineHarness {
    pub(super) fn new(config: ProcessorConfig) -> MachineHarness {
        MachineHarness {
            machine: HostMachine::new(config),
            events: EventQueue::new(),
            trace: EventTrace::new(),
            programs: Vec::new(),
            steps: Vec::new(),
        }
    }

    pub(super) fn guest(&mut self, home: u16, program: VcpuProgram) -> (DomainId, VcpuId) {
        let domain = self.machine.add_domain(DomainKind::Hvm, "guest".into());
        (domain, self.vcpu(domain, home, program))
    }

    pub(super) fn vcpu(&mut self, domain: DomainId, home: u16, program: VcpuProgram) -> VcpuId {
        self.programs.push((program, 0));
        self.machine.add_vcpu(domain, thread(home))
    }

    pub(super) fn at(&mut self, at: u64, event: MachineEvent) {
        self.events.schedule(nanos(at), event);
    }

    /// Runs all events before `end`, and returns a snapshot of the cycle ledger at `end`.
    pub(super) fn run(&mut self, end: u64) -> CycleLedgerSnapshot {
        while let Some((now, event)) = self.events.pop_before(nanos(end)) {
            match event {
                MachineEvent::Visit(thread) => self.visit(thread, now),
                MachineEvent::Wake(vcpu) => {
                    let visit = self.machine.wake(vcpu, now);
                    visit.into_iter().for_each(|visit| self.expect(visit));
                }
                MachineEvent::Interrupt { thread, cycles } => {
                    let (domain, category) = (DomainId::HYPERVISOR, CycleCategory::ExternalInterrupt);
                    self.machine.steal(thread, domain, category, cycles, now);
                }
            }
        }
        self.machine.snapshot(nanos(end))
    }

    fn expect(&mut self, visit: ScheduledThreadVisit) {
        self.events.schedule(visit.at, MachineEvent::Visit(visit.thread));
    }

    fn visit(&mut self, thread: HardwareThreadId, now: VirtualInstant) {
        match self.machine.visit(thread, now) {
            HardwareThreadAction::Run(step) => self.execute(step, now),
            HardwareThreadAction::Later(visit) => self.expect(visit),
            HardwareThreadAction::Idle => {}
        }
    }

    fn execute(&mut self, mut step: VcpuStep, now: VirtualInstant) {
        let (program, turn) = &mut self.programs[step.vcpu().index()];
        let then = program(&mut step, *turn);
        *turn += 1;
        let (vcpu, contended) = (step.vcpu(), step.is_contended());
        let visit = self.machine.finish(step, then);
        self.trace.note(now, CPU, STEP, &[vcpu.index() as u64, visit.at.picos()]);
        self.steps.push((vcpu, now, visit.at, contended));
        self.expect(visit);
    }
}

/// Test program of a virtual CPU that charges 1,000 cycles of kernel work in every step and never blocks.
pub(super) fn busy(step: &mut VcpuStep, _: u64) -> VcpuStepOutcome {
    step.charge(CycleCategory::Kernel, 1_000);
    VcpuStepOutcome::Continue
}

/// Test program of a virtual CPU that charges 1,000 cycles of kernel work and then blocks until it is woken.
pub(super) fn once(step: &mut VcpuStep, _: u64) -> VcpuStepOutcome {
    step.charge(CycleCategory::Kernel, 1_000);
    VcpuStepOutcome::Block
}
