//! Random bytes as the state of a card. An accepted state is restored, and the card is used: registers, configuration,
//! rings, polls, visits of the PF driver. It must answer and stay within its bounds, and only the first restoration
//! may change the state.
//!
//! The first byte of an input selects its kind: an envelope, a body, or changes to the kept body of the newest version.
//! Property tests compare the behaviour after a valid state.
#![cfg_attr(not(test), no_main)]

use backplane::Backplane;
use daemon::state::{self, CardState, decode, read};
use poke::{all_registers, poke};
use softiov_fuzz::{changed, saved_body};
use std::sync::LazyLock;

#[path = "../../crates/daemon/tests/states/poke.rs"]
mod poke;

/// Body of a stored 82576 card state of the newest version, which the fuzzer changes.
static BODY: LazyLock<Vec<u8>> =
    LazyLock::new(|| saved_body(include_str!("../../crates/daemon/tests/states/card-v4.hex")));

/// Maximum bytes of MSI-X table entries that a state may lack: 8 VFs with 3 vectors, of at most 21 bytes with the pending bit.
const MISSING: usize = 8 * 3 * 21;

softiov_fuzz::target!(run);

/// Runs the target on one input.
fn run(data: &[u8]) {
    let Some((kind, data)) = data.split_first() else { return };
    let read = match kind % 4 {
        0 => read::<CardState>(data),
        1 => decode(data),
        _ => decode(&changed(&BODY, data)),
    };
    let Ok(state) = read else { return };
    let written = state::write(&state).unwrap();
    let Ok(mut restored) = state.restore() else { return };
    let saved = CardState::of(&restored.nic, restored.pf.as_ref(), restored.manager.as_ref());
    // Values that the input repeats, or that cannot change, are saved once, so the second state may be shorter. It may be longer
    // by the last entries of MSI-X tables, which the input may lack. The third state equals the second.
    let again = state::write(&saved).unwrap();
    assert!(again.len() <= written.len() + MISSING, "a state grows when it is restored");
    let next = saved.restore().unwrap();
    let third = CardState::of(&next.nic, next.pf.as_ref(), next.manager.as_ref());
    assert!(state::write(&third).unwrap() == again, "a second restoration changes the state");
    // Each input reads other registers: reading all of them takes longer than everything else.
    poke(&mut restored.nic, &all_registers().skip((kind >> 2).into()).step_by(64));
    if let Some(mut pf) = restored.pf {
        let mut card = Backplane::new(backplane::PORT_MAC, 0);
        *card.nic() = restored.nic;
        (0..4).for_each(|_| _ = pf.visit(&mut card.pf()));
        let _ = pf.reset(&mut card.pf());
    }
}
