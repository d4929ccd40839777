//! The simulation engine of every modelled system: processors, an event queue, a cost table and a trace. A
//! system is an [`Actor`]: it defines its events, handles them, and executes the steps of its virtual CPUs.
//! Actors can be composed, with the inner ones' events wrapped in the outer one's.

use super::books::{ConservationChecks, CountMismatch};
use super::breakdown::CycleBreakdown;
use hypervisor::account::{CycleCategory, CycleConservationError, CycleUsage};
use hypervisor::cost::{CostConstant, CostTable};
use hypervisor::cpu::{
    HardwareThreadAction, HardwareThreadId, HostMachine, ScheduledThreadVisit, VcpuId, VcpuStep,
    VcpuStepOutcome, WakeCause,
};
use hypervisor::domain::{DomainId, DomainKind};
use sim::{EventKey, EventQueue, EventTrace, TraceLabel, VirtualDuration, VirtualInstant};
use std::fmt::Debug;
use thiserror::Error;

/// Modelled system, or part of one, that acts in simulated time.
pub trait Actor: Sized {
    /// Event that the simulated actor handles.
    type Event: Copy + Debug;

    /// Handles an event of the actor at the event's time `now`.
    fn handle(&mut self, event: Self::Event, now: VirtualInstant, core: &mut SimulationCore<Self::Event>);

    /// Executes one step of a virtual CPU's program, and reports the step's end to [`SimulationCore`].
    fn execute(&mut self, step: VcpuStep, core: &mut SimulationCore<Self::Event>);

    /// Checks the actor's conservation equations, such as that all frames sent are accounted for.
    fn check_books(&self, books: &mut ConservationChecks);

    /// Returns the index of the port that a domain uses, or `None` if it uses all ports or none.
    fn port_of(&self, domain: DomainId) -> Option<usize> {
        let _ = domain;
        None
    }
}

/// Event in the simulation engine's queue, of the processors or of the simulated system.
#[derive(Debug, Clone, Copy)]
enum QueuedEvent<E> {
    /// Event: a hardware thread is due to run its next step.
    Visit(HardwareThreadId),
    /// Event: the scheduler of the processors is due to run.
    Scheduler,
    /// Event of the simulated system itself, not of its processors.
    Own(E),
}

/// Processors, event queue, cost table and trace, on which actors operate.
#[derive(Debug)]
pub struct SimulationCore<E> {
    pub(crate) table: CostTable,
    pub(crate) processors: HostMachine,
    queue: EventQueue<QueuedEvent<E>>,
    /// Time at which the processors' scheduler runs next, and the key of its event.
    due: Option<VirtualInstant>,
    time: Option<EventKey>,
    pub(crate) trace: EventTrace,
    /// Cycles of the last measured interval.
    breakdown: Option<CycleBreakdown>,
}

/// Modelled system that runs in virtual time.
#[derive(Debug)]
pub struct Simulation<A: Actor> {
    pub(crate) core: SimulationCore<A::Event>,
    pub(crate) system: A,
}

