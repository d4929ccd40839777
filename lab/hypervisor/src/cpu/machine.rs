//! The modelled machine: processor threads, virtual CPUs and cycles, driven by the protocol of [`super`]. The scheduler
//! orders virtual CPUs; `preemption` handles time.

use alloc::string::String;
use alloc::vec::Vec;

use sim::VirtualInstant;

use super::processors::ProcessorConfig;
use super::scheduler::{RoundRobinScheduler, Scheduler, SchedulingParameters, SelectedScheduler};
use super::step::{VcpuStep, VcpuStepOutcome};
use super::thread::{CurrentVcpuStep, HardwareThread, PreemptedVcpuStep};
use super::{HardwareThreadId, VcpuId};
use crate::account::{CycleCategory, CycleLedger, CycleLedgerSnapshot, CycleSink};
use crate::domain::{Domain, DomainId, DomainKind};

/// Request to call [`HostMachine::visit`] for a processor thread at a given time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub struct ScheduledThreadVisit {
    /// Processor thread that is to be visited.
    pub thread: HardwareThreadId,
    /// Time at which the thread is to be visited.
    pub at: VirtualInstant,
}

/// Action that a processor thread requires of the simulation when its time has come.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "a box for each step would be an allocation")]
#[must_use]
pub enum HardwareThreadAction {
    /// Execute this step of a virtual CPU, and pass it to [`HostMachine::finish`].
    Run(VcpuStep),
    /// The processor thread is busy; call [`HostMachine::visit`] for it again at this time.
    Later(ScheduledThreadVisit),
    /// The processor thread is idle until one of its virtual CPUs is woken.
    Idle,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum VcpuState {
    Blocked,
    Ready,
    /// The virtual CPU runs on its thread; `true` if it was woken since its step began.
    Running(bool),
}

#[derive(Debug)]
pub(super) struct Vcpu {
    domain: DomainId,
    pub(super) home: HardwareThreadId,
    pub(super) state: VcpuState,
    /// Remainder of the virtual CPU's preempted step.
    pub(super) unfinished: Option<PreemptedVcpuStep>,
    /// Thread that the virtual CPU last ran on, and that thread's count of worked cycles at the time.
    last_run: Option<(HardwareThreadId, u64)>,
}

/// Processors of a modelled machine with their virtual CPUs, scheduler, domains and ledger of cycles.
#[derive(Debug)]
pub struct HostMachine<S: Scheduler = SelectedScheduler> {
    pub(super) config: ProcessorConfig,
    pub(super) threads: Vec<HardwareThread>,
    pub(super) vcpus: Vec<Vcpu>,
    domains: Vec<Domain>,
    /// Cycles to load TLB entries again that a switch to the domain flushes, by domain.
    flushed: Vec<u64>,
    ledger: CycleLedger,
    pub(super) scheduler: S,
}

impl HostMachine {
    /// Creates a machine with only the hypervisor's domain, whose virtual CPUs are scheduled round robin.
    pub fn new(config: ProcessorConfig) -> HostMachine {
        let slice = config.clock.cycle_at(VirtualInstant::ZERO + config.slice);
        HostMachine::with_scheduler(config, SelectedScheduler::RoundRobin(RoundRobinScheduler::new(slice)))
    }

    /// Gives a virtual CPU precedence on its thread under round robin. Schedulers with shares ignore the call.
    pub fn favour(&mut self, vcpu: VcpuId) {
        if let SelectedScheduler::RoundRobin(scheduler) = &mut self.scheduler {
            scheduler.favour(vcpu);
        }
    }
}

impl<S: Scheduler> HostMachine<S> {
    /// Creates a machine with only the hypervisor's domain, whose virtual CPUs are scheduled by `scheduler`.
    pub fn with_scheduler(mut config: ProcessorConfig, mut scheduler: S) -> HostMachine<S> {
        config.threads_per_core = config.threads_per_core.max(1);
        config.contention_permille = config.contention_permille.max(super::step::ALONE);
        let count = usize::from(config.cores) * usize::from(config.threads_per_core);
        let threads = (0..count).map(|_| HardwareThread::new()).collect();
        (0..count).for_each(|_| scheduler.add_thread());
        let ledger = CycleLedger::new(count);
        let (vcpus, domains, flushed) = (Vec::new(), Vec::new(), Vec::new());
        let mut machine = HostMachine { config, threads, vcpus, domains, flushed, ledger, scheduler };
        machine.add_domain(DomainKind::Hypervisor, "hypervisor".into());
        machine
    }

