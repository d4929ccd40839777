//! Measures the frames that a guest loses in bursts from the uplink that are longer than its ring. The command `cargo
//! test -p softiov-nic --test card -- waiting::bursts --nocapture` prints the table of `docs/performance.md`.

use super::{bench, frame, got, missed};
use crate::common::CardFixture;
use i82576::bits::srrctl;
use i82576::register::{rx, vf};

/// Number of frames into which a packet of 64 KB is segmented.
const FRAMES: usize = 45;
const LENGTH: usize = 1_514;

/// Delivers eight bursts of `packets` packets each to a VF that posts all its descriptors between them. Returns the number of
/// lost frames.
fn lost(descriptors: u32, packets: usize, drops: bool) -> u32 {
    let mut bench: CardFixture = bench(descriptors);
    if drops {
        bench.vf(0).set(vf::RX_BLOCK + rx::SRRCTL, srrctl::DROP_EN);
    }
    let (mut lost, mut found) = (0, 0);
    for _ in 0..8 {
        bench.world.wire.incoming.extend((0..packets * FRAMES).map(|number| frame(0, number, LENGTH)));
        bench.poll();
        // The first pass takes the frames that found descriptors, the second one those that waited.
        for _ in 0..2 {
            let frames = got(&mut bench, 0).len();
            found += frames;
            bench.vf(0).post(frames as u32);
            bench.poll();
        }
        found += got(&mut bench, 0).len();
        let rings = *bench.vf(0).rings();
        let posted = (rings.rx_tail + descriptors - rings.rx_next) % descriptors;
        bench.vf(0).post(descriptors - 1 - posted);
        let [_, by_port, by_queue] = missed(&mut bench, 0);
        lost += by_port + by_queue;
    }
    assert_eq!(found + lost as usize, 8 * packets * FRAMES, "each frame arrives or is lost once");
    lost
}

#[test]
fn only_burst_frames_beyond_ring_and_packet_buffer_are_lost() {
    println!("descriptors, frames in a burst: lost with DROP_EN, without");
    for (descriptors, packets, expected) in
        [(32, 1, [14, 0]), (32, 2, [59, 38]), (64, 1, [0, 0]), (64, 2, [27, 6]), (128, 3, [8, 0])]
    {
        let lost = [true, false].map(|drops| lost(descriptors, packets, drops));
        println!("{descriptors}, {}: {}, {}", packets * FRAMES, lost[0] / 8, lost[1] / 8);
        assert_eq!(lost, expected.map(|frames| 8 * frames), "{descriptors} descriptors, {packets} packets");
    }
}
