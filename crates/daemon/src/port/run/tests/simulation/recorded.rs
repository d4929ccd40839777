//! Lives that a fault has failed, as the simulation has shrunk them, and a test of the shrinking.

mod rings;
mod segments;

use super::conditions::LifeConditions;
use super::families::SimulatedFamily;
use super::life::{SimulatedAction, SimulatedLife, SimulatedStep};
use super::policy::{SimulatedIps, SimulatedPolicy};
use super::{SHRINKING_LIVES, print_report, simulate};
use crate::store::faulty_disk::DiskFault;

/// Lives a recorded life, and checks that the host keeps its promises. `test` is the name of the test.
fn check_life(
    test: &str,
    has_uplink: bool,
    families: Vec<SimulatedFamily>,
    steps: &[(SimulatedAction, usize, u64)],
) {
    check_life_with(test, LifeConditions::default(), has_uplink, families, steps);
}

/// Lives a recorded life with conditions, as [`check_life`] does.
fn check_life_with(
    test: &str,
    conditions: LifeConditions,
    has_uplink: bool,
    families: Vec<SimulatedFamily>,
    steps: &[(SimulatedAction, usize, u64)],
) {
    let steps = steps.iter().map(|(action, turns, seed)| SimulatedStep {
        action: *action,
        turns: *turns,
        seed: *seed,
    });
    let life =
        SimulatedLife { families, has_uplink, conditions, steps: steps.collect(), is_keeper_broken: false };
    simulate(&format!("port::run::tests::simulation::recorded::{test}"), || match life.run() {
        Ok(figures) => print_report(&figures.to_string()),
        Err(fault) => panic!("{fault}, after\n{}", life.shrink(&fault, SHRINKING_LIVES)),
    });
}

/// A refused change may stay in the state file, which the successor reads. It is in force there, a quarantine too.
#[test]
fn quarantine_in_the_state_file_applies_after_a_hand_over() {
    use SimulatedAction::*;
    let policy = SimulatedPolicy { is_quarantined: true, ..SimulatedPolicy::default() };
    check_life(
        "quarantine_in_the_state_file_applies_after_a_hand_over",
        true,
        vec![SimulatedFamily::I82576; 4],
        &[
            (Upgrade { guest: 3, waits: 13, succeeds: true }, 2, 6855366057627520326),
            (Attach { guest: 0 }, 3, 2490832574917642844),
            (SetPolicy { guest: 0, policy, disk: Some(DiskFault::ReadOnly(7)) }, 3, 16919380081799639796),
            (Upgrade { guest: 2, waits: 11, succeeds: true }, 3, 15961410202356707700),
            (Send { from: 0, to: 3, frames: 7, length: 738 }, 0, 6035136766779276381),
        ],
    );
}

/// A refused release may stay in the state file, which the successor reads. The VF is free there, although the card's saved state
/// has the quarantine.
#[test]
fn release_in_the_state_file_applies_after_a_death() {
    use SimulatedAction::*;
    let quarantined = SimulatedPolicy { is_quarantined: true, ..SimulatedPolicy::default() };
    let released = SimulatedPolicy { vlan: 8, ..SimulatedPolicy::default() };
    check_life(
        "release_in_the_state_file_applies_after_a_death",
        true,
        vec![SimulatedFamily::I82576],
        &[
            (SetPolicy { guest: 0, policy: quarantined, disk: None }, 5, 8179356464510402308),
            (
                SetPolicy { guest: 0, policy: released, disk: Some(DiskFault::ReadOnly(7)) },
                5,
                13635009862778121838,
            ),
            (Attach { guest: 0 }, 4, 15261033976815427816),
            (Burst { slow: None, rounds: 43, death: Some(48) }, 5, 724560403799012171),
        ],
    );
}

/// A hand-over loses the frames in the wire of the process before.
#[test]
fn frames_in_the_wire_are_lost_with_its_process() {
    use SimulatedAction::*;
    check_life(
        "frames_in_the_wire_are_lost_with_its_process",
        true,
        vec![SimulatedFamily::Avf; 3],
        &[
            (Attach { guest: 1 }, 4, 8373952641167201223),
            (Burst { slow: Some(1), rounds: 6, death: None }, 3, 8885570012663649784),
            (Deliver { station: 0, guest: 1, frames: 6, length: 1153 }, 0, 11000732924772901147),
            (HandOver { succeeds: true }, 4, 10685808168604987674),
            (Burst { slow: Some(2), rounds: 33, death: None }, 2, 13268770794769046947),
        ],
    );
}

