//! Tests hostile front ends: none makes the back end loop, read pages that are not granted, or harm another
//! guest.

use super::{A, B};
use crate::PendingOffloads;
use crate::back::{TransmitPollOutcome, VifIndex};
use crate::message::{RxResponse, TxRequest, TxResponse, status, tx_flag};
use crate::ring::{RingSlot, SLOTS};
use crate::tests::bench::{SplitNetworkFixture, frame};
use alloc::vec::Vec;

/// Writes requests directly into a guest's transmit ring, publishes them and sends an event.
fn write(bench: &mut SplitNetworkFixture, vif: VifIndex, requests: &[RingSlot]) {
    let page = &mut bench.shared.rings[usize::from(vif.0)].transmit;
    for request in requests {
        page.slots[(page.requests % SLOTS) as usize] = *request;
        page.requests = page.requests.wrapping_add(1);
    }
    bench.backend.event(vif);
}

/// Returns the status of the response at an index of a guest's transmit ring.
fn answer(bench: &SplitNetworkFixture, vif: VifIndex, index: usize) -> i16 {
    TxResponse::parse(&bench.shared.rings[usize::from(vif.0)].transmit.slots[index]).status
}

fn request(reference: u32, offset: u16, size: u16) -> TxRequest {
    TxRequest { reference, offset, flags: 0, id: 0, size }
}

/// Asserts that another guest's frame is still transmitted.
fn others_are_served(bench: &mut SplitNetworkFixture) {
    bench.send(B, &frame(60, 1), PendingOffloads::default()).unwrap();
    let taken = (0..8).map(|_| bench.take(0)).find(|taken| matches!(taken, TransmitPollOutcome::Frame(B, _)));
    let Some(TransmitPollOutcome::Frame(_, key)) = taken else { panic!("expected a frame of guest B") };
    bench.backend.discard(key);
    assert_eq!(bench.backend.in_flight(), 0);
}

#[test]
fn invalid_ring_index_disables_only_its_interface() {
    for claim in [SLOTS + 1, u32::MAX, 1 << 31] {
        let mut bench = SplitNetworkFixture::new(2, 1);
        bench.shared.rings[0].transmit.requests = claim;
        bench.backend.event(A);
        assert_eq!(bench.take(0), TransmitPollOutcome::Nothing);
        assert!(bench.backend.is_broken(A) && !bench.backend.is_broken(B));
        bench.backend.event(A);
        assert_eq!(bench.take(0), TransmitPollOutcome::Idle, "events of a broken interface are ignored");
        others_are_served(&mut bench);
    }
}

#[test]
fn frame_piece_outside_its_page_or_frame_gets_an_error() {
    let wrong = [(4_090, 60), (0, 13), (0, 4_097), (u16::MAX, u16::MAX)];
    for (offset, size) in wrong {
        let mut bench = SplitNetworkFixture::new(2, 1);
        let reference = bench.grant(A, 0, false);
        write(&mut bench, A, &[request(reference, offset, size).emit()]);
        assert_eq!(bench.take(0), TransmitPollOutcome::Nothing);
        assert_eq!(bench.release(0), 1);
        assert_eq!(answer(&bench, A, 0), status::ERROR, "{offset} {size}");
        others_are_served(&mut bench);
    }
}

#[test]
fn frame_pieces_longer_than_the_frame_get_errors() {
    let mut bench = SplitNetworkFixture::new(2, 1);
    let reference = bench.grant(A, 0, false);
    let first = TxRequest { flags: tx_flag::MORE, ..request(reference, 0, 100) };
    write(&mut bench, A, &[first.emit(), request(reference, 0, 90).emit()]);
    assert_eq!(bench.take(0), TransmitPollOutcome::Nothing);
    assert_eq!((bench.release(0), answer(&bench, A, 0), answer(&bench, A, 1)), (2, -1, -1));
    others_are_served(&mut bench);
}

#[test]
fn back_end_does_not_read_a_page_that_is_not_granted() {
    let mut bench = SplitNetworkFixture::new(2, 1);
    for reference in [9_999, u32::MAX] {
        write(&mut bench, A, &[request(reference, 0, 60).emit()]);
        assert_eq!(bench.take(0), TransmitPollOutcome::Nothing);
        assert_eq!(bench.release(0), 1);
        assert_eq!(bench.take(0), TransmitPollOutcome::Nothing, "the transmit ring has no further frame");
    }
    assert_eq!(bench.backend.counters(A).malformed, 2);
    others_are_served(&mut bench);
}

