//! Tests of the rules by which processor threads run virtual CPUs, one rule per test.

use std::vec::Vec;

use super::world::{MachineEvent, MachineHarness, busy, config, nanos, once, thread};
use crate::account::{CycleCategory, CycleSink};
use crate::cost::CostTable;
use crate::cpu::{HardwareThreadAction, HostMachine, ProcessorConfig, VcpuId, VcpuStep, VcpuStepOutcome};
use crate::domain::{DomainId, DomainKind};

/// Returns the steps that the machine has run: virtual CPU, start and end in nanoseconds.
fn steps(world: &MachineHarness) -> Vec<(usize, u64, u64)> {
    world.steps.iter().map(|(vcpu, from, to, _)| (vcpu.index(), from.nanos(), to.nanos())).collect()
}

#[test]
fn vcpu_step_occupies_its_thread_for_the_charged_cycles() {
    let mut world = MachineHarness::new(config(1, 1));
    let (domain, vcpu) = world.guest(0, once);
    world.at(500, MachineEvent::Wake(vcpu));
    let books = world.run(5_000);
    assert_eq!(steps(&world), [(0, 500, 1_500)]);
    assert_eq!(books.ledger().spent(domain, CycleCategory::Kernel), 1_000);
    assert_eq!(books.ledger().idle(0), 4_000);
    assert!(world.machine.is_blocked(vcpu));
}

#[test]
fn unused_cycles_of_every_cpu_thread_count_as_idle() {
    let mut world = MachineHarness::new(config(2, 2));
    let (_, vcpu) = world.guest(3, busy);
    world.at(0, MachineEvent::Wake(vcpu));
    let books = world.run(10_000);
    let idle: Vec<u64> = (0..4).map(|thread| books.ledger().idle(thread)).collect();
    assert_eq!(idle, [10_000, 10_000, 10_000, 0]);
    books.check().expect("the cycle accounts balance");
}

#[test]
fn woken_vcpu_waits_for_the_running_step() {
    let mut world = MachineHarness::new(config(1, 1));
    let [(_, first), (_, second)] = [world.guest(0, once), world.guest(0, once)];
    world.at(0, MachineEvent::Wake(first));
    world.at(300, MachineEvent::Wake(second));
    world.run(5_000);
    assert_eq!(steps(&world), [(0, 0, 1_000), (1, 1_000, 2_000)]);
}

#[test]
fn vcpu_wake_up_during_its_step_is_not_lost() {
    let mut world = MachineHarness::new(config(1, 1));
    let (_, vcpu) = world.guest(0, once);
    world.at(0, MachineEvent::Wake(vcpu));
    world.at(999, MachineEvent::Wake(vcpu));
    world.at(999, MachineEvent::Wake(vcpu));
    world.run(5_000);
    assert_eq!(steps(&world), [(0, 0, 1_000), (0, 1_000, 2_000)]);
}

#[test]
fn vcpu_step_without_charges_takes_one_cycle() {
    let mut world = MachineHarness::new(config(1, 1));
    let (domain, vcpu) = world.guest(0, |_, _| VcpuStepOutcome::Continue);
    world.at(0, MachineEvent::Wake(vcpu));
    let books = world.run(10);
    assert_eq!(books.ledger().spent(domain, CycleCategory::Kernel), 10);
}

#[test]
fn time_within_a_vcpu_step_includes_its_charged_cycles() {
    let mut machine = HostMachine::new(config(1, 1));
    let domain = machine.add_domain(DomainKind::Native, "native".into());
    let vcpu = machine.add_vcpu(domain, thread(0));
    assert!(machine.wake(vcpu, nanos(7)).is_some());
    let HardwareThreadAction::Run(mut step) = machine.visit(thread(0), nanos(7)) else {
        panic!("expected a step of the woken vCPU")
    };
    assert_eq!(machine.running(thread(0), nanos(7)), Some(vcpu));
    step.charge(CycleCategory::Driver, 250);
    assert_eq!((step.began(), step.now()), (nanos(7), nanos(257)));
    let visit = machine.finish(step, VcpuStepOutcome::Block);
    assert_eq!(visit.at, nanos(257));
    assert_eq!(machine.running(thread(0), nanos(256)), Some(vcpu));
    assert_eq!(machine.running(thread(0), nanos(257)), None);
}

