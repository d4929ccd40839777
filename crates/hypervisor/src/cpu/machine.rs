//! The machine: the conversation of [`super`] about threads, virtual CPUs and cycles. Left out: the order of
//! virtual CPUs, which is the scheduler's, and what time does to it (`preemption`).

use alloc::string::String;
use alloc::vec::Vec;

use sim::{Frequency, Instant, Span};

use super::scheduler::{Policy, RoundRobin, Scheduler, Share};
use super::step::{Step, Then};
use super::thread::{Current, Rest, Thread};
use super::{ThreadId, VcpuId};
use crate::account::{Category, Charge, Ledger, Snapshot};
use crate::cost::{Cost, CostTable};
use crate::domain::{Domain, DomainId, DomainKind};

/// What a machine is made of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// Physical cores.
    pub cores: u16,
    /// Sibling threads of a core; at least 1.
    pub threads_per_core: u16,
    /// The clock of all cores.
    pub clock: Frequency,
    /// Thousandths of a cycle that a cycle of work takes while a sibling is busy; at least 1,000.
    pub contention_permille: u64,
    /// Cycles to put another virtual CPU on a thread: the hypervisor's work.
    pub switch: u64,
    /// Cycles it then takes that virtual CPU to find its caches and TLB filled again.
    pub refill: u64,
    /// Cycles of others on the thread after which all of that is to be filled again; after fewer, a part. 0: always all.
    pub displacement: u64,
    /// Thousandths of a cycle that filling takes under nested paging; at least 1,000.
    pub nested_permille: u64,
    /// How long a virtual CPU may run while others wait for the thread.
    pub slice: Span,
}

impl Config {
    /// Cores as `table` describes them, and turns of 30 ms (Xen's credit scheduler).
    pub fn from_table(table: &CostTable, cores: u16, threads_per_core: u16) -> Config {
        Config {
            cores,
            threads_per_core,
            clock: Frequency::from_hertz(table[Cost::ClockHertz]),
            contention_permille: if threads_per_core > 1 { table[Cost::SmtContention] } else { 1_000 },
            switch: table[Cost::SwitchDirect],
            refill: table[Cost::SwitchIndirect],
            displacement: table[Cost::SwitchDisplacement],
            nested_permille: 1_000 + table[Cost::NestedPaging],
            slice: Span::from_millis(30),
        }
    }
}

/// A request to call [`Machine::visit`] for `thread` at `at`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub struct Visit {
    /// Which thread.
    pub thread: ThreadId,
    /// When.
    pub at: Instant,
}

/// What a thread does next.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "a box for each step would be an allocation")]
#[must_use]
pub enum Next {
    /// Execute this, and give it to [`Machine::finish`].
    Run(Step),
    /// It is still busy.
    Later(Visit),
    /// Nothing until a virtual CPU of it is woken.
    Idle,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Blocked,
    Ready,
    /// On its thread; `true` if it was woken since its step began.
    Running(bool),
}

#[derive(Debug)]
pub(super) struct Vcpu {
    domain: DomainId,
    home: ThreadId,
    state: State,
    /// What is left of a step that was cut.
    pub(super) rest: Option<Rest>,
    /// Where it ran last, and how far that thread had come.
    left: Option<(ThreadId, u64)>,
}

/// Processors, and what they were spent on.
#[derive(Debug)]
pub struct Machine<S: Scheduler = Policy> {
    pub(super) config: Config,
    pub(super) threads: Vec<Thread>,
    pub(super) vcpus: Vec<Vcpu>,
    domains: Vec<Domain>,
    ledger: Ledger,
    pub(super) scheduler: S,
}

impl Machine {
    /// A machine with nobody on it but the hypervisor, scheduled round robin.
    pub fn new(config: Config) -> Machine {
        let slice = config.clock.cycle_at(Instant::ZERO + config.slice);
        Machine::with_scheduler(config, Policy::RoundRobin(RoundRobin::new(slice)))
    }

