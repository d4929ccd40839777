//! Tests of damaged saved states: bytes are changed under a correct checksum. A state that is accepted nevertheless
//! must give a card that answers and stays within its bounds.

use crate::conversation::{CardTestAction, perform};
use crate::poke::{all_registers, poke};
use crate::world::CardWithDrivers;
use backplane::Backplane;
use daemon::state::{CardState, decode};
use proptest::prelude::{Strategy, any, prop_oneof, proptest};
use proptest::test_runner::Config;
use std::sync::LazyLock;

/// Saved state of a card with a lot of unfinished work, without its header.
static BODY: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let mut world = CardWithDrivers::new();
    let under_way = [
        CardTestAction::Starve(2),
        CardTestAction::Arrive(2, 100),
        CardTestAction::Arrive(0, 200),
        CardTestAction::SendLarge(0, 1, 8_000),
        CardTestAction::Ask(1, 5, 10),
        CardTestAction::Wait(50),
    ];
    for act in &under_way {
        perform(&mut world, act);
    }
    postcard::to_allocvec(&world.state()).unwrap()
});

/// Generates damage to a saved state: bytes to change, each with the bits to flip. Keeping a byte's highest bit, which
/// continues a number into the next byte, leaves later values in place.
fn changes() -> impl Strategy<Value = Vec<(usize, u8)>> {
    let bits = prop_oneof![9 => 1..0x80u8, 1 => any::<u8>()];
    proptest::collection::vec((any::<usize>(), bits), 1..6)
}

proptest! {
    #![proptest_config(Config { cases: 400, ..Config::default() })]

    #[test]
        fn damaged_saved_state_is_refused_or_harmless(changes in changes()) {
        let mut body = BODY.clone();
        for (at, value) in changes {
            let at = at % body.len();
            body[at] ^= value;
        }
        let Ok(Ok(mut restored)) = decode::<CardState>(&body).map(CardState::restore) else { return Ok(()) };
        poke(&mut restored.nic, &all_registers());
        let mut card = Backplane::new(backplane::PORT_MAC, 0);
        *card.nic() = restored.nic;
        if let Some(mut pf) = restored.pf {
            for _ in 0..4 {
                pf.visit(&mut card.pf());
            }
            let _ = pf.reset(&mut card.pf());
        }
    }

    #[test]
    fn random_bytes_as_saved_state_are_refused_or_harmless(
        body in proptest::collection::vec(any::<u8>(), 0..2_000),
    ) {
        if let Ok(Ok(mut restored)) = decode::<CardState>(&body).map(CardState::restore) {
            poke(&mut restored.nic, &all_registers());
        }
    }
}
