//! Tests of the credit scheduler's rules, on machines with a clock cycle of a microsecond.

use std::vec::Vec;

use super::{
    CreditScheduler, CreditSchedulerClocks, RoundRobinScheduler, Scheduler, SchedulingParameters,
    SelectedScheduler, VcpuPriority, WakeCause,
};
use crate::cpu::{HardwareThreadId, HostMachine, ProcessorConfig, VcpuId, VcpuStepOutcome};
use sim::Frequency;

const FIRST: HardwareThreadId = HardwareThreadId::new(0);
/// Clock cycles in a millisecond: a cycle is a microsecond.
const MS: u64 = 1_000;

fn credit(threads: usize, shares: &[SchedulingParameters]) -> (CreditScheduler, Vec<VcpuId>) {
    let clocks = CreditSchedulerClocks {
        millisecond: MS,
        tick_ms: 10,
        first_tick: 10 * MS,
        first_accounting: 30 * MS,
    };
    let mut credit = CreditScheduler::new(clocks);
    (0..threads).for_each(|_| credit.add_thread());
    let vcpus: Vec<_> = (0..shares.len() as u16).map(VcpuId).collect();
    for (vcpu, share) in vcpus.iter().zip(shares) {
        credit.add_vcpu(FIRST, *vcpu, *share);
    }
    (credit, vcpus)
}

fn share(weight: u16) -> SchedulingParameters {
    SchedulingParameters { weight, ..SchedulingParameters::default() }
}

#[test]
fn scheduler_tick_debits_a_running_vcpu_and_ends_its_boost() {
    let (mut credit, ids) = credit(1, &[share(1), share(16)]);
    credit.woken(FIRST, ids[1], WakeCause::Interrupt);
    assert_eq!(credit.pick(FIRST, 0), Some(ids[1]));
    credit.advance(10 * MS, |_| Some(ids[1]));
    credit.woken(FIRST, ids[0], WakeCause::Interrupt);
    assert_eq!(credit.priority(ids[0]), VcpuPriority::Boost);
    assert!(credit.preempts(FIRST, ids[1]), "a vCPU woken with credits preempts");
    credit.continues(FIRST, ids[1], 1, true);
    assert_eq!(credit.pick(FIRST, 11 * MS), Some(ids[0]));
    credit.advance(20 * MS, |_| Some(ids[0]));
    assert_eq!(credit.priority(ids[0]), VcpuPriority::Under, "the tick ended the boost");
    credit.advance(30 * MS, |_| None);
    assert_eq!((credit.priority(ids[0]), credit.priority(ids[1])), (VcpuPriority::Over, VcpuPriority::Under));
    assert!(credit.preempts(FIRST, ids[0]), "a vCPU with credits preempts one without");
    credit.blocked(FIRST, ids[0], 1);
    credit.woken(FIRST, ids[0], WakeCause::Interrupt);
    assert_eq!(credit.priority(ids[0]), VcpuPriority::Over, "a vCPU without credits gets no boost");
}

#[test]
fn real_time_vcpu_preempts_when_woken_even_without_credits() {
    let (mut credit, ids) =
        credit(1, &[SchedulingParameters { real_time: true, ..share(1) }, share(16), share(16)]);
    credit.woken(FIRST, ids[0], WakeCause::Interrupt);
    credit.pick(FIRST, 0);
    (1..=20).for_each(|tick| credit.advance(tick * 10 * MS, |_| Some(ids[0])));
    credit.blocked(FIRST, ids[0], 1);
    assert_eq!(credit.priority(ids[0]), VcpuPriority::Over);
    credit.woken(FIRST, ids[1], WakeCause::Interrupt);
    credit.woken(FIRST, ids[2], WakeCause::Interrupt);
    credit.woken(FIRST, ids[0], WakeCause::Interrupt);
    assert_eq!(credit.pick(FIRST, 200 * MS), Some(ids[0]));
    credit.blocked(FIRST, ids[0], 1);
    credit.woken(FIRST, ids[0], WakeCause::AccessDone);
    assert_ne!(credit.pick(FIRST, 201 * MS), Some(ids[0]), "an answered access gives no precedence");
}

