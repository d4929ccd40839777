//! Drives a machine whose virtual CPUs run test programs.

use std::vec::Vec;

use sim::{EventQueue, Frequency, Instant, Label, Span, Trace};

use crate::account::{Category, Charge, Snapshot};
use crate::cpu::{AfterStep, Config, Machine, Step, ThreadAction, ThreadId, VcpuId, Visit};
use crate::domain::{DomainId, DomainKind};

const CPU: Label = Label::new("cpu");
const STEP: Label = Label::new("step");

/// Event of the program that drives the machine.
#[derive(Debug)]
pub(super) enum Event {
    Visit(ThreadId),
    Wake(VcpuId),
    Interrupt { thread: ThreadId, cycles: u64 },
}

/// Program of a virtual CPU: charges work in each turn and returns what follows.
pub(super) type Program = fn(&mut Step, turn: u64) -> AfterStep;

#[derive(Debug)]
pub(super) struct World {
    pub(super) machine: Machine,
    pub(super) events: EventQueue<Event>,
    pub(super) trace: Trace,
    programs: Vec<(Program, u64)>,
    /// Every step: virtual CPU, start, end, and contention.
    pub(super) steps: Vec<(VcpuId, Instant, Instant, bool)>,
}

/// Returns a machine of `cores` with `threads` each at 1 GHz, so that a cycle is a nanosecond, with free
/// switches.
pub(super) fn config(cores: u16, threads: u16) -> Config {
    Config {
        cores,
        threads_per_core: threads,
        clock: Frequency::from_hertz(1_000_000_000),
        contention_permille: 1_500,
        switch: 0,
        refill: 0,
        displacement: 0,
        nested_permille: 1_000,
        slice: Span::from_micros(10),
    }
}

pub(super) fn thread(index: u16) -> ThreadId {
    ThreadId::new(index)
}

pub(super) fn nanos(nanos: u64) -> Instant {
    Instant::from_nanos(nanos)
}

impl World {
    pub(super) fn new(config: Config) -> World {
        World {
            machine: Machine::new(config),
            events: EventQueue::new(),
            trace: Trace::new(),
            programs: Vec::new(),
            steps: Vec::new(),
        }
    }

    pub(super) fn guest(&mut self, home: u16, program: Program) -> (DomainId, VcpuId) {
        let domain = self.machine.add_domain(DomainKind::Hvm, "guest".into());
        (domain, self.vcpu(domain, home, program))
    }

    pub(super) fn vcpu(&mut self, domain: DomainId, home: u16, program: Program) -> VcpuId {
        self.programs.push((program, 0));
        self.machine.add_vcpu(domain, thread(home))
    }

    pub(super) fn at(&mut self, at: u64, event: Event) {
        self.events.schedule(nanos(at), event);
    }

    /// Runs all events before `end`, and returns the checked accounts.
    pub(super) fn run(&mut self, end: u64) -> Snapshot {
        while let Some((now, event)) = self.events.pop_before(nanos(end)) {
            match event {
                Event::Visit(thread) => self.visit(thread, now),
                Event::Wake(vcpu) => {
                    let visit = self.machine.wake(vcpu, now);
                    visit.into_iter().for_each(|visit| self.expect(visit));
                }
                Event::Interrupt { thread, cycles } => {
                    let (domain, category) = (DomainId::HYPERVISOR, Category::ExternalInterrupt);
                    self.machine.steal(thread, domain, category, cycles, now);
                }
            }
        }
        self.machine.snapshot(nanos(end))
    }

    fn expect(&mut self, visit: Visit) {
        self.events.schedule(visit.at, Event::Visit(visit.thread));
    }

    fn visit(&mut self, thread: ThreadId, now: Instant) {
        match self.machine.visit(thread, now) {
            ThreadAction::Run(step) => self.execute(step, now),
            ThreadAction::Later(visit) => self.expect(visit),
            ThreadAction::Idle => {}
        }
    }

    fn execute(&mut self, mut step: Step, now: Instant) {
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

/// Charges 1,000 cycles of kernel work in every turn.
pub(super) fn busy(step: &mut Step, _: u64) -> AfterStep {
    step.charge(Category::Kernel, 1_000);
    AfterStep::Continue
}

/// Charges 1,000 cycles of kernel work per wake-up.
pub(super) fn once(step: &mut Step, _: u64) -> AfterStep {
    step.charge(Category::Kernel, 1_000);
    AfterStep::Block
}
