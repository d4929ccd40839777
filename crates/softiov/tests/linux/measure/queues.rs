//! Measures a VF of the second family with one, two and four queue pairs, in a guest with two processors: the gain of
//! more queues on a port with one thread.

use super::contender::MeasuredGuest;
use super::load::{GuestNetworkLoad, NetworkLoadResult};
use super::{ROUNDS, measure, rows, table};
use crate::guest::eventually;
use crate::report::LinuxCheckOutcome;
use crate::world::LinuxTestbed;
use anyhow::Result;

const CPUS: u32 = 2;
/// Number of TCP connections, one per queue pair of the largest set-up.
const CONNECTIONS: u32 = 4;
const PAIRS: [(u32, &str); 3] = [(1, "1 queue pair"), (2, "2 queue pairs"), (4, "4 queue pairs")];

/// Measures iavf with one, two and four queue pairs in turn; ethtool changes their number.
pub(crate) fn of_one_vf_take_turns(world: &mut LinuxTestbed) -> Result<LinuxCheckOutcome> {
    measure(world, |wire| {
        let server = wire.address();
        let iavf = MeasuredGuest::iavf(CPUS, world, wire)?;
        let turn = |pairs: u32| -> Result<Vec<NetworkLoadResult>> {
            set_pairs(&iavf, pairs)?;
            iavf.reach(&server)?;
            [GuestNetworkLoad::Sent, GuestNetworkLoad::Received]
                .into_iter()
                .map(|load| iavf.load(load, &server, CONNECTIONS))
                .collect()
        };
        let mut named = PAIRS.map(|(_, name)| (name, Vec::new()));
        iavf.running(|| {
            for round in 0..ROUNDS {
                for place in 0..PAIRS.len() {
                    let place = (place + round) % PAIRS.len();
                    named[place].1.push(turn(PAIRS[place].0)?);
                }
            }
            Ok(())
        })?;
        table::print("queues of one VF", iavf.accel(), &rows(&named));
        iavf.end()
    })
}

/// Sets the number of iavf's queue pairs. iavf resets its VF for that, and refuses during another reset. The interface
/// is down meanwhile: iavf of Linux 6.1 would send into a freed ring, and the kernel would panic
/// (`__iavf_maybe_stop_tx`).
fn set_pairs(iavf: &MeasuredGuest, pairs: u32) -> Result<()> {
    // ethtool fails if nothing changes.
    let script = format!(
        "ip link set eth0 down
         ethtool -L eth0 combined {pairs}
         ethtool -l eth0 | sed '1,/^Current/d' | grep -q 'Combined:.*{pairs}$' && ip link set eth0 up"
    );
    eventually(|| iavf.check(&script).map(drop))
}
