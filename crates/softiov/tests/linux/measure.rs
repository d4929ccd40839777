//! Measurements, made with `SOFTIOV_MEASURE=1`: a guest on the served card beside guests on other cards. No number is
//! judged.
//!
//! | module | contents |
//! |---|---|
//! | `contender` | a guest with one card, and its forwarder |
//! | `load` | work of a guest in a turn, and the counters around it |
//! | `table` | a table and JSON of the turns |
//! | `queues` | one VF with several queues |

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

/// Turns of each contender.
const ROUNDS: usize = 7;

/// Measures iavf and igbvf on mapped ports, virtio-net on Open vSwitch-DPDK and on a tap of QEMU's, and the latter
/// with frames of 1,514 bytes only. Each has a guest of the same kind with one processor, and exchanges the same
/// traffic with the same namespace beyond the same bridge.
pub(crate) fn cards_take_turns(world: &mut World) -> Result<Outcome> {
    measure(world, |wire| {
        let contenders = Contender::all(world, wire)?;
        let mut turns = vec![Vec::new(); contenders.len()];
        for round in 0..ROUNDS {
            for place in 0..contenders.len() {
                // No contender follows the same neighbour each time.
                let place = (place + round) % contenders.len();
                turns[place].push(contenders[place].turn(&wire.address())?);
            }
        }
        let named: Vec<_> = contenders.iter().map(Contender::name).zip(turns).collect();
        table::print("cards in turn", contenders[0].accel(), &rows(&named));
        contenders.into_iter().try_for_each(Contender::end)
    })
}

/// Makes a measurement, if it was requested and there is an uplink.
fn measure(world: &World, make: impl FnOnce(&Wire) -> Result<()>) -> Result<Outcome> {
    if std::env::var_os("SOFTIOV_MEASURE").is_none() {
        return Ok(Outcome::Skipped("a measurement: SOFTIOV_MEASURE=1 has it made".into()));
    }
    match &world.wire {
        Ok(wire) => make(wire).map(|()| Outcome::Passed),
        Err(why) => Ok(Outcome::Skipped(format!("no uplink here: {why}"))),
    }
}

/// Returns a row for each contender and load.
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