    /// Lets one virtual CPU go before all others of its thread, if turns are in order; where they are not, its share says.
    pub fn favour(&mut self, vcpu: VcpuId) {
        if let Policy::RoundRobin(scheduler) = &mut self.scheduler {
            scheduler.favour(vcpu);
        }
    }
}

impl<S: Scheduler> Machine<S> {
    /// A machine with nobody on it but the hypervisor.
    pub fn with_scheduler(mut config: Config, mut scheduler: S) -> Machine<S> {
        config.threads_per_core = config.threads_per_core.max(1);
        config.contention_permille = config.contention_permille.max(super::step::ALONE);
        let count = usize::from(config.cores) * usize::from(config.threads_per_core);
        let threads = (0..count).map(|_| Thread::new()).collect();
        (0..count).for_each(|_| scheduler.add_thread());
        let ledger = Ledger::new(count);
        let mut machine =
            Machine { config, threads, vcpus: Vec::new(), domains: Vec::new(), ledger, scheduler };
        machine.add_domain(DomainKind::Hypervisor, "hypervisor".into());
        machine
    }

    /// Adds a domain without virtual CPUs.
    pub fn add_domain(&mut self, kind: DomainKind, name: String) -> DomainId {
        self.domains.push(Domain { kind, name });
        self.ledger.add_domain();
        DomainId::new(self.domains.len() as u16 - 1)
    }

    /// Gives `domain` a virtual CPU, pinned to `home`; it is blocked until it is woken.
    ///
    /// # Panics
    ///
    /// If the machine has no such thread or domain.
    pub fn add_vcpu(&mut self, domain: DomainId, home: ThreadId) -> VcpuId {
        self.add_vcpu_with(domain, home, Share::default())
    }

    /// As [`Machine::add_vcpu`], with a share of its own; `home` is where it begins.
    ///
    /// # Panics
    ///
    /// If the machine has no such thread or domain.
    pub fn add_vcpu_with(&mut self, domain: DomainId, home: ThreadId, share: Share) -> VcpuId {
        assert!(home.index() < self.threads.len(), "no thread {}", home.index());
        assert!(domain.index() < self.domains.len(), "no domain {}", domain.index());
        let vcpu = VcpuId(self.vcpus.len() as u16);
        self.vcpus.push(Vcpu { domain, home, state: State::Blocked, rest: None, left: None });
        self.scheduler.add_vcpu(home, vcpu, share);
        vcpu
    }

    /// Makes `vcpu` ready, or lets it go on after the step it is in. It may take the thread at once.
    #[must_use]
    pub fn wake(&mut self, vcpu: VcpuId, now: Instant) -> Option<Visit> {
        let Vcpu { home, state, rest, .. } = &mut self.vcpus[vcpu.index()];
        match state {
            State::Ready => {
                rest.iter_mut().for_each(|rest| rest.then = Then::Continue);
                return None;
            }
            State::Running(woken) => {
                *woken = true;
                return None;
            }
            State::Blocked => *state = State::Ready,
        }
        let thread = self.scheduler.place(*home, vcpu, |thread| self.threads[thread.index()].is_idle());
        *home = thread;
        self.scheduler.woken(thread, vcpu);
        let found = &mut self.threads[thread.index()];
        if matches!(found.current, Some(Current { took: OPEN, .. })) {
            return None;
        }
        if found.expects.is_some() {
            return self.cut(thread, now);
        }
        let at = self.config.clock.start_of(found.position).max(now);
        found.expects = Some(self.config.clock.cycle_at(at));
        Some(Visit { thread, at })
    }