#[test]
fn busy_smt_sibling_stretches_work_by_the_contention_factor() {
    let mut world = MachineHarness::new(config(1, 2));
    let [(_, first), (_, second)] = [world.guest(0, once), world.guest(1, once)];
    world.at(0, MachineEvent::Wake(first));
    world.at(400, MachineEvent::Wake(second));
    world.at(1_400, MachineEvent::Wake(first));
    world.at(5_000, MachineEvent::Wake(second));
    world.run(9_000);
    assert_eq!(steps(&world), [(0, 0, 1_000), (1, 400, 1_900), (0, 1_400, 2_900), (1, 5_000, 6_000)]);
}

#[test]
fn threads_of_other_cores_do_not_contend() {
    let mut world = MachineHarness::new(config(2, 2));
    for home in [0, 2] {
        let (_, vcpu) = world.guest(home, busy);
        world.at(0, MachineEvent::Wake(vcpu));
    }
    world.run(10_000);
    assert!(world.steps.iter().all(|(.., contended)| !contended));
}

#[test]
fn smt_sibling_thread_between_two_vcpu_steps_counts_as_busy() {
    let mut world = MachineHarness::new(config(1, 2));
    for home in [0, 1] {
        let (_, vcpu) = world.guest(home, busy);
        world.at(0, MachineEvent::Wake(vcpu));
    }
    world.run(20_000);
    assert!(world.steps.iter().all(|(.., contended)| *contended), "{:?}", world.steps);
}

#[test]
fn smt_contention_loses_no_fraction_of_a_cycle() {
    fn odd(step: &mut VcpuStep, turn: u64) -> VcpuStepOutcome {
        step.charge(CycleCategory::Kernel, 1 + turn % 2);
        step.charge(CycleCategory::Driver, 1);
        VcpuStepOutcome::Continue
    }
    let mut world = MachineHarness::new(ProcessorConfig { contention_permille: 1_333, ..config(1, 2) });
    let [(odd, first), (_, second)] = [world.guest(0, odd), world.guest(1, busy)];
    world.at(0, MachineEvent::Wake(second));
    world.at(0, MachineEvent::Wake(first));
    let books = world.run(40_000);
    let work: u64 =
        (0..world.steps.iter().filter(|step| step.0 == first).count() as u64).map(|turn| 2 + turn % 2).sum();
    let spent =
        [CycleCategory::Kernel, CycleCategory::Driver].map(|category| books.ledger().spent(odd, category));
    assert_eq!(spent.iter().sum::<u64>(), work * 1_333 / 1_000);
}

#[test]
fn interrupt_cycles_prolong_the_running_vcpu_step() {
    let mut world = MachineHarness::new(config(1, 1));
    let (_, vcpu) = world.guest(0, once);
    world.at(0, MachineEvent::Wake(vcpu));
    for at in [100, 1_050] {
        world.at(at, MachineEvent::Interrupt { thread: thread(0), cycles: 200 });
    }
    world.at(1_300, MachineEvent::Wake(vcpu));
    let books = world.run(5_000);
    assert_eq!(steps(&world), [(0, 0, 1_000), (0, 1_400, 2_400)]);
    assert_eq!(books.ledger().spent(DomainId::HYPERVISOR, CycleCategory::ExternalInterrupt), 400);
    books.check().expect("the cycle accounts balance");
}