#[test]
fn vcpus_of_equal_priority_alternate_by_time_slice() {
    let (mut credit, ids) = credit(1, &[share(1), share(1)]);
    credit.woken(FIRST, ids[0], WakeCause::Interrupt);
    assert_eq!(credit.pick(FIRST, 0), Some(ids[0]));
    for now in [10, 20, 30] {
        credit.advance(now * MS, |_| Some(ids[0]));
        assert!(!credit.preempts(FIRST, ids[0]), "no virtual CPU is waiting");
    }
    let (mut credit, ids) = self::credit(1, &[share(1), share(1)]);
    ids.iter().for_each(|vcpu| credit.woken(FIRST, *vcpu, WakeCause::Interrupt));
    let mut now = 0;
    let mut turns = Vec::new();
    for _ in 0..4 {
        let running = credit.pick(FIRST, now).unwrap();
        turns.push(running.index());
        while !credit.preempts(FIRST, running) {
            now = credit.due().unwrap();
            credit.advance(now, |_| Some(running));
        }
        credit.continues(FIRST, running, 1, true);
    }
    assert_eq!(turns, [0, 1, 0, 1]);
}

/// Creates a machine with two threads, a clock cycle of a microsecond, and a virtual CPU for each of `shares`.
fn machine(shares: &[SchedulingParameters]) -> (HostMachine, Vec<VcpuId>) {
    let clocks = CreditSchedulerClocks {
        millisecond: MS,
        tick_ms: 10,
        first_tick: 10 * MS,
        first_accounting: 30 * MS,
    };
    let config = ProcessorConfig {
        cores: 2,
        threads_per_core: 1,
        clock: Frequency::from_hertz(1_000_000),
        contention_permille: 1_000,
        switch: 0,
        refill: 0,
        displacement: 0,
        working_set: 0,
        cache: 0,
        reload: 0,
        slice: sim::VirtualDuration::ZERO,
    };
    let mut machine =
        HostMachine::with_scheduler(config, SelectedScheduler::Credit(CreditScheduler::new(clocks)));
    let domain = machine.add_domain(crate::domain::DomainKind::Hvm, "guest".into());
    let vcpus = shares.iter().map(|share| machine.add_vcpu_with(domain, FIRST, *share)).collect();
    (machine, vcpus)
}

fn ms(ms: u64) -> sim::VirtualInstant {
    sim::VirtualInstant::ZERO + sim::VirtualDuration::from_millis(ms)
}

fn run(
    machine: &mut HostMachine,
    visit: crate::cpu::ScheduledThreadVisit,
    cycles: u64,
) -> (VcpuId, crate::cpu::ScheduledThreadVisit) {
    use crate::account::{CycleCategory, CycleSink};
    match machine.visit(visit.thread, visit.at) {
        crate::cpu::HardwareThreadAction::Run(mut step) => {
            step.charge(CycleCategory::Kernel, cycles);
            let vcpu = step.vcpu();
            (vcpu, machine.finish(step, VcpuStepOutcome::Block))
        }
        next => panic!("{next:?}"),
    }
}