    /// Adds a domain without virtual CPUs to the machine.
    pub fn add_domain(&mut self, kind: DomainKind, name: String) -> DomainId {
        self.domains.push(Domain { kind, name });
        self.flushed.push(0);
        self.ledger.add_domain();
        DomainId::new(self.domains.len() as u16 - 1)
    }

    /// Sets the cycles that a domain's virtual CPU needs after each switch to it, to load TLB entries again that the switch
    /// flushed ([`super::tlb::Tlb::switch`]); 0 for a new domain.
    ///
    /// # Panics
    /// If the machine has no such domain.
    pub fn flush_at_switches(&mut self, domain: DomainId, cycles: u64) {
        self.flushed[domain.index()] = cycles;
    }

    /// Adds a virtual CPU to `domain`, blocked and pinned to thread `home`.
    ///
    /// # Panics
    /// If the machine has no such thread or domain.
    pub fn add_vcpu(&mut self, domain: DomainId, home: HardwareThreadId) -> VcpuId {
        self.add_vcpu_with(domain, home, SchedulingParameters::default())
    }

    /// Adds a virtual CPU with a scheduling share to `domain`, blocked; its first thread is `home`.
    ///
    /// # Panics
    /// If the machine has no such thread or domain.
    pub fn add_vcpu_with(
        &mut self,
        domain: DomainId,
        home: HardwareThreadId,
        share: SchedulingParameters,
    ) -> VcpuId {
        assert!(home.index() < self.threads.len(), "the machine has no thread {}", home.index());
        assert!(domain.index() < self.domains.len(), "the machine has no domain {}", domain.index());
        let vcpu = VcpuId(self.vcpus.len() as u16);
        self.vcpus.push(Vcpu { domain, home, state: VcpuState::Blocked, unfinished: None, last_run: None });
        self.scheduler.add_vcpu(home, vcpu, share);
        vcpu
    }

    /// Returns the action that a processor thread requires at `now`, the time of the requested visit.
    pub fn visit(&mut self, thread: HardwareThreadId, now: VirtualInstant) -> HardwareThreadAction {
        let cycle = self.config.clock.cycle_at(now);
        let index = thread.index();
        if self.threads[index].visit_cycle != Some(cycle) {
            return HardwareThreadAction::Idle;
        }
        if self.threads[index].position > cycle {
            return HardwareThreadAction::Later(self.visit_when_free(thread));
        }
        self.threads[index].visit_cycle = None;
        self.retire(thread);
        let Some(vcpu) = self.scheduler.pick(thread, cycle) else { return HardwareThreadAction::Idle };
        self.catch_up(thread, cycle);
        let contended = self.contention(thread, cycle);
        let Vcpu { domain, state, home, unfinished, .. } = &mut self.vcpus[vcpu.index()];
        (*state, *home) = (VcpuState::Running(false), thread);
        let (domain, unfinished) = (*domain, unfinished.take());
        let found = &mut self.threads[index];
        found.current = Some(CurrentVcpuStep { vcpu, then: VcpuStepOutcome::Continue, took: EXECUTING });
        let stretch = found.stretch(contended);
        let mut step = VcpuStep::new((thread, vcpu, domain), found.position, stretch, self.config.clock);
        if found.loaded.replace(vcpu) != Some(vcpu) {
            step.charge(CycleCategory::Switch, self.config.switch);
            let reload = self.begin_run(vcpu, thread);
            step.charge(CycleCategory::Refill, self.refill(vcpu, thread) + reload);
        }
        match unfinished {
            Some(unfinished) => HardwareThreadAction::Later(self.resume(step, unfinished)),
            None => HardwareThreadAction::Run(step),
        }
    }