#[test]
fn interrupt_on_an_idle_thread_delays_the_woken_vcpu() {
    let mut world = MachineHarness::new(config(1, 1));
    let (_, vcpu) = world.guest(0, once);
    world.at(100, MachineEvent::Interrupt { thread: thread(0), cycles: 200 });
    world.at(100, MachineEvent::Wake(vcpu));
    world.run(5_000);
    assert_eq!(steps(&world), [(0, 300, 1_300)]);
}

#[test]
fn context_switch_is_charged_only_when_the_vcpu_changes() {
    let mut world = MachineHarness::new(ProcessorConfig { switch: 40, refill: 60, ..config(1, 1) });
    let [(a, first), (b, second)] = [world.guest(0, once), world.guest(0, once)];
    for (at, vcpu) in [(0, first), (5_000, first), (10_000, second), (15_000, second), (20_000, first)] {
        world.at(at, MachineEvent::Wake(vcpu));
    }
    let books = world.run(25_000);
    let of = |domain| {
        [CycleCategory::Switch, CycleCategory::Refill].map(|category| books.ledger().spent(domain, category))
    };
    assert_eq!((of(a), of(b)), ([80, 120], [40, 60]));
}

/// Checks that a domain whose TLB entries a switch flushes loads all of them again, however soon it returns.
#[test]
fn flushed_tlb_entries_are_loaded_at_each_switch() {
    let mut world = MachineHarness::new(ProcessorConfig { refill: 60, displacement: 4_000, ..config(1, 1) });
    let [(a, first), (b, second)] = [world.guest(0, once), world.guest(0, once)];
    world.machine.flush_at_switches(a, 500);
    for (at, vcpu) in [(0, first), (5_000, second), (10_000, first)] {
        world.at(at, MachineEvent::Wake(vcpu));
    }
    let books = world.run(15_000);
    let refill = |domain| books.ledger().spent(domain, CycleCategory::Refill);
    assert_eq!([refill(a), refill(b)], [500 + 60 + 500 + 60 * 1_060 / 4_000, 60]);
}

/// Checks that a virtual CPU that soon returns to its thread finds most of its state still cached there.
#[test]
fn cache_refill_is_proportional_to_cycles_of_other_vcpus() {
    let mut world = MachineHarness::new(ProcessorConfig { refill: 60, displacement: 4_000, ..config(1, 1) });
    let [(a, first), (_, second)] = [world.guest(0, once), world.guest(0, once)];
    for (at, vcpu) in [(0, first), (5_000, second), (10_000, first)] {
        world.at(at, MachineEvent::Wake(vcpu));
    }
    let books = world.run(15_000);
    // The first refill is whole; for the second the other ran 1,000 cycles and its own refill of 60, 1,060 of
    // 4,000.
    assert_eq!(books.ledger().spent(a, CycleCategory::Refill), 60 + 60 * 1_060 / 4_000);
}

/// Checks the reload of working sets of 4 KiB from memory, with a cache of 10 KiB. Two others displace half of a working
/// set, three all of it. A virtual CPU that runs twice meanwhile counts once.
#[test]
fn distinct_vcpus_displace_a_working_set() {
    let reload = |since: &[usize]| {
        let config = ProcessorConfig { working_set: 4, cache: 10, reload: 600, ..config(1, 1) };
        let mut world = MachineHarness::new(config);
        let guests: Vec<_> = (0..4).map(|_| world.guest(0, once)).collect();
        for (turn, guest) in [0].iter().chain(since).chain(&[0]).enumerate() {
            world.at(turn as u64 * 5_000, MachineEvent::Wake(guests[*guest].1));
        }
        let books = world.run(50_000);
        // The first run reads the whole working set.
        books.ledger().spent(guests[0].0, CycleCategory::Refill) - 600
    };
    assert_eq!(reload(&[1]), 0);
    assert_eq!(reload(&[1, 2]), 300);
    assert_eq!(reload(&[1, 2, 1, 2, 1]), 300);
    assert_eq!(reload(&[1, 2, 3]), 600);
}

