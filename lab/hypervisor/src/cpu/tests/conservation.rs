//! Property tests: every processor cycle is accounted for once, and a simulation is reproducible.

use std::vec::Vec;

use proptest::collection::vec;
use proptest::prelude::{Strategy, any, prop_oneof, proptest};
use sim::{Frequency, RandomStream};

use super::world::{MachineEvent, MachineHarness, config, thread};
use crate::account::{CycleCategory, CycleSink};
use crate::cpu::{ProcessorConfig, VcpuStep, VcpuStepOutcome};

/// Test program of a virtual CPU that charges pseudo-random cycles in random categories. The step's number alone
/// determines both.
fn mixture(step: &mut VcpuStep, turn: u64) -> VcpuStepOutcome {
    let mut chance = RandomStream::named(turn, "mixture");
    for _ in 0..chance.below(5) {
        let category = CycleCategory::ALL[chance.below(CycleCategory::COUNT as u64) as usize];
        let cycles = chance.below(4_000);
        step.charge(category, cycles);
    }
    if chance.chance(600) { VcpuStepOutcome::Block } else { VcpuStepOutcome::Continue }
}

#[derive(Clone, Debug)]
enum MachineStimulus {
    Wake { at: u64, vcpu: usize },
    Interrupt { at: u64, thread: u16, cycles: u64 },
}

fn act() -> impl Strategy<Value = MachineStimulus> {
    let at = 0..200_000_u64;
    prop_oneof![
        (at.clone(), any::<usize>()).prop_map(|(at, vcpu)| MachineStimulus::Wake { at, vcpu }),
        (at, any::<u16>(), 0..9_000_u64).prop_map(|(at, thread, cycles)| MachineStimulus::Interrupt {
            at,
            thread,
            cycles
        }),
    ]
}

fn world(config: ProcessorConfig, vcpus: u16, acts: &[MachineStimulus]) -> MachineHarness {
    let threads = config.cores * config.threads_per_core;
    let mut world = MachineHarness::new(config);
    let all: Vec<_> = (0..vcpus).map(|index| world.guest(index % threads, mixture).1).collect();
    for act in acts {
        match *act {
            MachineStimulus::Wake { at, vcpu } => world.at(at, MachineEvent::Wake(all[vcpu % all.len()])),
            MachineStimulus::Interrupt { at, thread: index, cycles } => {
                world.at(at, MachineEvent::Interrupt { thread: thread(index % threads), cycles });
            }
        }
    }
    world
}

proptest! {
    #[test]
    fn every_processor_cycle_is_accounted_for_once(
        (cores, siblings, vcpus) in (1..4_u16, 1..3_u16, 1..12_u16),
        hertz in 900_000_000..3_900_000_000_u64,
        contention_permille in 1_000..2_000_u64,
        acts in vec(act(), 0..200),
        mut stops in vec(0..300_000_u64, 1..6),
    ) {
        let clock = Frequency::from_hertz(hertz);
        let config = ProcessorConfig { clock, contention_permille, switch: 71, refill: 13, ..config(cores, siblings) };
        let mut world = world(config, vcpus, &acts);
        stops.sort_unstable();
        let mut earlier = world.run(0);
        for stop in stops {
            let books = world.run(stop);
            books.check().unwrap();
            let usage = books.since(&earlier);
            usage.check().unwrap();
            assert_eq!(usage.busy() + usage.idle(), usage.ledger().total());
            earlier = books;
        }
    }

    #[test]
    fn cpu_thread_runs_one_step_at_a_time(acts in vec(act(), 0..200)) {
        let mut world = world(config(2, 2), 9, &acts);
        world.run(1_000_000);
        for home in 0..4 {
            let machine = &world.machine;
            let steps = world.steps.iter().filter(|step| machine.home(step.0) == thread(home));
            let times: Vec<_> = steps.flat_map(|(_, from, to, _)| [*from, *to]).collect();
            assert!(times.is_sorted(), "{times:?}");
        }
    }

    #[test]
    fn equal_seed_and_operations_give_equal_cpu_traces(acts in vec(act(), 1..200)) {
        let hash = || {
            let mut world = world(config(2, 2), 9, &acts);
            let books = world.run(300_000);
            (world.trace.hash(), world.trace.events(), books)
        };
        assert_eq!(hash(), hash());
    }
}
