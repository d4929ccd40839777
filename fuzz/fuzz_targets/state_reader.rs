//! Random bytes as the state of a card. An accepted state is restored, and the card is used: registers, configuration,
//! rings, polls, visits of the PF driver. It must answer and stay within its bounds, and the state must not grow when
//! it is saved again.
//!
//! The first byte of an input selects its kind: an envelope, a body, or changes to the kept body of the newest version.
//! Property tests compare the behaviour after a valid state.
#![no_main]

use backplane::Backplane;
use daemon::state::{self, CardState, decode, read};
use libfuzzer_sys::fuzz_target;
use poke::poke;
use std::sync::LazyLock;

#[path = "../../crates/daemon/tests/states/poke.rs"]
mod poke;

/// Bytes of a saved state's envelope before the body.
const HEADER: usize = 28;

/// Body of a stored 82576 card state of the newest version, which the fuzzer changes.
static BODY: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let text = include_str!("../../crates/daemon/tests/states/card-v3.hex");
    let digits: Vec<u8> = text.bytes().filter(u8::is_ascii_hexdigit).collect();
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
    digits.chunks_exact(2).skip(HEADER).map(byte).collect()
});

/// Returns the stored state's body with changed bytes. A change has two bytes for the position and one for the bits.
fn changed(changes: &[u8]) -> Vec<u8> {
    let mut body = BODY.clone();
    for [low, high, value] in changes.as_chunks().0 {
        let at = usize::from(u16::from_le_bytes([*low, *high])) % body.len();
        body[at] ^= *value;
    }
    body
}

fuzz_target!(|data: &[u8]| {
    let Some((kind, data)) = data.split_first() else { return };
    let read = match kind % 4 {
        0 => read::<CardState>(data),
        1 => decode(data),
        _ => decode(&changed(data)),
    };
    let Ok(state) = read else { return };
    let written = state::write(&state).unwrap();
    let Ok(mut restored) = state.restore() else { return };
    let again = CardState::of(&restored.nic, restored.pf.as_ref(), restored.manager.as_ref());
    // Values that the input repeats, or that cannot change, are saved once, so the second state may be shorter.
    let again = state::write(&again).unwrap();
    assert!(again.len() <= written.len(), "a state grows when it is restored");
    poke(&mut restored.nic);
    let mut card = Backplane::new(backplane::PORT_MAC, 0);
    *card.nic() = restored.nic;
    if let Some(mut pf) = restored.pf {
        (0..4).for_each(|_| _ = pf.visit(&mut card.pf()));
        let _ = pf.reset(&mut card.pf());
    }
});
