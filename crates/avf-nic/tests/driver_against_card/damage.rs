//! Tests damaged saved states: they are refused, or accepted and harmless. A card that was restored from an accepted
//! state serves register accesses, and stays within its bounds.

use crate::poke::{all_registers, poke};
use crate::set_aside::{DriverFixture, HandOverTestAction, VFS};
use crate::world::CardFixture;
use avf_nic::{Nic, NicState};
use driver::avf::pf::{AvfPf, AvfPfState};
use driver::conduct::VfConductMonitor;
use pcie::Function;
use policy::VfPolicy;
use proptest::prelude::{Strategy, any, prop_oneof, proptest};
use proptest::test_runner::Config;
use std::sync::LazyLock;

/// Saved states of a card with its plane, and of its PF driver, with unfinished packets, pending messages, a storm, and
/// a quarantine.
static BODIES: LazyLock<[Vec<u8>; 2]> = LazyLock::new(|| {
    let mut scene = DriverFixture::new();
    let slow = VfPolicy { max_tx_rate: 1, ..VfPolicy::default() };
    let under_way = [
        HandOverTestAction::Policy(0, slow.into(), 4),
        HandOverTestAction::Restart(0),
        HandOverTestAction::Storm(3),
        HandOverTestAction::SendLarge(0, 0, 5, 8_000),
        HandOverTestAction::SendLarge(0, 1, 5, 8_000),
        HandOverTestAction::Arrive(4, 1_000),
        HandOverTestAction::Wait(10),
        HandOverTestAction::Letter(1, 15, vec![2; 12]),
        HandOverTestAction::Letter(2, 10, vec![3; 30]),
        HandOverTestAction::Watch(0, 0),
        HandOverTestAction::Wait(1_100_000),
        HandOverTestAction::Watch(0, 1_000),
        HandOverTestAction::Quarantine(1, true),
    ];
    under_way.iter().for_each(|act| _ = scene.perform(act));
    scene.save()
});

fn card_of(bytes: &[u8]) -> Option<(Nic, Box<plane::ForwardingPlane<64>>)> {
    let state: NicState = postcard::from_bytes(bytes).ok()?;
    Nic::restore(state).ok()
}

/// Restores a PF driver from saved bytes on a card, runs the driver, and has it change policies.
fn employ(bytes: &[u8], card: Option<Nic>) {
    let Ok((state, monitors)) = postcard::from_bytes::<(AvfPfState, Vec<VfConductMonitor>)>(bytes) else {
        return;
    };
    let mut world = CardFixture::new(VFS);
    world.memories.forget(Function::Pf);
    let vfs = state.vfs() as u8;
    let Ok(pf) = AvfPf::restore(&mut world.side(Function::Pf), state) else { return };
    world.pf = Some(pf);
    world.card = card.unwrap_or(world.card);
    let resumed = world.with_pf(|pf, side| pf.resume_conduct(side, monitors));
    if resumed.is_err() {
        return;
    }
    for _ in 0..4 {
        world.with_pf(|pf, side| _ = pf.visit(side));
    }
    world.with_pf(|pf, side| {
        pf.set_link(side, Some(10_000));
        pf.reset_all(side);
        (0..vfs).for_each(|vf| _ = pf.set_policy(side, vf, VfPolicy::default()));
    });
}

/// Generates changes of a saved state's bytes: index and flipped bits. Most changes keep a byte's highest bit, which
/// says that a number has more bytes (postcard's varint): flipping it would shift all later fields.
fn changes() -> impl Strategy<Value = Vec<(usize, u8)>> {
    let bits = prop_oneof![9 => 1..0x80_u8, 1 => any::<u8>()];
    proptest::collection::vec((any::<usize>(), bits), 1..6)
}

fn changed(body: &[u8], changes: &[(usize, u8)]) -> Vec<u8> {
    let mut body = body.to_vec();
    let length = body.len();
    changes.iter().for_each(|(at, bits)| body[at % length] ^= bits);
    body
}

#[test]
fn undamaged_saved_state_is_restored_and_works() {
    let [card, pf] = &*BODIES;
    let (mut card, mut plane) = card_of(card).unwrap();
    employ(pf, Some(card.clone()));
    poke(&mut card, &mut plane, &all_registers());
}

proptest! {
    #![proptest_config(Config { cases: 300, ..Config::default() })]

    #[test]
    fn damaged_saved_state_is_refused_or_harmless(of_card in changes(), of_pf in changes()) {
        let [card, pf] = &*BODIES;
        let card = card_of(&changed(card, &of_card));
        employ(&changed(pf, &of_pf), card.clone().map(|(card, _)| card));
        if let Some((mut card, mut plane)) = card {
            poke(&mut card, &mut plane, &all_registers());
        }
    }

    #[test]
    fn arbitrary_saved_state_is_refused_or_harmless(body in proptest::collection::vec(any::<u8>(), 0..2_000)) {
        employ(&body, None);
        if let Some((mut card, mut plane)) = card_of(&body) {
            poke(&mut card, &mut plane, &all_registers());
        }
    }
}