#[test]
fn frame_of_endless_pieces_disables_its_interface() {
    let mut bench = SplitNetworkFixture::new(2, 1);
    let endless = TxRequest { flags: tx_flag::MORE, ..request(0, 0, 60) }.emit();
    let all: Vec<RingSlot> = (0..SLOTS).map(|_| endless).collect();
    write(&mut bench, A, &all);
    assert_eq!(bench.take(0), TransmitPollOutcome::Nothing);
    assert!(bench.backend.is_broken(A));
    others_are_served(&mut bench);
}

#[test]
fn unknown_extra_information_slot_disables_the_interface() {
    for extra in [[0; 12], [9; 12]] {
        let mut bench = SplitNetworkFixture::new(2, 1);
        let first = TxRequest { flags: tx_flag::EXTRA, ..request(0, 0, 60) };
        write(&mut bench, A, &[first.emit(), extra]);
        assert_eq!(bench.take(0), TransmitPollOutcome::Nothing);
        assert!(bench.backend.is_broken(A));
        others_are_served(&mut bench);
    }
}

#[test]
fn guest_that_takes_no_frame_responses_blocks_only_itself() {
    let mut bench = SplitNetworkFixture::new(2, 1);
    let reference = bench.grant(A, 0, false);
    let one = request(reference, 0, 60).emit();
    write(&mut bench, A, &[one].repeat(SLOTS as usize));
    let frames = bench.forward(0, |_| B) + bench.forward(0, |_| B);
    assert!(frames > 0);
    bench.release(0);
    write(&mut bench, A, &[one].repeat(SLOTS as usize + 1));
    while bench.take(0) != TransmitPollOutcome::Idle {}
    assert!(bench.backend.is_broken(A));
}

#[test]
fn unwritable_posted_page_drops_only_its_received_frame() {
    let mut bench = SplitNetworkFixture::new(2, 1);
    let read_only = bench.grant(A, 0, false);
    let page = &mut bench.shared.rings[0].receive;
    page.slots[0][4..8].copy_from_slice(&read_only.to_le_bytes());
    assert!(bench.arrive(&frame(60, 1), A) && bench.arrive(&frame(60, 2), A));
    bench.turn(0);
    assert_eq!(RxResponse::parse(&bench.shared.rings[0].receive.slots[0]).status, status::ERROR);
    let counters = *bench.backend.counters(A);
    assert_eq!((counters.received, counters.unwritable), (1, 1));
    assert_eq!(bench.received(A).len(), 1, "the front end skips the frame with an error");
    assert_eq!(bench.malformed(A), 1);
}

#[test]
fn guest_that_withdraws_posted_pages_loses_only_its_frames() {
    let mut bench = SplitNetworkFixture::new(2, 1);
    (0..4).for_each(|n| assert!(bench.arrive(&frame(60, n), A)));
    bench.shared.rings[0].receive.requests = 2;
    assert_eq!(bench.turn(0), 4);
    assert!(bench.backend.is_broken(A));
    assert!(!bench.arrive(&frame(60, 0), A), "a broken interface gets no frame");
    others_are_served(&mut bench);
}

#[test]
fn repeated_guest_events_queue_the_interface_once() {
    let mut bench = SplitNetworkFixture::new(2, 1);
    (0..10_000).for_each(|_| bench.backend.event(A));
    bench.backend.event(VifIndex(77));
    assert_eq!((bench.take(0), bench.take(0)), (TransmitPollOutcome::Nothing, TransmitPollOutcome::Idle));
}

/// Checks that random slots and indices of a guest's ring cause bounded work and do not affect the other
/// guest.
#[test]
fn random_ring_contents_do_not_panic_the_back_end() {
    let mut state = 1u64;
    let mut noise = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as u32
    };
    for _ in 0..300 {
        let mut bench = SplitNetworkFixture::new(2, 1);
        let references: Vec<u32> = (0..4).map(|page| bench.grant(A, page, false)).collect();
        let rings = &mut bench.shared.rings[0];
        for slot in rings.transmit.slots.iter_mut().chain(&mut rings.receive.slots) {
            slot.iter_mut().for_each(|byte| *byte = noise() as u8);
            if noise() % 2 == 0 {
                let likely = TxRequest {
                    reference: references[noise() as usize % 4],
                    offset: (noise() % 4_200) as u16,
                    flags: (noise() % 16) as u16,
                    id: noise() as u16,
                    size: (noise() % 5_000) as u16,
                };
                *slot = likely.emit();
            }
        }
        rings.transmit.requests = noise() % (SLOTS + 8);
        bench.backend.event(A);
        let tries = (0..).take_while(|_| bench.forward(0, |_| B) > 0 && bench.turn(0) > 0).count();
        assert!(tries <= SLOTS as usize);
        bench.release(0);
        while bench.turn(0) > 0 {}
        bench.received(B);
        assert_eq!((bench.backend.in_flight(), bench.malformed(B)), (0, 0));
    }
}