/// A refused change may stay in the state file, which the successor reads. It is in force there, also if it is back to the
/// configuration with which the process has begun.
#[test]
fn refused_change_back_applies_after_a_death() {
    use SimulatedAction::*;
    let before = SimulatedPolicy { vlan: 8, has_second_mac: true, ..SimulatedPolicy::default() };
    let refused = (SimulatedPolicy::default(), Some(DiskFault::ReadOnly(7)));
    let split = |descriptors, events, in_order| SimulatedFamily::Virtio {
        packed: false,
        events,
        in_order,
        offloads: false,
        descriptors,
    };
    let packed = SimulatedFamily::Virtio {
        packed: true,
        events: true,
        in_order: true,
        offloads: false,
        descriptors: 64,
    };
    let some = [split(256, false, true), split(256, true, false), split(64, false, false)];
    let families = [vec![SimulatedFamily::Avf, packed], some.to_vec(), vec![SimulatedFamily::Avf]].concat();
    check_life(
        "refused_change_back_applies_after_a_death",
        false,
        [families, vec![split(16, false, false)]].concat(),
        &[
            (SetPolicy { guest: 6, policy: before, disk: None }, 0, 12297378554830688304),
            (SetPolicy { guest: 6, policy: refused.0, disk: refused.1 }, 0, 15575432815064023777),
            (Die { moments: 37 }, 1, 7832351864780061063),
            (StickWorker { guest: 4, neighbour: 4, clients: 44, hands_over: false }, 3, 10697700196437043531),
        ],
    );
}

/// A client is not refused while only clients that have hung up are before it.
#[test]
fn client_after_two_hung_up_ones_is_served() {
    use SimulatedAction::*;
    check_life(
        "client_after_two_hung_up_ones_is_served",
        false,
        vec![SimulatedFamily::Avf],
        &[
            (Attach { guest: 0 }, 3, 9402602356544509327),
            (Intrude { guest: 0, messages: 29 }, 2, 8324829910825650250),
            (Intrude { guest: 0, messages: 47 }, 5, 10466185333789583419),
            (Vanish { guest: 0 }, 1, 14075403634599500721),
            (Attach { guest: 0 }, 4, 7883017811585579587),
        ],
    );
}

/// A frame waits in its ring for a moderated interrupt when a change of the port VLAN resets the VF. The interrupt is not lost: a
/// driver throws the ring away.
#[test]
fn reset_drops_the_interrupt_of_a_received_frame() {
    use SimulatedAction::*;
    let policy = SimulatedPolicy { vlan: 7, ips: SimulatedIps::Foreign, ..SimulatedPolicy::default() };
    check_life(
        "reset_drops_the_interrupt_of_a_received_frame",
        false,
        vec![SimulatedFamily::Avf; 3],
        &[
            (Attach { guest: 2 }, 1, 12324203779312709573),
            (Attach { guest: 0 }, 3, 9050479011684850935),
            (Flood { from: 2, to: 0, rate: 100 }, 1, 11646729132557764399),
            (Attach { guest: 1 }, 5, 9960977648471726958),
            (Send { from: 2, to: 0, frames: 3, length: 518 }, 3, 5477954966956551312),
            (Send { from: 0, to: 2, frames: 6, length: 999 }, 2, 15694849649776557046),
            (SetPolicy { guest: 0, policy, disk: None }, 0, 14743004519474732930),
            (Burst { slow: None, rounds: 4, death: None }, 0, 13960901680985237734),
        ],
    );
}