#[test]
fn eight_vcpus_share_a_thread_fairly() {
    let mut world = MachineHarness::new(config(1, 1));
    let guests: Vec<_> = (0..8).map(|_| world.guest(0, busy)).collect();
    guests.iter().for_each(|(_, vcpu)| world.at(0, MachineEvent::Wake(*vcpu)));
    let books = world.run(8_000_000);
    for (domain, _) in guests {
        let share = books.ledger().spent(domain, CycleCategory::Kernel);
        assert!(
            share.abs_diff(1_000_000) <= 10_000,
            "{share} differs from a fair share by more than a slice"
        );
    }
}

#[test]
fn vcpu_runs_until_its_time_slice_ends_or_it_blocks() {
    fn two_then_sleep(step: &mut VcpuStep, turn: u64) -> VcpuStepOutcome {
        step.charge(CycleCategory::Kernel, 1_000);
        if turn == 1 { VcpuStepOutcome::Block } else { VcpuStepOutcome::Continue }
    }
    let mut world = MachineHarness::new(config(1, 1));
    let [(_, first), (_, second)] = [world.guest(0, two_then_sleep), world.guest(0, busy)];
    world.at(0, MachineEvent::Wake(first));
    world.at(0, MachineEvent::Wake(second));
    world.at(2_500, MachineEvent::Wake(first));
    world.run(13_500);
    let who: Vec<usize> = world.steps.iter().map(|step| step.0.index()).collect();
    assert_eq!(who, [0, 0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0]);
}

#[test]
fn domain_busy_on_one_thread_has_cpu_usage_of_100_percent() {
    let mut world = MachineHarness::new(config(2, 1));
    let guests = [world.guest(0, busy), world.guest(1, once)];
    world.at(0, MachineEvent::Wake(guests[0].1));
    world.at(20_000, MachineEvent::Wake(guests[1].1));
    let warm = world.run(10_000);
    let usage = world.run(30_000).since(&warm);
    usage.check().expect("the cycle accounts balance");
    assert_eq!(usage.elapsed(), 20_000);
    assert!((usage.percent(usage.own(guests[0].0)) - 100.0).abs() < 1e-9);
    assert!((usage.percent(usage.own(guests[1].0)) - 5.0).abs() < 1e-9);
    assert_eq!(usage.own_of(world.machine.domains(), DomainKind::is_guest), 21_000);
    assert_eq!((usage.busy(), usage.idle(), usage.hypervisor()), (21_000, 19_000, 0));
    assert!((usage.per_second(usage.category(CycleCategory::Kernel)) - 1.05e9).abs() < 1.0);
}

#[test]
fn executing_vcpu_steps_does_not_allocate() {
    let mut machine = HostMachine::new(ProcessorConfig::from_table(&CostTable::nehalem(), 2, 2));
    let domain = machine.add_domain(DomainKind::Hvm, "guest".into());
    let vcpus: Vec<VcpuId> = (0..16).map(|index| machine.add_vcpu(domain, thread(index % 4))).collect();
    let allocated = allocation_counter::measure(|| {
        let mut now = nanos(0);
        for vcpu in vcpus.iter().cycle().take(1_000) {
            let woken = machine.wake(*vcpu, now);
            machine.steal(machine.home(*vcpu), domain, CycleCategory::Injection, 500, now);
            let mut visit = woken.expect("an idle thread is due a visit");
            loop {
                now = now.max(visit.at);
                visit = match machine.visit(visit.thread, now) {
                    HardwareThreadAction::Run(mut step) => {
                        step.charge(CycleCategory::Driver, 5_000);
                        machine.finish(step, VcpuStepOutcome::Block)
                    }
                    HardwareThreadAction::Later(visit) => visit,
                    HardwareThreadAction::Idle => break,
                };
            }
        }
    });
    assert_eq!(allocated.count_total, 0);
}
