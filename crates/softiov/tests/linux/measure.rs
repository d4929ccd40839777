//! Measures guests with `SOFTIOV_MEASURE=1`: a guest on SoftIOV's card beside guests on other cards. No number is
//! judged.
//!
//! | module | contents |
//! |---|---|
//! | `contender` | a guest with one card, and its forwarder |
//! | `equipment` | cards and addresses of the guests, configurations of their hosts |
//! | `load` | work of a guest in a turn, and the counters around it |
//! | `table` | a table and JSON of the turns |
//! | `pairs` | pairs of virtio guests on SoftIOV, and on taps and a bridge |
//! | `queues` | one VF with several queues |
//! | `versions` | this version of `softiov` beside another |

mod contender;
mod equipment;
mod load;
pub(crate) mod pairs;
pub(crate) mod queues;
mod table;
pub(crate) mod versions;

use crate::report::LinuxCheckOutcome;
use crate::wire::WireNamespace;
use crate::world::LinuxTestbed;
use anyhow::Result;
use contender::MeasuredGuest;
use load::{GuestNetworkLoad, NetworkLoadResult};
use table::MeasuredGuestRow;

/// Name of a measured guest (contender), and its results in each turn of the measurement.
type NamedContenderTurns = (&'static str, Vec<Vec<NetworkLoadResult>>);

/// Number of turns in which each guest is measured.
const ROUNDS: usize = 7;

/// Measures iavf and igbvf on mapped ports, virtio-net on Open vSwitch-DPDK and on a tap of QEMU's, and the latter with
/// frames of 1,514 bytes only. Each has a guest of the same kind with one processor, and exchanges the same traffic
/// with the same namespace beyond the same bridge.
pub(crate) fn cards_take_turns(world: &mut LinuxTestbed) -> Result<LinuxCheckOutcome> {
    measure(world, |wire| {
        let contenders = MeasuredGuest::all(world, wire)?;
        let named = take_turns(&contenders, wire)?;
        table::print("cards in turn", contenders[0].accel(), &rows(&named));
        contenders.into_iter().try_for_each(MeasuredGuest::end)
    })
}

/// Measures guests with different network cards in turn, and returns each guest's results with its name.
fn take_turns(contenders: &[MeasuredGuest], wire: &WireNamespace) -> Result<Vec<NamedContenderTurns>> {
    let mut turns = vec![Vec::new(); contenders.len()];
    for round in 0..ROUNDS {
        for place in 0..contenders.len() {
            // No contender follows the same neighbour each time.
            let place = (place + round) % contenders.len();
            turns[place].push(contenders[place].turn(&wire.address())?);
        }
    }
    Ok(contenders.iter().map(MeasuredGuest::name).zip(turns).collect())
}

/// Runs a measurement of guests, if SOFTIOV_MEASURE requests it and there is an uplink; otherwise skips the check.
fn measure(
    world: &LinuxTestbed,
    make: impl FnOnce(&WireNamespace) -> Result<()>,
) -> Result<LinuxCheckOutcome> {
    if std::env::var_os("SOFTIOV_MEASURE").is_none() {
        return Ok(LinuxCheckOutcome::Skipped("the measurement is made only with SOFTIOV_MEASURE=1".into()));
    }
    match &world.wire {
        Ok(wire) => make(wire).map(|()| LinuxCheckOutcome::Passed),
        Err(why) => Ok(LinuxCheckOutcome::Skipped(format!("no uplink here: {why}"))),
    }
}

/// Returns a row of the result table for each measured guest and each load.
fn rows(named: &[NamedContenderTurns]) -> Vec<MeasuredGuestRow> {
    let of = |load: GuestNetworkLoad, turns: &[Vec<NetworkLoadResult>]| -> Vec<NetworkLoadResult> {
        turns.iter().flatten().filter(|turn| turn.load == load).copied().collect()
    };
    let first = |load| named.first().map(|(_, turns)| of(load, turns)).unwrap_or_default();
    let row = |load| {
        let first = first(load);
        let row = move |(name, turns): &NamedContenderTurns| {
            MeasuredGuestRow::new(name, load, &of(load, turns), &first)
        };
        named.iter().map(row)
    };
    GuestNetworkLoad::ALL.into_iter().flat_map(row).filter(|row| row.turns > 0).collect()
}
