//! Recorded lives of virtio guests whose packed rings have to continue where they were.

use super::super::conditions::LifeConditions;
use super::super::families::SimulatedFamily;
use super::super::life::{SimulatedAction, SimulatedLife, SimulatedStep};
use super::super::{print_report, simulate};
use super::check_life;

/// Path of this module's tests.
const HERE: &str = "port::run::tests::simulation::recorded::rings";

/// Returns a guest with packed rings, whose packets come in one order.
fn packed(events: bool, in_order: bool, descriptors: u16) -> SimulatedFamily {
    SimulatedFamily::Virtio { packed: true, events, in_order, offloads: false, descriptors }
}

#[test]
fn packed_rings_continue_after_hand_overs_and_deaths() {
    use SimulatedAction::*;
    let mut steps = vec![(Attach { guest: 0 }, 2, 1), (Attach { guest: 1 }, 2, 2)];
    for seed in 0..8 {
        steps.extend([
            (Burst { slow: None, rounds: 20, death: Some(7 * seed as usize) }, 0, seed),
            (Send { from: 0, to: 1, frames: 7, length: 60 }, 0, seed),
            (HandOver { succeeds: seed % 2 == 0 }, 1, seed),
        ]);
    }
    check_life(
        "rings::packed_rings_continue_after_hand_overs_and_deaths",
        false,
        vec![packed(true, false, 16), packed(true, false, 50)],
        &steps,
    );
}

#[test]
fn paused_packed_ring_continues_after_a_death() {
    use SimulatedAction::*;
    check_life(
        "rings::paused_packed_ring_continues_after_a_death",
        true,
        vec![packed(true, true, 50)],
        &[
            (Attach { guest: 0 }, 5, 9940797938968371613),
            (Remap { guest: 0 }, 1, 273803998889578667),
            (Send { from: 0, to: 1, frames: 5, length: 470 }, 0, 14917219545138390966),
            (Remap { guest: 0 }, 5, 985024932869859211),
            (Burst { slow: None, rounds: 55, death: Some(36) }, 0, 11240345898000315466),
        ],
    );
}

/// The front end knows the position of a stopped ring only from the answer.
#[test]
fn death_in_a_pause_loses_no_position() {
    use SimulatedAction::*;
    simulate(&format!("{HERE}::death_in_a_pause_loses_no_position"), || {
        for moments in 0..60 {
            let actions = [
                Attach { guest: 0 },
                Attach { guest: 1 },
                Send { from: 1, to: 0, frames: 3, length: 406 },
                Send { from: 0, to: 1, frames: 3, length: 406 },
                Remap { guest: 0 },
                Die { moments },
                Remap { guest: 0 },
                Burst { slow: None, rounds: 20, death: None },
            ];
            let step = |action| SimulatedStep { action, turns: 3, seed: 7 };
            let life = SimulatedLife {
                families: vec![packed(false, true, 50), packed(false, true, 16)],
                has_uplink: false,
                steps: actions.map(step).to_vec(),
                is_keeper_broken: false,
                conditions: LifeConditions::default(),
            };
            let lived = life.run();
            assert!(lived.is_ok(), "death after {moments} moments: {lived:?}");
        }
        print_report("60 lives");
    });
}
