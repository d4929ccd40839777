//! Random bytes as the state of a port of the second family. An accepted state is restored, and card, plane and PF
//! driver are used. They must answer and stay within their bounds, and the state must not grow when it is saved again.
//!
//! The first byte of an input selects its kind: an envelope, a body, or changes to the kept body of the newest version.
//! Property tests compare the behaviour after a valid state.
#![cfg_attr(not(test), no_main)]

use avf::ids::MAX_VFS;
use avf_nic::Nic;
use daemon::state::{self, AvfPortState, PausedAvfPortState, decode, read};
use driver::avf::pf::AvfPf;
use driver::conduct::VfConductMonitor;
use pcie::Function;
use poke::{all_registers, poke};
use policy::VfPolicy;
use softiov_fuzz::{changed, saved_body};
use std::sync::LazyLock;
use world::CardFixture;

#[path = "../../crates/avf-nic/tests/driver_against_card/pages.rs"]
mod pages;
#[path = "../../crates/avf-nic/tests/driver_against_card/poke.rs"]
mod poke;
#[path = "../../crates/avf-nic/tests/driver_against_card/world.rs"]
mod world;

/// Body of a stored AVF port state of the newest version, which the fuzzer changes.
static BODY: LazyLock<Vec<u8>> =
    LazyLock::new(|| saved_body(include_str!("../../crates/daemon/tests/states/avfs-v6.hex")));

softiov_fuzz::target!(run);

/// Runs the target on one input.
fn run(data: &[u8]) {
    let Some((kind, data)) = data.split_first() else { return };
    let read = match kind % 4 {
        0 => read::<AvfPortState>(data),
        1 => decode(data),
        _ => decode(&changed(&BODY, data)),
    };
    let Ok(state) = read else { return };
    let written = state::write(&state).unwrap();
    let Some(PausedAvfPortState { card, pf, .. }) = state.rest.clone() else { return };
    let Ok((mut card, mut plane)) = Nic::restore(card) else { return };
    let mut world = CardFixture::new(8);
    world.memories.forget(Function::Pf);
    let Ok(pf) = AvfPf::restore(&mut world.side(Function::Pf), pf) else { return };
    let rest = state.rest.clone().map(|rest| PausedAvfPortState {
        card: card.save(&plane),
        pf: pf.save(&mut world.side(Function::Pf)),
        ..rest
    });
    let mut conduct = state.conduct.clone();
    let again = state::write(&AvfPortState { rest, ..state }).unwrap();
    assert!(again.len() <= written.len(), "a state grows when it is restored");
    // A port does the same: a card of an earlier version had fewer VFs.
    (world.card, world.pf) = (card.clone(), Some(pf));
    world.card.grow(MAX_VFS as u8);
    world.with_pf(|pf, _| pf.grow(MAX_VFS as u8));
    conduct.resize_with(conduct.len().max(MAX_VFS), VfConductMonitor::default);
    if world.with_pf(|pf, side| pf.resume_conduct(side, conduct)).is_err() {
        return;
    }
    // Each input reads other registers: reading all of them takes longer than everything else.
    poke(&mut card, &mut plane, &all_registers().skip((kind >> 2).into()).step_by(64));
    for _ in 0..4 {
        world.with_pf(|pf, side| _ = pf.visit(side));
    }
    world.with_pf(|pf, side| {
        pf.vfs().for_each(|vf| pf.release(side, vf));
        pf.reset_all(side);
        pf.vfs().for_each(|vf| _ = pf.set_policy(side, vf, VfPolicy::default()));
    });
}
