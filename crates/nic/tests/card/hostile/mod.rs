//! Tests a hostile guest: invalid rings, false descriptors, unmapped memory. The card does not panic, its work for the
//! guest is bounded, and its neighbours' frames still pass.

mod filters;
mod packets;
mod rings;

use crate::common::{BASE, CardFixture, SIZE, mac, plain};
use i82576::register::vf;
use pcie::Function::Vf;

const END: u64 = BASE + SIZE as u64;
/// Maximum number of memory requests in a poll for one queue: the budget's frames with at most 16 descriptors each, and
/// the requests for rings.
const REQUESTS_A_POLL: usize = 256 * (16 + 4) + 256;

/// Returns a card whose VFs 0 to 2 have running rings. The tests use VF 0 as the hostile one.
fn bench() -> CardFixture {
    let mut bench = CardFixture::new(3);
    for vf in 0..3 {
        bench.vf(vf).start();
    }
    bench
}

fn rx_at(register: u32) -> u32 {
    vf::RX_BLOCK + register
}

fn tx_at(register: u32) -> u32 {
    vf::TX_BLOCK + register
}

/// Asserts that VFs 1 and 2 receive each other's frames, and that none of their memory requests has faulted.
#[track_caller]
fn expect_neighbours_well(bench: &mut CardFixture) {
    for (from, to) in [(1, 2), (2, 1)] {
        let frame = plain(mac(to), mac(from), 300);
        bench.vf(from).send(&frame);
        let received = bench.vf(to).received();
        assert_eq!(received.last().map(|last| &last.bytes), Some(&frame), "from {from} to {to}");
        let used = received.iter().map(|received| received.parts.len() as u32).sum();
        bench.vf(to).post(used);
    }
    for vf in [1, 2] {
        let stray = bench.world.bus.log.iter().find(|access| access.function == Vf(vf) && access.fault);
        assert_eq!(stray, None);
    }
    bench.world.bus.log.clear();
}

/// Polls until the card is idle, and asserts that no poll exceeds [`REQUESTS_A_POLL`].
#[track_caller]
fn poll_bounded(bench: &mut CardFixture) {
    for _ in 0..10_000 {
        bench.world.bus.log.clear();
        let more = bench.poll_once().more;
        assert!(bench.world.bus.log.len() <= REQUESTS_A_POLL, "{} requests", bench.world.bus.log.len());
        if !more {
            return;
        }
    }
    panic!("the card reports more work after every poll");
}
