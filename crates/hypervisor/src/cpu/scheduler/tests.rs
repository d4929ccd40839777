//! The credit scheduler's rules, one each, on a small world whose cycle is a nanosecond.

use std::vec::Vec;

use super::{Clocks, Credit, Policy, Priority, Scheduler, Share};
use crate::cpu::{Config, Machine, Then, ThreadId, VcpuId};
use sim::Frequency;

const FIRST: ThreadId = ThreadId::new(0);
/// A cycle is a microsecond here.
const MS: u64 = 1_000;

fn credit(threads: usize, shares: &[Share]) -> (Credit, Vec<VcpuId>) {
    let clocks = Clocks { millisecond: MS, tick_ms: 10, first_tick: 10 * MS, first_accounting: 30 * MS };
    let mut credit = Credit::new(clocks);
    (0..threads).for_each(|_| credit.add_thread());
    let vcpus: Vec<_> = (0..shares.len() as u16).map(VcpuId).collect();
    for (vcpu, share) in vcpus.iter().zip(shares) {
        credit.add_vcpu(FIRST, *vcpu, *share);
    }
    (credit, vcpus)
}

fn share(weight: u16) -> Share {
    Share { weight, ..Share::default() }
}

#[test]
fn who_runs_at_a_tick_pays_for_all_of_it_and_loses_its_boost() {
    let (mut credit, ids) = credit(1, &[share(1), share(16)]);
    credit.woken(FIRST, ids[1]);
    assert_eq!(credit.pick(FIRST, 0), Some(ids[1]));
    credit.time(10 * MS, |_| Some(ids[1]));
    credit.woken(FIRST, ids[0]);
    assert_eq!(credit.priority(ids[0]), Priority::Boost);
    assert!(credit.cuts(FIRST, ids[1]), "who wakes with credits has the thread at once");
    credit.continues(FIRST, ids[1], 1, true);
    assert_eq!(credit.pick(FIRST, 11 * MS), Some(ids[0]));
    credit.time(20 * MS, |_| Some(ids[0]));
    assert_eq!(credit.priority(ids[0]), Priority::Under, "the boost is over");
    credit.time(30 * MS, |_| None);
    assert_eq!((credit.priority(ids[0]), credit.priority(ids[1])), (Priority::Over, Priority::Under));
    assert!(credit.cuts(FIRST, ids[0]), "who has credits goes first");
    credit.blocked(FIRST, ids[0], 1);
    credit.woken(FIRST, ids[0]);
    assert_eq!(credit.priority(ids[0]), Priority::Over, "no boost for who is over");
}

#[test]
fn a_real_time_virtual_cpu_goes_first_when_it_wakes_whatever_it_owes() {
    let (mut credit, ids) = credit(1, &[Share { real_time: true, ..share(1) }, share(16), share(16)]);
    credit.woken(FIRST, ids[0]);
    credit.pick(FIRST, 0);
    (1..=20).for_each(|tick| credit.time(tick * 10 * MS, |_| Some(ids[0])));
    credit.blocked(FIRST, ids[0], 1);
    assert_eq!(credit.priority(ids[0]), Priority::Over);
    credit.woken(FIRST, ids[1]);
    credit.woken(FIRST, ids[2]);
    credit.woken(FIRST, ids[0]);
    assert_eq!(credit.pick(FIRST, 200 * MS), Some(ids[0]));
}

#[test]
fn equals_have_slices_in_turn_and_one_alone_goes_on() {
    let (mut credit, ids) = credit(1, &[share(1), share(1)]);
    credit.woken(FIRST, ids[0]);
    assert_eq!(credit.pick(FIRST, 0), Some(ids[0]));
    for now in [10, 20, 30] {
        credit.time(now * MS, |_| Some(ids[0]));
        assert!(!credit.cuts(FIRST, ids[0]), "nobody waits");
    }
    let (mut credit, ids) = self::credit(1, &[share(1), share(1)]);
    ids.iter().for_each(|vcpu| credit.woken(FIRST, *vcpu));
    let mut now = 0;
    let mut turns = Vec::new();
    for _ in 0..4 {
        let running = credit.pick(FIRST, now).unwrap();
        turns.push(running.index());
        while !credit.cuts(FIRST, running) {
            now = credit.due().unwrap();
            credit.time(now, |_| Some(running));
        }
        credit.continues(FIRST, running, 1, true);
    }
    assert_eq!(turns, [0, 1, 0, 1]);
}

