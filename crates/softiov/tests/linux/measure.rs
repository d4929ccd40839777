//! Measurements, made with `SOFTIOV_MEASURE=1`: what a guest gets from the served card beside what it would get from others.
//! Nothing is judged.
//!
//! | module | what it is |
//! |---|---|
//! | `contender` | a guest with one card, and who forwards for it |
//! | `load` | what the guest is asked to do in a turn, and what is counted meanwhile |
//! | `table` | what is made of the turns: a table, and JSON |
//! | `queues` | one VF with more queues |

mod contender;
mod load;
pub(crate) mod queues;
mod table;

use crate::report::Outcome;
use crate::wire::Wire;
use crate::world::World;
use anyhow::Result;
use contender::Contender;
use load::{Load, Turn};
use table::Row;

/// How often each contender has its turn.
const ROUNDS: usize = 7;

/// iavf and igbvf on mapped ports, virtio-net on Open vSwitch-DPDK and on a tap of QEMU's, and that with frames only: a guest of
/// the same kind for each, with one processor. All exchange the same with the same namespace beyond the same bridge.
pub(crate) fn cards_take_turns(world: &mut World) -> Result<Outcome> {
    measure(world, |wire| {
        let contenders = Contender::all(world, wire)?;
        let mut turns = vec![Vec::new(); contenders.len()];
        for round in 0..ROUNDS {
            for place in 0..contenders.len() {
                // Nobody comes after the same neighbour each time.
                let place = (place + round) % contenders.len();
                turns[place].push(contenders[place].turn(&wire.address())?);
            }
        }
        let named: Vec<_> = contenders.iter().map(Contender::name).zip(turns).collect();
        table::print("cards in turn", contenders[0].accel(), &rows(&named));
        contenders.into_iter().try_for_each(Contender::end)
    })
}

/// Makes a measurement, if it was asked for and there is an uplink.
fn measure(world: &World, make: impl FnOnce(&Wire) -> Result<()>) -> Result<Outcome> {
    if std::env::var_os("SOFTIOV_MEASURE").is_none() {
        return Ok(Outcome::Skipped("a measurement: SOFTIOV_MEASURE=1 has it made".into()));
    }
    match &world.wire {
        Ok(wire) => make(wire).map(|()| Outcome::Passed),
        Err(why) => Ok(Outcome::Skipped(format!("no uplink here: {why}"))),
    }
}

/// What came of the turns of each, load by load.
fn rows(named: &[(&str, Vec<Vec<Turn>>)]) -> Vec<Row> {
    let of = |load: Load, turns: &[Vec<Turn>]| -> Vec<Turn> {
        turns.iter().flatten().filter(|turn| turn.load == load).copied().collect()
    };
    let first = |load| named.first().map(|(_, turns)| of(load, turns)).unwrap_or_default();
    let row = |load| {
        let first = first(load);
        let row =
            move |(name, turns): &(&str, Vec<Vec<Turn>>)| Row::new(name, load, &of(load, turns), &first);
        named.iter().map(row)
    };
    Load::ALL.into_iter().flat_map(row).filter(|row| row.turns > 0).collect()
}
