//! What every system runs on: processors, events in time, what things cost, and a record of it all. A system is an
//! [`Actor`]: it says what its events are, handles each that comes, and runs the steps of its virtual CPUs. It may be
//! made of actors itself, whose events its own contain. Left out: what systems there are.

use super::books::{Books, Unbalanced};
use hypervisor::account::{Category, ConservationError, Usage};
use hypervisor::cost::{Cost, CostTable};
use hypervisor::cpu::{Machine, Next, Step, Then, ThreadId, VcpuId, Visit};
use hypervisor::domain::DomainKind;
use sim::{EventKey, EventQueue, Instant, Label, Span, Trace};
use std::fmt::Debug;
use thiserror::Error;

/// Who acts in time.
pub trait Actor: Sized {
    /// What happens to it.
    type Event: Copy + Debug;

    /// An event has come.
    fn handle(&mut self, event: Self::Event, now: Instant, core: &mut Core<Self::Event>);

    /// It is a virtual CPU's turn: the step is to be executed and given back to the core.
    fn execute(&mut self, step: Step, core: &mut Core<Self::Event>);

    /// What must be equal at any time, such as what was sent and what can be found.
    fn owes(&self, books: &mut Books);
}

/// What happens next, to whom.
#[derive(Debug, Clone, Copy)]
enum Event<E> {
    /// A thread wants to be visited.
    Visit(ThreadId),
    /// The scheduler wants to be told of the time.
    Time,
    /// The system's.
    Own(E),
}

/// What actors act on.
#[derive(Debug)]
pub struct Core<E> {
    pub(crate) table: CostTable,
    pub(crate) processors: Machine,
    queue: EventQueue<Event<E>>,
    /// When the scheduler wants to be told of the time, and the event for it.
    due: Option<Instant>,
    time: Option<EventKey>,
    pub(crate) trace: Trace,
}

/// A system that runs.
#[derive(Debug)]
pub struct Engine<A: Actor> {
    pub(crate) core: Core<A::Event>,
    pub(crate) system: A,
}

/// A run that cannot be believed.
#[derive(Debug, Error)]
pub enum Defect {
    /// Cycles.
    #[error(transparent)]
    Cycles(#[from] ConservationError),
    /// Anything else that is counted.
    #[error(transparent)]
    Books(#[from] Unbalanced),
}

const WORLD: Label = Label::new("world");
const STEP: Label = Label::new("step");

impl<E: Copy> Core<E> {
    /// Processors on which nothing runs yet.
    pub(crate) fn new(table: CostTable, processors: Machine) -> Self {
        Self { table, processors, queue: EventQueue::new(), due: None, time: None, trace: Trace::new() }
    }

    /// The time it is.
    pub(crate) fn now(&self) -> Instant {
        self.queue.now()
    }

    /// Lets an event come.
    pub(crate) fn schedule(&mut self, at: Instant, event: E) -> EventKey {
        self.queue.schedule(at, Event::Own(event))
    }

    /// Lets an event come in place of another, or none.
    pub(crate) fn replace(
        &mut self,
        old: Option<EventKey>,
        at: Option<Instant>,
        event: E,
    ) -> Option<EventKey> {
        self.queue.replace(old, at, Event::Own(event))
    }

    /// A virtual CPU has something to do.
    pub(crate) fn wake(&mut self, vcpu: VcpuId, now: Instant) {
        let visit = self.processors.wake(vcpu, now);
        self.expect(visit);
    }

    /// A step has been executed.
    pub(crate) fn finish(&mut self, step: Step, then: Then) {
        self.trace.note(step.began(), WORLD, STEP, &[step.vcpu().index() as u64, step.charges().total()]);
        let visit = self.processors.finish(step, then);
        self.expect(Some(visit));
    }

    /// What the hypervisor does on a thread to tell a virtual CPU of an event, where `sending` is still to be paid for:
    /// one on hardware virtualization is made to exit if it runs, another is woken if it sleeps.
    pub(crate) fn tell(&mut self, vcpu: VcpuId, kind: DomainKind, sending: u64, now: Instant) {
        let (thread, domain) = (self.processors.home(vcpu), self.processors.domain_of(vcpu));
        match kind {
            DomainKind::Hvm => {
                if self.processors.running(thread, now).is_some()
                    && let Some(exit) = self.table.features().on_device_interrupt()
                {
                    self.processors.steal(thread, domain, exit.category(), exit.price(&self.table), now);
                    let gone = self.table[Cost::ExitPollution];
                    self.processors.steal(thread, domain, Category::Refill, gone, now);
                }
            }
            DomainKind::Pvm | DomainKind::Dom0 => {
                let blocked =
                    if self.processors.is_blocked(vcpu) { self.table[Cost::EventBlocked] } else { 0 };
                self.processors.steal(thread, domain, Category::EventChannel, sending + blocked, now);
            }
            DomainKind::Hypervisor | DomainKind::Native => {}
        }
    }

    /// Has the scheduler told of the time when it wants to be.
    #[inline]
    fn keep_time(&mut self) {
        let due = self.processors.due();
        if due != self.due {
            self.due = due;
            let at = due.map(|at| at.max(self.queue.now()));
            self.time = self.queue.replace(self.time, at, Event::Time);
        }
    }

    /// It is as late as the scheduler wanted to know.
    fn tell_time(&mut self, now: Instant) {
        (self.due, self.time) = (None, None);
        for visit in self.processors.time(now) {
            self.expect(Some(visit));
        }
    }

    fn expect(&mut self, visit: Option<Visit>) {
        if let Some(Visit { thread, at }) = visit {
            self.queue.schedule(at, Event::Visit(thread));
        }
    }
}

impl<A: Actor> Engine<A> {
    /// Lets everything happen up to `end`.
    pub fn run(&mut self, end: Instant) {
        let Self { core, system } = self;
        core.keep_time();
        while let Some((now, event)) = core.queue.pop_before(end) {
            match event {
                Event::Own(event) => system.handle(event, now, core),
                Event::Time => core.tell_time(now),
                Event::Visit(thread) => match core.processors.visit(thread, now) {
                    Next::Run(step) => system.execute(step, core),
                    Next::Later(visit) => core.expect(Some(visit)),
                    Next::Idle => {}
                },
            }
            core.keep_time();
        }
    }

    /// Runs up to `warm_up` from now, remembers what `counts` says, and runs for `span`: what was counted before, and
    /// who spent which cycles meanwhile. Cycles are conserved and the books are closed, or it is an error.
    pub(crate) fn observe<C>(
        &mut self,
        (warm_up, span): (Span, Span),
        counts: impl FnOnce(&A) -> C,
    ) -> Result<(C, Usage), Defect> {
        let begin = self.core.now() + warm_up;
        self.run(begin);
        let (before, counted) = (self.core.processors.snapshot(begin), counts(&self.system));
        let end = begin + span;
        self.run(end);
        let after = self.core.processors.snapshot(end);
        after.check()?;
        let mut books = Books::default();
        self.system.owes(&mut books);
        books.close()?;
        let usage = after.since(&before);
        usage.check()?;
        Ok((counted, usage))
    }

    /// The hash of everything that has happened.
    #[must_use]
    pub fn hash(&self) -> u64 {
        self.core.trace.hash()
    }

    /// How many events that hash is over.
    #[must_use]
    pub fn events(&self) -> u64 {
        self.core.trace.events()
    }
}