/// Defect of the lab's model, found by a conservation check: the run's results are invalid.
#[derive(Debug, Error)]
pub enum ModelDefect {
    /// The charged and idle processor cycles do not add up to the cycles that passed.
    #[error(transparent)]
    Cycles(#[from] CycleConservationError),
    /// Two counts of the model that must be equal differ, such as frames sent and frames found.
    #[error(transparent)]
    Books(#[from] CountMismatch),
}

const WORLD: TraceLabel = TraceLabel::new("world");
const STEP: TraceLabel = TraceLabel::new("step");

impl<E: Copy> SimulationCore<E> {
    /// Creates a simulation with idle processors and no events.
    pub(crate) fn new(table: CostTable, processors: HostMachine) -> Self {
        Self {
            table,
            processors,
            queue: EventQueue::new(),
            due: None,
            time: None,
            trace: EventTrace::new(),
            breakdown: None,
        }
    }

    /// Returns the current simulated time.
    pub(crate) fn now(&self) -> VirtualInstant {
        self.queue.now()
    }

    /// Schedules an event of the actor.
    pub(crate) fn schedule(&mut self, at: VirtualInstant, event: E) -> EventKey {
        self.queue.schedule(at, QueuedEvent::Own(event))
    }

    /// Replaces the actor's event `old` by `event` at time `at`, or by no event if `at` is `None`.
    pub(crate) fn replace(
        &mut self,
        old: Option<EventKey>,
        at: Option<VirtualInstant>,
        event: E,
    ) -> Option<EventKey> {
        self.queue.replace(old, at, QueuedEvent::Own(event))
    }

    /// Wakes a virtual CPU, and schedules the next step of its hardware thread.
    pub(crate) fn wake(&mut self, vcpu: VcpuId, now: VirtualInstant) {
        self.wake_by(vcpu, WakeCause::Interrupt, now);
    }

    /// Wakes a virtual CPU as [`SimulationCore::wake`] does, for a cause that the scheduler takes into account.
    pub(crate) fn wake_by(&mut self, vcpu: VcpuId, cause: WakeCause, now: VirtualInstant) {
        let visit = self.processors.wake_by(vcpu, cause, now);
        self.expect(visit);
    }

    /// Finishes an executed step of a virtual CPU, and schedules the next step of its hardware thread.
    pub(crate) fn finish(&mut self, step: VcpuStep, then: VcpuStepOutcome) {
        self.trace.note(step.began(), WORLD, STEP, &[step.vcpu().index() as u64, step.charges().total()]);
        let visit = self.processors.finish(step, then);
        self.expect(Some(visit));
    }

    /// Charges the hypervisor for notifying a virtual CPU of an event, including `sending` cycles. A running
    /// hardware-virtualized guest is made to exit; any other domain is woken if it sleeps.
    pub(crate) fn tell(&mut self, vcpu: VcpuId, kind: DomainKind, sending: u64, now: VirtualInstant) {
        let (thread, domain) = (self.processors.home(vcpu), self.processors.domain_of(vcpu));
        match kind {
            DomainKind::Hvm => {
                if self.processors.running(thread, now).is_some()
                    && let Some(exit) = self.table.on_device_interrupt()
                {
                    self.processors.steal(thread, domain, exit.category(), exit.price(&self.table), now);
                    let gone = self.table[CostConstant::ExitPollution];
                    self.processors.steal(thread, domain, CycleCategory::Refill, gone, now);
                }
            }
            DomainKind::Pvm | DomainKind::Dom0 => {
                let blocked =
                    if self.processors.is_blocked(vcpu) { self.table[CostConstant::EventBlocked] } else { 0 };
                self.processors.steal(thread, domain, CycleCategory::EventChannel, sending + blocked, now);
            }
            DomainKind::Hypervisor | DomainKind::Native => {}
        }
    }

    /// Schedules the event at which the processors' scheduler runs next.
    #[inline]
    fn schedule_wake_up(&mut self) {
        let due = self.processors.due();
        if due != self.due {
            self.due = due;
            let at = due.map(|at| at.max(self.queue.now()));
            self.time = self.queue.replace(self.time, at, QueuedEvent::Scheduler);
        }
    }

    /// Runs the processors' scheduler at its wake-up, and schedules the next steps of the threads that it
    /// chooses.
    fn run_scheduler(&mut self, now: VirtualInstant) {
        (self.due, self.time) = (None, None);
        for visit in self.processors.run_scheduler(now) {
            self.expect(Some(visit));
        }
    }

    fn expect(&mut self, visit: Option<ScheduledThreadVisit>) {
        if let Some(ScheduledThreadVisit { thread, at }) = visit {
            self.queue.schedule(at, QueuedEvent::Visit(thread));
        }
    }
}

impl<A: Actor> Simulation<A> {
    /// Runs the modelled system: handles all events before `end`.
    pub fn run(&mut self, end: VirtualInstant) {
        let Self { core, system } = self;
        core.schedule_wake_up();
        while let Some((now, event)) = core.queue.pop_before(end) {
            match event {
                QueuedEvent::Own(event) => system.handle(event, now, core),
                QueuedEvent::Scheduler => core.run_scheduler(now),
                QueuedEvent::Visit(thread) => match core.processors.visit(thread, now) {
                    HardwareThreadAction::Run(step) => system.execute(step, core),
                    HardwareThreadAction::Later(visit) => core.expect(Some(visit)),
                    HardwareThreadAction::Idle => {}
                },
            }
            core.schedule_wake_up();
        }
    }

    /// Runs the system for `warm_up`, reads counters with `counts`, and runs the system for `span`. Returns
    /// the counters as read, and the cycles used in `span`. A violated conservation equation is an error.
    pub(crate) fn observe<C>(
        &mut self,
        (warm_up, span): (VirtualDuration, VirtualDuration),
        counts: impl FnOnce(&A) -> C,
    ) -> Result<(C, CycleUsage), ModelDefect> {
        let begin = self.core.now() + warm_up;
        self.run(begin);
        let (before, counted) = (self.core.processors.snapshot(begin), counts(&self.system));
        let end = begin + span;
        self.run(end);
        let after = self.core.processors.snapshot(end);
        after.check()?;
        let mut books = ConservationChecks::default();
        self.system.check_books(&mut books);
        books.close()?;
        let usage = after.since(&before);
        usage.check()?;
        let processors = &self.core.processors;
        let hertz = processors.config().clock.hertz();
        let port_of = |domain| self.system.port_of(domain);
        self.core.breakdown = Some(CycleBreakdown::new(&usage, processors.domains(), hertz, port_of));
        Ok((counted, usage))
    }

    /// Returns the cycles of the last measured interval by domain, category and port.
    #[must_use]
    pub fn breakdown(&self) -> Option<&CycleBreakdown> {
        self.core.breakdown.as_ref()
    }

    /// Returns the hash of all traced events.
    #[must_use]
    pub fn hash(&self) -> u64 {
        self.core.trace.hash()
    }

    /// Returns the number of traced events.
    #[must_use]
    pub fn events(&self) -> u64 {
        self.core.trace.events()
    }
}