    /// What `thread` does at `now`, which is when it asked to be visited.
    pub fn visit(&mut self, thread: ThreadId, now: Instant) -> Next {
        let cycle = self.config.clock.cycle_at(now);
        let index = thread.index();
        if self.threads[index].expects != Some(cycle) {
            return Next::Idle;
        }
        if self.threads[index].position > cycle {
            return Next::Later(self.visit_when_free(thread));
        }
        self.threads[index].expects = None;
        self.retire(thread);
        let Some(vcpu) = self.scheduler.pick(thread, cycle) else { return Next::Idle };
        self.catch_up(thread, cycle);
        let contended = self.contention(thread, cycle);
        let Vcpu { domain, state, home, rest, .. } = &mut self.vcpus[vcpu.index()];
        (*state, *home) = (State::Running(false), thread);
        let (domain, rest) = (*domain, rest.take());
        let found = &mut self.threads[index];
        found.current = Some(Current { vcpu, then: Then::Continue, took: OPEN });
        let stretch = found.stretch(contended);
        let mut step = Step::new((thread, vcpu, domain), found.position, stretch, self.config.clock);
        if found.holds.replace(vcpu) != Some(vcpu) {
            step.charge(Category::Switch, self.config.switch);
            step.charge(Category::Refill, self.refill(vcpu, thread));
        }
        match rest {
            Some(rest) => Next::Later(self.resume(step, rest)),
            None => Next::Run(step),
        }
    }

    /// Ends the execution of `step`: the thread is busy for what it charged, and is to be visited after that.
    ///
    /// A step that charges nothing takes one cycle of kernel time, so that time goes on whatever guests do.
    pub fn finish(&mut self, mut step: Step, then: Then) -> Visit {
        if step.charges.is_empty() {
            step.charge(Category::Kernel, 1);
        }
        self.take(step, then, 0)
    }

    /// The thread is busy for what a step charged, and for `more` that was paid for before.
    pub(super) fn take(&mut self, step: Step, then: Then, more: u64) -> Visit {
        let Step { thread, vcpu, domain, charges, mut stretch, .. } = step;
        stretch.remainder = self.threads[thread.index()].remainder;
        let mut took = more;
        for (category, work) in charges.iter() {
            let cycles = stretch.apply(work);
            self.ledger.spend(domain, category, cycles);
            took += cycles;
        }
        let found = &mut self.threads[thread.index()];
        found.remainder = stretch.remainder;
        found.position += took;
        (found.worked, found.current) = (found.worked + took, Some(Current { vcpu, then, took }));
        self.vcpus[vcpu.index()].left = Some((thread, found.worked));
        self.visit_when_free(thread)
    }

    /// What it takes to find caches and TLB filled again on a thread: the more, the longer others ran there since.
    fn refill(&self, vcpu: VcpuId, thread: ThreadId) -> u64 {
        let Config { refill, displacement, nested_permille, .. } = self.config;
        let Vcpu { left, domain, .. } = &self.vcpus[vcpu.index()];
        let others = left
            .filter(|(last, _)| *last == thread && displacement > 0)
            .map(|(_, worked)| self.threads[thread.index()].worked.saturating_sub(worked));
        let part = others.map_or(refill, |others| refill * others.min(displacement) / displacement);
        let is_nested = self.domains[domain.index()].kind == DomainKind::Hvm;
        if is_nested { part * nested_permille / 1_000 } else { part }
    }

    /// The hypervisor takes `cycles` of `thread` for `domain` at `now`, whatever runs there: a step in progress
    /// ends that much later, an idle thread is busy that long. Answers when the thread is free.
    ///
    /// No visit is needed: whoever is to run will be woken, or is visited already.
    pub fn steal(
        &mut self,
        thread: ThreadId,
        domain: DomainId,
        category: Category,
        cycles: u64,
        now: Instant,
    ) -> Instant {
        let cycle = self.config.clock.cycle_at(now);
        self.catch_up(thread, cycle);
        let contended = self.contention(thread, cycle);
        let found = &mut self.threads[thread.index()];
        let mut stretch = found.stretch(contended);
        let took = stretch.apply(cycles);
        found.remainder = stretch.remainder;
        found.position += took;
        found.worked += took;
        self.ledger.spend(domain, category, took);
        self.config.clock.start_of(self.threads[thread.index()].position)
    }

    /// The books at `now`, every thread accounted for up to it.
    pub fn snapshot(&mut self, now: Instant) -> Snapshot {
        let cycle = self.config.clock.cycle_at(now);
        let threads = 0..self.threads.len() as u16;
        threads.for_each(|thread| self.catch_up(ThreadId(thread), cycle));
        let rests = self.vcpus.iter().filter_map(|vcpu| vcpu.rest).map(|rest| rest.cycles);
        let ahead = self.threads.iter().map(|thread| thread.position - cycle).chain(rests).sum();
        Snapshot { ledger: self.ledger.clone(), cycle, ahead, hertz: self.config.clock.hertz() }
    }

