//! Tests a packet that its VF's rate stops between two of its segments, and what ends it.

use crate::built::tcp4;
use crate::offloads::{all_of, cut, two};
use crate::world::CardFixture;
use avf::control::{CardCommand, CardControl, TxQueueContext};
use avf_nic::Nic;
use core::time::Duration;
use driver::avf::vf::AvfDriver;
use plane::PortIndex;

/// Segments of the packet that VF 0 sends.
const SEGMENTS: usize = 8;

/// Creates a card whose VF 0 has a packet that waits for the VF's rate after some of its segments have left.
fn paused() -> (CardFixture, AvfDriver) {
    let (mut world, mut a, mut b) = two(|policy| policy.max_tx_rate = 1);
    assert!(a.transmit_with(&mut world.vf(0), 0, &tcp4(&[7; 8_000]), &cut(1_000)));
    world.round();
    assert!((1..SEGMENTS).contains(&all_of(&mut world, &mut b).len()));
    (world, b)
}

/// Returns the number of packets that the plane has counted as dropped without a receiver.
fn unclaimed(world: &CardFixture) -> u64 {
    world.plane.as_ref().unwrap().ledger.total(PortIndex::of_field(0)).tx_unclaimed
}

#[test]
fn reset_counts_a_packet_that_is_dropped_between_segments() {
    let resets: [fn(&mut CardFixture); 2] =
        [|world| world.card.function_level_reset(0), |world| world.with_pf(|pf, side| pf.reset_all(side))];
    for reset in resets {
        let (mut world, mut b) = paused();
        reset(&mut world);
        world.round();
        assert_eq!(unclaimed(&world), 1);
        world.now = world.now + Duration::from_secs(1);
        world.round();
        assert_eq!((unclaimed(&world), all_of(&mut world, &mut b).len()), (1, 0));
    }
}

#[test]
fn new_ring_counts_a_packet_that_is_dropped_between_segments() {
    for (queue, dropped) in [(1, 0), (0, 1)] {
        let (mut world, mut b) = paused();
        world.card.order(0, CardCommand::ConfigureTx(queue, TxQueueContext::default()));
        world.round();
        assert_eq!(unclaimed(&world), dropped, "queue {queue}");
        world.now = world.now + Duration::from_secs(1);
        world.round();
        assert_eq!(unclaimed(&world), dropped, "queue {queue}");
        assert_eq!(all_of(&mut world, &mut b).is_empty(), dropped == 1, "queue {queue}");
    }
}

#[test]
fn packet_dropped_before_a_hand_over_is_counted_once() {
    let (mut world, _) = paused();
    world.card.function_level_reset(0);
    let state = world.card.save(world.plane.as_ref().unwrap());
    let (card, plane) = Nic::restore(state).unwrap();
    (world.card, world.plane) = (card, Some(plane));
    world.round();
    assert_eq!(unclaimed(&world), 1);
}