/// A virtio device without a link drops a packet of several segments unread, and counts it as one frame.
#[test]
fn packet_dropped_without_a_link_counts_as_one_frame() {
    use SimulatedAction::*;
    let family = |packed, events, descriptors| SimulatedFamily::Virtio {
        packed,
        events,
        in_order: true,
        offloads: true,
        descriptors,
    };
    check_life(
        "packet_dropped_without_a_link_counts_as_one_frame",
        true,
        vec![family(false, false, 64), family(true, true, 16), family(true, false, 16)],
        &[
            (Unplug, 2, 2132842973615922486),
            (Attach { guest: 0 }, 0, 16146440911535929058),
            (Burst { slow: None, rounds: 32, death: None }, 1, 7314862073187685386),
            (SendTcp { from: 0, to: 5, packets: 1, payload: 2356, mss: 1448 }, 1, 17573297329131697971),
            (Burst { slow: None, rounds: 40, death: None }, 1, 11490790422983186090),
        ],
    );
}

/// A hostile guest that chooses its addresses asks for one that no other has, and sends bytes of its memory from it.
#[test]
fn guest_that_chooses_may_have_any_free_address() {
    use SimulatedAction::*;
    check_life(
        "guest_that_chooses_may_have_any_free_address",
        true,
        vec![SimulatedFamily::I82576; 2],
        &[
            (Attach { guest: 1 }, 1, 7631030030523113515),
            (Send { from: 1, to: 4, frames: 3, length: 257 }, 2, 5303891135368474399),
            (Claim { guest: 1, misdeeds: 10 }, 5, 8688940260332580078),
        ],
    );
}

/// The host dies while the driver of a VF reads its address out of the mailbox: the driver takes no half of it.
#[test]
fn death_amid_a_mailbox_reply_tears_no_address() {
    use SimulatedAction::*;
    check_life(
        "death_amid_a_mailbox_reply_tears_no_address",
        true,
        vec![SimulatedFamily::I82576; 5],
        &[
            (Attach { guest: 3 }, 3, 16072388666045980274),
            (Claim { guest: 0, misdeeds: 10 }, 0, 15827450042565943543),
            (Upgrade { guest: 0, waits: 30, succeeds: true }, 3, 17034605686959173052),
            (Send { from: 0, to: 6, frames: 1, length: 365 }, 1, 12003126420169852304),
        ],
    );
}

/// The state file holds a refused change. The host dies after its port has checked a removal: the successor, which has found the
/// refused change, does the removal with it.
#[test]
fn removal_after_a_death_keeps_the_settings_found() {
    use SimulatedAction::*;
    let policy = SimulatedPolicy { rate: 40, ..SimulatedPolicy::default() };
    check_life(
        "removal_after_a_death_keeps_the_settings_found",
        false,
        vec![SimulatedFamily::Avf; 3],
        &[
            (SetPolicy { guest: 0, policy, disk: Some(DiskFault::ReadOnly(7)) }, 3, 13200588820503172820),
            (ReplaceVf { frames: 4, death: Some(4), hands_over: true }, 4, 12039936553603153255),
        ],
    );
}

/// The host dies as it opens the socket of a VF that is added, before it keeps the socket.
#[test]
fn death_as_a_vf_is_added_is_a_death_of_the_host() {
    use SimulatedAction::*;
    check_life_with(
        "death_as_a_vf_is_added_is_a_death_of_the_host",
        LifeConditions { program: Some(2), maps_registers: false },
        false,
        vec![SimulatedFamily::I82576; 3],
        &[(ReplaceVf { frames: 5, death: Some(71), hands_over: false }, 3, 7457604823458980961)],
    );
}

/// Each process hands over in its first turn: none has failed with the saved state of the whole port.
#[test]
fn hand_overs_before_a_first_round_reset_no_vf() {
    use SimulatedAction::*;
    check_life_with(
        "hand_overs_before_a_first_round_reset_no_vf",
        LifeConditions { program: Some(2), maps_registers: false },
        true,
        vec![SimulatedFamily::I82576; 6],
        &[
            (Attach { guest: 5 }, 3, 7435766993618946518),
            (HandOver { succeeds: true }, 0, 960388964930247531),
            (HandOver { succeeds: true }, 0, 12708182961565082185),
            (HandOver { succeeds: true }, 4, 8343992096262193149),
        ],
    );
}