    /// Whose step `thread` is in at `now`, if it is in one.
    pub fn running(&self, thread: ThreadId, now: Instant) -> Option<VcpuId> {
        let found = &self.threads[thread.index()];
        let current = found.current.as_ref()?;
        let over = current.took != OPEN && found.position <= self.config.clock.cycle_at(now);
        (!over).then_some(current.vcpu)
    }

    /// Whether `vcpu` sleeps: it neither runs nor waits for its turn.
    ///
    /// During the step after which it blocks it does not sleep yet.
    pub fn is_blocked(&self, vcpu: VcpuId) -> bool {
        self.vcpus[vcpu.index()].state == State::Blocked
    }

    /// The thread `vcpu` runs on, or waits or sleeps on.
    pub fn home(&self, vcpu: VcpuId) -> ThreadId {
        self.vcpus[vcpu.index()].home
    }

    /// The domain of `vcpu`.
    pub fn domain_of(&self, vcpu: VcpuId) -> DomainId {
        self.vcpus[vcpu.index()].domain
    }

    /// The domains, the hypervisor first; [`DomainId::index`] is the place.
    pub fn domains(&self) -> &[Domain] {
        &self.domains
    }

    /// What it is made of.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// How many threads it has.
    pub fn threads(&self) -> usize {
        self.threads.len()
    }

    /// Takes the current step off the thread, now that it is over.
    fn retire(&mut self, thread: ThreadId) {
        let Some(Current { vcpu, then, took }) = self.threads[thread.index()].current.take() else { return };
        let state = &mut self.vcpus[vcpu.index()].state;
        if then == Then::Continue || *state == State::Running(true) {
            *state = State::Ready;
            self.scheduler.continues(thread, vcpu, took, false);
        } else {
            *state = State::Blocked;
            self.scheduler.blocked(thread, vcpu, took);
        }
    }

    /// Accounts for the idle cycles of `thread` up to `cycle`.
    #[inline]
    fn catch_up(&mut self, thread: ThreadId, cycle: u64) {
        let found = &mut self.threads[thread.index()];
        if let Some(idle @ 1..) = cycle.checked_sub(found.position) {
            self.ledger.idle_for(thread.index(), idle);
            found.position = cycle;
        }
    }

    /// The factor, in thousandths, if a sibling of `thread` is busy in `cycle` or about to be.
    #[inline]
    fn contention(&self, thread: ThreadId, cycle: u64) -> Option<u64> {
        let siblings = self.config.threads_per_core;
        let first = thread.0 / siblings * siblings;
        let busy = |sibling: u16| {
            let found = &self.threads[usize::from(sibling)];
            found.position > cycle || found.goes_on() || self.scheduler.has_ready(ThreadId(sibling))
        };
        let contended = (first..first + siblings).any(|sibling| sibling != thread.0 && busy(sibling));
        contended.then_some(self.config.contention_permille)
    }

    pub(super) fn visit_when_free(&mut self, thread: ThreadId) -> Visit {
        let found = &mut self.threads[thread.index()];
        found.expects = Some(found.position);
        Visit { thread, at: self.config.clock.start_of(found.position) }
    }

    /// Puts who ran back to who waits, in the middle of a step.
    pub(super) fn put_back(&mut self, thread: ThreadId, vcpu: VcpuId, rest: Rest, ran: u64) {
        let found = &mut self.vcpus[vcpu.index()];
        let was_woken = found.state == State::Running(true);
        let then = if was_woken { Then::Continue } else { rest.then };
        (found.state, found.rest) = (State::Ready, Some(Rest { then, ..rest }));
        self.scheduler.continues(thread, vcpu, ran, true);
    }
}

/// In place of what a step took, while it is being executed.
pub(super) const OPEN: u64 = u64::MAX;