#[test]
fn preempted_vcpu_step_is_resumed_and_charged_once() {
    let (mut machine, ids) = machine(&[share(1), share(1)]);
    let begins = machine.wake(ids[0], ms(0)).unwrap();
    let (first, ends) = run(&mut machine, begins, 20 * MS);
    assert_eq!((first, ends.at), (ids[0], ms(20)));
    let _ = machine.run_scheduler(ms(10));
    let cut = machine.wake(ids[1], ms(12)).expect("expected a visit for the boosted vCPU");
    let (second, ends) = run(&mut machine, cut, 3 * MS);
    assert_eq!((second, cut.at, ends.at), (ids[1], ms(12), ms(15)));
    machine.snapshot(ms(13)).check().unwrap();
    assert!(
        matches!(machine.visit(FIRST, ms(20)), crate::cpu::HardwareThreadAction::Idle),
        "a visit requested before the preemption is ignored"
    );
    let crate::cpu::HardwareThreadAction::Later(rest) = machine.visit(FIRST, ms(15)) else {
        panic!("expected the remainder of the preempted step")
    };
    assert_eq!(rest.at, ms(23), "the step had eight milliseconds left");
    machine.snapshot(ms(16)).check().unwrap();
    assert!(matches!(machine.visit(FIRST, ms(23)), crate::cpu::HardwareThreadAction::Idle));
    assert!(machine.is_blocked(ids[0]));
    let books = machine.snapshot(ms(30));
    books.check().unwrap();
    assert_eq!(books.ledger().total(), 2 * 30 * MS);
}

#[test]
fn vcpu_wake_up_during_a_preempted_step_is_not_lost() {
    let (mut machine, ids) = machine(&[share(1), share(1)]);
    let begins = machine.wake(ids[0], ms(0)).unwrap();
    let _ = run(&mut machine, begins, 20 * MS);
    let _ = machine.run_scheduler(ms(10));
    let cut = machine.wake(ids[1], ms(12)).unwrap();
    let _ = run(&mut machine, cut, 3 * MS);
    assert!(machine.wake(ids[0], ms(13)).is_none());
    let crate::cpu::HardwareThreadAction::Later(rest) = machine.visit(FIRST, ms(15)) else {
        panic!("expected the remainder of the preempted step")
    };
    let crate::cpu::HardwareThreadAction::Run(step) = machine.visit(FIRST, rest.at) else {
        panic!("expected the rest of the preempted step")
    };
    assert_eq!(step.vcpu(), ids[0]);
    let _ = machine.finish(step, VcpuStepOutcome::Block);
}

#[test]
fn woken_vcpu_moves_to_an_idle_cpu_thread_of_its_affinity() {
    let both = SchedulingParameters { affinity: 0b11, ..share(1) };
    for (second, home) in [(both, 1), (share(1), 0)] {
        let (mut machine, ids) = machine(&[share(1), second]);
        let begins = machine.wake(ids[0], ms(0)).unwrap();
        let _ = run(&mut machine, begins, 20 * MS);
        let _ = machine.run_scheduler(ms(10));
        let visit = machine.wake(ids[1], ms(11)).unwrap();
        assert_eq!((visit.thread.index(), machine.home(ids[1]).index()), (home, home));
    }
}

#[test]
fn idle_cpu_thread_takes_a_waiting_vcpu_at_the_next_tick() {
    let both = SchedulingParameters { affinity: 0b11, ..share(1) };
    let (mut machine, ids) = machine(&[share(1), both, both]);
    let all: Vec<_> = ids.iter().filter_map(|vcpu| machine.wake(*vcpu, ms(0))).collect();
    assert_eq!(
        all.iter().map(|visit| visit.thread.index()).collect::<Vec<_>>(),
        [0, 1],
        "the third vCPU waits"
    );
    let _ = run(&mut machine, all[0], 25 * MS);
    let (_, over) = run(&mut machine, all[1], MS);
    assert_eq!(machine.home(ids[2]), FIRST);
    let (stolen, _) = run(&mut machine, over, MS);
    assert_eq!((stolen, machine.home(ids[2]).index()), (ids[2], 1));
}

const SECOND: HardwareThreadId = HardwareThreadId::new(1);

/// Advances the credit scheduler by ten milliseconds per entry, which names the virtual CPUs running on both threads.
fn ticks(credit: &mut CreditScheduler, from: u64, running: &[[Option<VcpuId>; 2]]) {
    for (tick, on) in (from + 1..).zip(running) {
        credit.advance(tick * 10 * MS, |thread| on[thread.index()]);
    }
}

/// Returns the scheduling priorities of the first two virtual CPUs.
fn priorities(credit: &CreditScheduler) -> [VcpuPriority; 2] {
    [0, 1].map(|n| credit.priority(VcpuId(n)))
}