/// A guest attaches while the worker of its function has fewer jobs of a hostile VMM's end than those for which clients wait.
#[test]
fn guest_waits_for_the_descriptors_of_a_hostile_vmm() {
    use SimulatedAction::*;
    let policy = SimulatedPolicy { ips: SimulatedIps::Own, ..SimulatedPolicy::default() };
    check_life_with(
        "guest_waits_for_the_descriptors_of_a_hostile_vmm",
        LifeConditions { program: Some(2), maps_registers: true },
        false,
        vec![SimulatedFamily::I82576; 4],
        &[
            (Attach { guest: 2 }, 5, 13251747916313815438),
            (Upgrade { guest: 1, waits: 36, succeeds: true }, 2, 7021625149272343026),
            (Upgrade { guest: 0, waits: 21, succeeds: false }, 4, 1029677894196093049),
            (Attach { guest: 3 }, 0, 13958356676864919087),
            (Intrude { guest: 3, messages: 33 }, 5, 2945899205604928030),
            (Intrude { guest: 0, messages: 53 }, 2, 3238885154816599596),
            (SetPolicy { guest: 2, policy, disk: None }, 3, 1496039981078915220),
        ],
    );
}

/// The state file holds a refused address. The successor, which applies it, resets the VF while its driver waits for a reply.
#[test]
fn address_found_by_a_successor_ends_a_drivers_request() {
    use SimulatedAction::*;
    let policy = SimulatedPolicy { has_second_mac: true, ..SimulatedPolicy::default() };
    check_life_with(
        "address_found_by_a_successor_ends_a_drivers_request",
        LifeConditions { program: None, maps_registers: true },
        true,
        vec![SimulatedFamily::Avf],
        &[
            (Attach { guest: 0 }, 4, 4710377275310915416),
            (SetPolicy { guest: 0, policy, disk: Some(DiskFault::ReadOnly(7)) }, 1, 3195936705059647948),
            (Upgrade { guest: 0, waits: 26, succeeds: true }, 2, 2477604652738274609),
        ],
    );
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
        let fault = life.run().expect_err("the life fails with a keeper that does not keep");
        let shrunk = life.shrink(&fault, SHRINKING_LIVES);
        assert!(shrunk.run().is_err());
        let steps = shrunk.steps.len();
        assert!((1..10).contains(&steps), "{shrunk}");
        print_report(&format!("{steps} steps\n{shrunk}"));
    });
}

#[test]
fn link_set_before_a_hand_over_reaches_an_avf_guest() {
    use SimulatedAction::*;
    let disabled = SimulatedPolicy { is_disabled: true, ..SimulatedPolicy::default() };
    // The disk fails after the state file is replaced: the host refuses the change, but its successor finds it in the file.
    let disk = Some(DiskFault::ReadOnly(7));
    check_life(
        "link_set_before_a_hand_over_reaches_an_avf_guest",
        false,
        vec![SimulatedFamily::Avf],
        &[
            (Attach { guest: 0 }, 0, 1),
            (SetPolicy { guest: 0, policy: disabled, disk }, 2, 2),
            (HandOver { succeeds: true }, 5, 3),
            (Burst { slow: None, rounds: 1, death: None }, 5, 4),
        ],
    );
}

#[test]
fn packet_that_waits_for_a_rate_survives_a_hand_over() {
    use SimulatedAction::*;
    // A receiver without offloads gets the packet's segments.
    let virtio = |offloads| SimulatedFamily::Virtio {
        packed: true,
        events: true,
        in_order: true,
        offloads,
        descriptors: 64,
    };
    let limited = SimulatedPolicy { rate: 10, ..SimulatedPolicy::default() };
    check_life(
        "packet_that_waits_for_a_rate_survives_a_hand_over",
        false,
        vec![virtio(true), virtio(false)],
        &[
            (SetPolicy { guest: 0, policy: limited, disk: None }, 0, 1),
            (Attach { guest: 0 }, 5, 2),
            (Attach { guest: 1 }, 5, 3),
            (Burst { slow: None, rounds: 1, death: None }, 5, 7),
            (SendTcp { from: 0, to: 1, packets: 1, payload: 12_509, mss: 1_448 }, 4, 4),
            (HandOver { succeeds: true }, 4, 5),
            (Burst { slow: None, rounds: 20, death: None }, 5, 6),
        ],
    );
}