/// A machine with two threads, whose cycle is a microsecond.
fn machine(shares: &[Share]) -> (Machine, Vec<VcpuId>) {
    let clocks = Clocks { millisecond: MS, tick_ms: 10, first_tick: 10 * MS, first_accounting: 30 * MS };
    let config = Config {
        cores: 2,
        threads_per_core: 1,
        clock: Frequency::from_hertz(1_000_000),
        contention_permille: 1_000,
        switch: 0,
        refill: 0,
        displacement: 0,
        nested_permille: 1_000,
        slice: sim::Span::ZERO,
    };
    let mut machine = Machine::with_scheduler(config, Policy::Credit(Credit::new(clocks)));
    let domain = machine.add_domain(crate::domain::DomainKind::Hvm, "guest".into());
    let vcpus = shares.iter().map(|share| machine.add_vcpu_with(domain, FIRST, *share)).collect();
    (machine, vcpus)
}

fn ms(ms: u64) -> sim::Instant {
    sim::Instant::ZERO + sim::Span::from_millis(ms)
}

fn run(machine: &mut Machine, visit: crate::cpu::Visit, cycles: u64) -> (VcpuId, crate::cpu::Visit) {
    use crate::account::{Category, Charge};
    match machine.visit(visit.thread, visit.at) {
        crate::cpu::Next::Run(mut step) => {
            step.charge(Category::Kernel, cycles);
            let vcpu = step.vcpu();
            (vcpu, machine.finish(step, Then::Block))
        }
        next => panic!("{next:?}"),
    }
}

#[test]
fn a_step_that_is_cut_is_finished_later_and_paid_for_once() {
    let (mut machine, ids) = machine(&[share(1), share(1)]);
    let begins = machine.wake(ids[0], ms(0)).unwrap();
    let (first, ends) = run(&mut machine, begins, 20 * MS);
    assert_eq!((first, ends.at), (ids[0], ms(20)));
    let _ = machine.time(ms(10));
    let cut = machine.wake(ids[1], ms(12)).expect("a boost takes the thread");
    let (second, ends) = run(&mut machine, cut, 3 * MS);
    assert_eq!((second, cut.at, ends.at), (ids[1], ms(12), ms(15)));
    machine.snapshot(ms(13)).check().unwrap();
    assert!(matches!(machine.visit(FIRST, ms(20)), crate::cpu::Next::Idle), "asked for before the cut");
    let crate::cpu::Next::Later(rest) = machine.visit(FIRST, ms(15)) else { panic!("no rest") };
    assert_eq!(rest.at, ms(23), "the eight milliseconds that were left");
    machine.snapshot(ms(16)).check().unwrap();
    assert!(matches!(machine.visit(FIRST, ms(23)), crate::cpu::Next::Idle));
    assert!(machine.is_blocked(ids[0]));
    let books = machine.snapshot(ms(30));
    books.check().unwrap();
    assert_eq!(books.ledger().total(), 2 * 30 * MS);
}

#[test]
fn a_wake_up_while_a_cut_step_waits_is_not_lost() {
    let (mut machine, ids) = machine(&[share(1), share(1)]);
    let begins = machine.wake(ids[0], ms(0)).unwrap();
    let _ = run(&mut machine, begins, 20 * MS);
    let _ = machine.time(ms(10));
    let cut = machine.wake(ids[1], ms(12)).unwrap();
    let _ = run(&mut machine, cut, 3 * MS);
    assert!(machine.wake(ids[0], ms(13)).is_none());
    let crate::cpu::Next::Later(rest) = machine.visit(FIRST, ms(15)) else { panic!("no rest") };
    let crate::cpu::Next::Run(step) = machine.visit(FIRST, rest.at) else { panic!("it does not go on") };
    assert_eq!(step.vcpu(), ids[0]);
    let _ = machine.finish(step, Then::Block);
}

#[test]
fn who_wakes_goes_where_nobody_runs_if_it_may() {
    let both = Share { affinity: 0b11, ..share(1) };
    for (second, home) in [(both, 1), (share(1), 0)] {
        let (mut machine, ids) = machine(&[share(1), second]);
        let begins = machine.wake(ids[0], ms(0)).unwrap();
        let _ = run(&mut machine, begins, 20 * MS);
        let _ = machine.time(ms(10));
        let visit = machine.wake(ids[1], ms(11)).unwrap();
        assert_eq!((visit.thread.index(), machine.home(ids[1]).index()), (home, home));
    }
}

#[test]
fn an_idle_thread_takes_who_waits_elsewhere_at_the_next_tick() {
    let both = Share { affinity: 0b11, ..share(1) };
    let (mut machine, ids) = machine(&[share(1), both, both]);
    let all: Vec<_> = ids.iter().filter_map(|vcpu| machine.wake(*vcpu, ms(0))).collect();
    assert_eq!(all.iter().map(|visit| visit.thread.index()).collect::<Vec<_>>(), [0, 1], "the third waits");
    let _ = run(&mut machine, all[0], 25 * MS);
    let (_, over) = run(&mut machine, all[1], MS);
    assert_eq!(machine.home(ids[2]), FIRST);
    let (stolen, _) = run(&mut machine, over, MS);
    assert_eq!((stolen, machine.home(ids[2]).index()), (ids[2], 1));
}
