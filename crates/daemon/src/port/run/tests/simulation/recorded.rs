//! Lives that a fault has failed, as the simulation has shrunk them, and a test of the shrinking.

use super::families::SimulatedFamily;
use super::life::{SimulatedAction, SimulatedLife, SimulatedStep};
use super::{SHRINKING_LIVES, print_report, simulate};

/// Lives a recorded life, and checks that the host keeps its promises. `test` is the name of the test.
fn check_life(test: &str, families: Vec<SimulatedFamily>, steps: &[(SimulatedAction, usize, u64)]) {
    let steps = steps.iter().map(|(action, turns, seed)| SimulatedStep {
        action: *action,
        turns: *turns,
        seed: *seed,
    });
    let life = SimulatedLife { families, steps: steps.collect(), is_keeper_broken: false };
    simulate(&format!("port::run::tests::simulation::recorded::{test}"), || match life.run() {
        Ok(figures) => print_report(&figures.to_string()),
        Err(fault) => panic!("{fault}, after\n{}", life.shrink(SHRINKING_LIVES)),
    });
}

#[test]
fn packed_rings_continue_after_hand_overs_and_deaths() {
    use SimulatedAction::*;
    let family =
        |descriptors| SimulatedFamily::Virtio { packed: true, events: true, in_order: false, descriptors };
    let mut steps = vec![(Attach { guest: 0 }, 2, 1), (Attach { guest: 1 }, 2, 2)];
    for seed in 0..8 {
        steps.extend([
            (Burst { slow: None, rounds: 20, death: Some(7 * seed as usize) }, 0, seed),
            (Send { from: 0, to: 1, frames: 7, length: 60 }, 0, seed),
            (HandOver { succeeds: seed % 2 == 0 }, 1, seed),
        ]);
    }
    check_life("packed_rings_continue_after_hand_overs_and_deaths", vec![family(16), family(50)], &steps);
}

#[test]
fn fault_of_the_keeper_shrinks_to_few_steps() {
    simulate("port::run::tests::simulation::recorded::fault_of_the_keeper_shrinks_to_few_steps", || {
        let mut life = (0..)
            .map(SimulatedLife::draw)
            .find(|life| {
                let lossy = SimulatedLife { is_keeper_broken: true, ..(*life).clone() };
                lossy.run().is_err()
            })
            .unwrap();
        life.run().expect("the life succeeds with a keeper that keeps");
        life.is_keeper_broken = true;
        let shrunk = life.shrink(SHRINKING_LIVES);
        assert!(shrunk.run().is_err());
        let steps = shrunk.steps.len();
        assert!((1..10).contains(&steps), "{shrunk}");
        print_report(&format!("{steps} steps\n{shrunk}"));
    });
}
