//! Measures guests with `SOFTIOV_MEASURE=1`: a guest on SoftIOV's card beside guests on other cards. No number is
//! judged.
//!
//! | module | contents |
//! |---|---|
//! | `contender` | a guest with one card, and its forwarder |
//! | `load` | work of a guest in a turn, and the counters around it |
//! | `table` | a table and JSON of the turns |
//! | `queues` | one VF with several queues |
//! | `versions` | this version of `softiov` beside another |

mod contender;
mod load;
pub(crate) mod queues;
mod table;
pub(crate) mod versions;

use crate::report::CheckOutcome;
use crate::wire::WireNamespace;
use crate::world::LinuxTestbed;
use anyhow::Result;
use contender::GuestContender;
use load::{GuestLoad, LoadResult};
use table::ContenderRow;

/// Name of a measured guest (contender), and its results in each turn of the measurement.
type NamedContenderTurns = (&'static str, Vec<Vec<LoadResult>>);

/// Number of turns in which each guest is measured.
const ROUNDS: usize = 7;

/// Measures iavf and igbvf on mapped ports, virtio-net on Open vSwitch-DPDK and on a tap of QEMU's, and the latter with
/// frames of 1,514 bytes only. Each has a guest of the same kind with one processor, and exchanges the same traffic
/// with the same namespace beyond the same bridge.
pub(crate) fn cards_take_turns(world: &mut LinuxTestbed) -> Result<CheckOutcome> {
    measure(world, |wire| {
        let contenders = GuestContender::all(world, wire)?;
        let named = take_turns(&contenders, wire)?;
        table::print("cards in turn", contenders[0].accel(), &rows(&named));
        contenders.into_iter().try_for_each(GuestContender::end)
    })
}

/// Measures guests in turn, each with another network card, and returns the results of each with its name.
fn take_turns(contenders: &[GuestContender], wire: &WireNamespace) -> Result<Vec<NamedContenderTurns>> {
    let mut turns = vec![Vec::new(); contenders.len()];
    for round in 0..ROUNDS {
        for place in 0..contenders.len() {
            // No contender follows the same neighbour each time.
            let place = (place + round) % contenders.len();
            turns[place].push(contenders[place].turn(&wire.address())?);
        }
    }
    Ok(contenders.iter().map(GuestContender::name).zip(turns).collect())
}

/// Runs a measurement of guests, if SOFTIOV_MEASURE requests it and there is an uplink; otherwise skips the check.
fn measure(world: &LinuxTestbed, make: impl FnOnce(&WireNamespace) -> Result<()>) -> Result<CheckOutcome> {
    if std::env::var_os("SOFTIOV_MEASURE").is_none() {
        return Ok(CheckOutcome::Skipped("the measurement is made only with SOFTIOV_MEASURE=1".into()));
    }
    match &world.wire {
        Ok(wire) => make(wire).map(|()| CheckOutcome::Passed),
        Err(why) => Ok(CheckOutcome::Skipped(format!("no uplink here: {why}"))),
    }
}

/// Returns a row of the result table for each measured guest and each load.
fn rows(named: &[NamedContenderTurns]) -> Vec<ContenderRow> {
    let of = |load: GuestLoad, turns: &[Vec<LoadResult>]| -> Vec<LoadResult> {
        turns.iter().flatten().filter(|turn| turn.load == load).copied().collect()
    };
    let first = |load| named.first().map(|(_, turns)| of(load, turns)).unwrap_or_default();
    let row = |load| {
        let first = first(load);
        let row = move |(name, turns): &NamedContenderTurns| {
            ContenderRow::new(name, load, &of(load, turns), &first)
        };
        named.iter().map(row)
    };
    GuestLoad::ALL.into_iter().flat_map(row).filter(|row| row.turns > 0).collect()
}