    /// Ends the execution of a virtual CPU's `step`, which keeps its thread busy for the charged cycles. Returns the
    /// request for the next visit of the thread.
    ///
    /// A step that charges nothing takes one cycle of kernel time, so that time advances whatever guests do.
    pub fn finish(&mut self, mut step: VcpuStep, then: VcpuStepOutcome) -> ScheduledThreadVisit {
        if step.charges.is_empty() {
            step.charge(CycleCategory::Kernel, 1);
        }
        self.take(step, then, 0)
    }

    /// Occupies the thread for a step's charged cycles, and for `more` cycles that were charged earlier. Returns the
    /// request for the next visit of the thread.
    pub(super) fn take(&mut self, step: VcpuStep, then: VcpuStepOutcome, more: u64) -> ScheduledThreadVisit {
        let VcpuStep { thread, vcpu, domain, charges, mut stretch, .. } = step;
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
        (found.worked, found.current) = (found.worked + took, Some(CurrentVcpuStep { vcpu, then, took }));
        self.vcpus[vcpu.index()].last_run = Some((thread, found.worked));
        self.visit_when_free(thread)
    }

    /// Returns the cycles that a virtual CPU needs to refill a thread's caches and TLB. Depends on the cycles that
    /// other virtual CPUs ran there since its last run.
    fn refill(&self, vcpu: VcpuId, thread: HardwareThreadId) -> u64 {
        let ProcessorConfig { refill, displacement, .. } = self.config;
        let Vcpu { last_run, domain, .. } = &self.vcpus[vcpu.index()];
        let others = last_run
            .filter(|(last, _)| *last == thread && displacement > 0)
            .map(|(_, worked)| self.threads[thread.index()].worked.saturating_sub(worked));
        let part = others.map_or(refill, |others| refill * others.min(displacement) / displacement);
        part + self.flushed[domain.index()]
    }

    /// Begins a run of a virtual CPU on a thread. Returns the cycles to read the part of its working set from memory that
    /// others have displaced from the cache since its last run. The cache drops what was used least recently, and virtual
    /// CPUs have working sets of the same size; a virtual CPU that runs several times meanwhile displaces no more than one
    /// that runs once.
    fn begin_run(&mut self, vcpu: VcpuId, thread: HardwareThreadId) -> u64 {
        let ProcessorConfig { working_set, cache, reload, .. } = self.config;
        if working_set == 0 {
            return 0;
        }
        let since = self.threads[thread.index()].run_again(vcpu);
        let used = since.map(|others| working_set * (others as u64 + 1));
        let displaced = used.map_or(working_set, |used| used.saturating_sub(cache).min(working_set));
        reload * displaced / working_set
    }