#[test]
fn scheduler_tick_debits_100_credits_from_the_running_vcpu() {
    let (mut credit, ids) = credit(1, &[share(1), share(1)]);
    let [one, other] = [Some(ids[0]), Some(ids[1])];
    ticks(&mut credit, 0, &[[one, None], [one, None], [other, None]]);
    assert_eq!(
        priorities(&credit),
        [VcpuPriority::Over, VcpuPriority::Under],
        "150 credits each after debits of 200 and 100"
    );
}

#[test]
fn vcpu_that_used_its_300_credits_exactly_keeps_priority_under() {
    let (mut credit, ids) = credit(2, &[share(1), share(1)]);
    ticks(&mut credit, 0, &[[Some(ids[0]), Some(ids[1])]; 3]);
    assert_eq!(priorities(&credit), [VcpuPriority::Under; 2], "300 credits each after debits of 300");
}

/// Infers from priorities that a virtual CPU's credits, which are not visible, are reset above the limit. Its weight is
/// so small that another virtual CPU gets all distributed credits.
#[test]
fn vcpu_credits_are_reset_to_zero_only_above_300() {
    let (mut credit, ids) = credit(2, &[share(1), share(u16::MAX)]);
    let [light, heavy] = [Some(ids[0]), Some(ids[1])];
    ticks(&mut credit, 0, &[[light, None], [None; 2], [None; 2]]);
    ticks(&mut credit, 3, &[[light, heavy]; 3]);
    assert_eq!(
        credit.priority(ids[0]),
        VcpuPriority::Over,
        "500 credits exceed the bound of 300: reset to 0, then 300 debited"
    );

    let (mut credit, ids) = self::credit(1, &[share(1), share(u16::MAX)]);
    let [light, heavy] = [Some(ids[0]), Some(ids[1])];
    ticks(&mut credit, 0, &[[light, None], [None; 2], [None; 2]]);
    ticks(&mut credit, 3, &[[light, None], [light, None], [None; 2]]);
    ticks(&mut credit, 6, &[[light, None], [light, None], [heavy, None]]);
    assert_eq!(credit.priority(ids[0]), VcpuPriority::Under, "200 credits, then 300, then 100");
}

#[test]
fn vcpu_is_stolen_only_by_its_affine_or_first_thread() {
    let pinned = SchedulingParameters { affinity: 0, ..share(1) };
    let (mut credit, ids) = credit(2, &[pinned]);
    credit.woken(FIRST, ids[0], WakeCause::Interrupt);
    assert!(!credit.could_steal(SECOND));
    credit.add_vcpu(SECOND, VcpuId(1), SchedulingParameters { affinity: 0b01, ..share(1) });
    credit.woken(FIRST, VcpuId(1), WakeCause::Interrupt);
    assert!(credit.could_steal(SECOND), "the vCPU's first thread is the second");
    assert_eq!(credit.pick(SECOND, 0), Some(VcpuId(1)));
}

#[test]
fn round_robin_scheduler_sets_no_timer_and_steals_no_vcpu() {
    let mut round = SelectedScheduler::RoundRobin(RoundRobinScheduler::new(100));
    (0..2).for_each(|_| round.add_thread());
    round.add_vcpu(FIRST, VcpuId(0), SchedulingParameters { affinity: 0b11, ..share(1) });
    round.woken(FIRST, VcpuId(0), WakeCause::Interrupt);
    assert_eq!((round.due(), round.could_steal(SECOND), round.has_ready(FIRST)), (None, false, true));
    let (mut credit, ids) = credit(2, &[SchedulingParameters { affinity: 0b11, ..share(1) }]);
    credit.woken(FIRST, ids[0], WakeCause::Interrupt);
    let credit = SelectedScheduler::Credit(credit);
    assert_eq!((credit.due(), credit.could_steal(SECOND)), (Some(10 * MS), true));
}
