//! Tests that a receiver pays for receive buffers beyond those that its frames need.

use super::{DriverlessFixture, SLOTS, frame};
use plane::PortIndex;
use units::WorkCost;
use units::work::FRAME_QUANTUM;

#[test]
fn receiver_in_debt_gets_no_frame_in_more_buffers_than_it_needs() {
    let (mut guests, receiver) = (DriverlessFixture::new(false), PortIndex::of_field(1));
    // Buffers of 64 bytes. A frame of 1,454 bytes occupies 23, of which it needs 6, so it costs 17 units.
    guests.set_up(1, [1, 0, 3], false);
    // Without hashes all frames go to the first queue.
    guests.police(1, 0);
    let plane = guests.world.plane.as_mut().unwrap();
    plane.shares.set_quantum(FRAME_QUANTUM);
    plane.shares.charge(receiver, WorkCost(10 * FRAME_QUANTUM.0));
    let is_received = |guests: &mut DriverlessFixture, kind: u8| {
        let count = |guests: &DriverlessFixture| {
            guests.world.plane.as_ref().unwrap().ledger.total(receiver).rx_packets
        };
        let before = count(guests);
        guests.send((0, 0), &frame(0, 1, kind), 12, 1);
        guests.poll(1, 64);
        guests.post(1, 0, SLOTS, false);
        count(guests) > before
    };
    let (long, short) = (13 << 3 | 4, 13 << 3);
    assert!(is_received(&mut guests, long), "the port finds the debt with the excess");
    assert_eq!(
        [long, short, long, short].map(|kind| is_received(&mut guests, kind)),
        [false, true, false, true]
    );
    let paid = (0..20).position(|_| is_received(&mut guests, long));
    assert!(paid.is_some_and(|rounds| (3..8).contains(&rounds)), "{paid:?}");
}