    /// Takes `cycles` of `thread` at `now` for the hypervisor's work on behalf of `domain`. A running step ends that
    /// much later; an idle thread is busy that long. Returns the time the thread is free.
    ///
    /// Needs no visit: a virtual CPU that is to run has one outstanding or is woken.
    pub fn steal(
        &mut self,
        thread: HardwareThreadId,
        domain: DomainId,
        category: CycleCategory,
        cycles: u64,
        now: VirtualInstant,
    ) -> VirtualInstant {
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

    /// Returns a snapshot of the cycle ledger at `now`, with every thread accounted for up to that time.
    pub fn snapshot(&mut self, now: VirtualInstant) -> CycleLedgerSnapshot {
        let cycle = self.config.clock.cycle_at(now);
        let threads = 0..self.threads.len() as u16;
        threads.for_each(|thread| self.catch_up(HardwareThreadId(thread), cycle));
        let rests = self.vcpus.iter().filter_map(|vcpu| vcpu.unfinished).map(|unfinished| unfinished.cycles);
        let ahead = self.threads.iter().map(|thread| thread.position - cycle).chain(rests).sum();
        CycleLedgerSnapshot { ledger: self.ledger.clone(), cycle, ahead, hertz: self.config.clock.hertz() }
    }

    /// Returns the virtual CPU whose step runs on `thread` at `now`, if any.
    pub fn running(&self, thread: HardwareThreadId, now: VirtualInstant) -> Option<VcpuId> {
        let found = &self.threads[thread.index()];
        let current = found.current.as_ref()?;
        let over = current.took != EXECUTING && found.position <= self.config.clock.cycle_at(now);
        (!over).then_some(current.vcpu)
    }

    /// Returns `true` if `vcpu` is blocked: it neither runs nor is ready.
    ///
    /// A virtual CPU is not blocked yet during the step after which it blocks.
    pub fn is_blocked(&self, vcpu: VcpuId) -> bool {
        self.vcpus[vcpu.index()].state == VcpuState::Blocked
    }

    /// Returns the thread on which `vcpu` runs, waits or sleeps.
    pub fn home(&self, vcpu: VcpuId) -> HardwareThreadId {
        self.vcpus[vcpu.index()].home
    }

    /// Returns the domain of `vcpu`.
    pub fn domain_of(&self, vcpu: VcpuId) -> DomainId {
        self.vcpus[vcpu.index()].domain
    }

    /// Returns the domains in the order of [`DomainId::index`]; the hypervisor is first.
    pub fn domains(&self) -> &[Domain] {
        &self.domains
    }

    /// Returns the configuration of the machine's processors.
    pub fn config(&self) -> &ProcessorConfig {
        &self.config
    }

    /// Returns the number of processor threads.
    pub fn threads(&self) -> usize {
        self.threads.len()
    }

    /// Removes a completed step of a virtual CPU from its processor thread.
    fn retire(&mut self, thread: HardwareThreadId) {
        let Some(CurrentVcpuStep { vcpu, then, took }) = self.threads[thread.index()].current.take() else {
            return;
        };
        let state = &mut self.vcpus[vcpu.index()].state;
        if then == VcpuStepOutcome::Continue || *state == VcpuState::Running(true) {
            *state = VcpuState::Ready;
            self.scheduler.continues(thread, vcpu, took, false);
        } else {
            *state = VcpuState::Blocked;
            self.scheduler.blocked(thread, vcpu, took);
        }
    }

    /// Accounts for the idle cycles of `thread` up to `cycle`.
    #[inline]
    fn catch_up(&mut self, thread: HardwareThreadId, cycle: u64) {
        let found = &mut self.threads[thread.index()];
        if let Some(idle @ 1..) = cycle.checked_sub(found.position) {
            self.ledger.idle_for(thread.index(), idle);
            found.position = cycle;
        }
    }

    /// Returns the contention factor (permille) if a sibling of `thread` is busy in `cycle` or about to be.
    #[inline]
    fn contention(&self, thread: HardwareThreadId, cycle: u64) -> Option<u64> {
        let siblings = self.config.threads_per_core;
        let first = thread.0 / siblings * siblings;
        let busy = |sibling: u16| {
            let found = &self.threads[usize::from(sibling)];
            found.position > cycle
                || found.is_continuing()
                || self.scheduler.has_ready(HardwareThreadId(sibling))
        };
        let contended = (first..first + siblings).any(|sibling| sibling != thread.0 && busy(sibling));
        contended.then_some(self.config.contention_permille)
    }

    pub(super) fn visit_when_free(&mut self, thread: HardwareThreadId) -> ScheduledThreadVisit {
        let found = &mut self.threads[thread.index()];
        found.visit_cycle = Some(found.position);
        ScheduledThreadVisit { thread, at: self.config.clock.start_of(found.position) }
    }

    /// Hands a preempted virtual CPU back to the scheduler with the remainder of its step.
    pub(super) fn requeue(
        &mut self,
        thread: HardwareThreadId,
        vcpu: VcpuId,
        unfinished: PreemptedVcpuStep,
        ran: u64,
    ) {
        let found = &mut self.vcpus[vcpu.index()];
        let was_woken = found.state == VcpuState::Running(true);
        let then = if was_woken { VcpuStepOutcome::Continue } else { unfinished.then };
        (found.state, found.unfinished) = (VcpuState::Ready, Some(PreemptedVcpuStep { then, ..unfinished }));
        self.scheduler.continues(thread, vcpu, ran, true);
    }
}

/// Value of [`CurrentVcpuStep::took`] while the virtual CPU's step is being executed.
pub(super) const EXECUTING: u64 = u64::MAX;
