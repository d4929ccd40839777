//! Front ends that lie. None of it makes the back end loop, read what is not granted, or harm another guest.

use super::{A, B};
use crate::Offload;
use crate::back::{Taken, Vif};
use crate::message::{RxResponse, TxRequest, TxResponse, status, tx_flag};
use crate::ring::{SLOTS, Slot};
use crate::tests::bench::{Bench, frame};
use alloc::vec::Vec;

/// Writes requests straight into a guest's transmit ring, publishes them and rings.
fn write(bench: &mut Bench, vif: Vif, requests: &[Slot]) {
    let page = &mut bench.between.rings[usize::from(vif.0)].transmit;
    for request in requests {
        page.slots[(page.requests % SLOTS) as usize] = *request;
        page.requests = page.requests.wrapping_add(1);
    }
    bench.backend.event(vif);
}

/// The status of the response at an index of a guest's transmit ring.
fn answer(bench: &Bench, vif: Vif, index: usize) -> i16 {
    TxResponse::parse(&bench.between.rings[usize::from(vif.0)].transmit.slots[index]).status
}

fn request(reference: u32, offset: u16, size: u16) -> TxRequest {
    TxRequest { reference, offset, flags: 0, id: 0, size }
}

/// Another guest's frame still gets through.
fn others_are_served(bench: &mut Bench) {
    bench.send(B, &frame(60, 1), Offload::default()).unwrap();
    let taken = (0..8).map(|_| bench.take(0)).find(|taken| matches!(taken, Taken::Frame(B, _)));
    let Some(Taken::Frame(_, key)) = taken else { panic!("no frame of the other guest") };
    bench.backend.discard(key);
    assert_eq!(bench.backend.under_way(), 0);
}

#[test]
fn an_index_that_cannot_be_silences_its_interface_alone() {
    for claim in [SLOTS + 1, u32::MAX, 1 << 31] {
        let mut bench = Bench::new(2, 1);
        bench.between.rings[0].transmit.requests = claim;
        bench.backend.event(A);
        assert_eq!(bench.take(0), Taken::Nothing);
        assert!(bench.backend.is_broken(A) && !bench.backend.is_broken(B));
        bench.backend.event(A);
        assert_eq!(bench.take(0), Taken::Idle, "it is heard no more");
        others_are_served(&mut bench);
    }
}

#[test]
fn a_piece_outside_its_page_or_its_frame_is_answered_with_an_error() {
    let wrong = [(4_090, 60), (0, 13), (0, 4_097), (u16::MAX, u16::MAX)];
    for (offset, size) in wrong {
        let mut bench = Bench::new(2, 1);
        let reference = bench.grant(A, 0, false);
        write(&mut bench, A, &[request(reference, offset, size).emit()]);
        assert_eq!(bench.take(0), Taken::Nothing);
        assert_eq!(bench.release(0), 1);
        assert_eq!(answer(&bench, A, 0), status::ERROR, "{offset} {size}");
        others_are_served(&mut bench);
    }
}

#[test]
fn pieces_longer_than_the_whole_are_answered_with_errors() {
    let mut bench = Bench::new(2, 1);
    let reference = bench.grant(A, 0, false);
    let first = TxRequest { flags: tx_flag::MORE, ..request(reference, 0, 100) };
    write(&mut bench, A, &[first.emit(), request(reference, 0, 90).emit()]);
    assert_eq!(bench.take(0), Taken::Nothing);
    assert_eq!((bench.release(0), answer(&bench, A, 0), answer(&bench, A, 1)), (2, -1, -1));
    others_are_served(&mut bench);
}

#[test]
fn a_page_that_is_not_granted_is_not_read() {
    let mut bench = Bench::new(2, 1);
    for reference in [9_999, u32::MAX] {
        write(&mut bench, A, &[request(reference, 0, 60).emit()]);
        assert_eq!(bench.take(0), Taken::Nothing);
        assert_eq!(bench.release(0), 1);
        assert_eq!(bench.take(0), Taken::Nothing, "nothing more is there");
    }
    assert_eq!(bench.backend.counters(A).malformed, 2);
    others_are_served(&mut bench);
}

#[test]
fn a_frame_without_an_end_silences_its_interface() {
    let mut bench = Bench::new(2, 1);
    let endless = TxRequest { flags: tx_flag::MORE, ..request(0, 0, 60) }.emit();
    let all: Vec<Slot> = (0..SLOTS).map(|_| endless).collect();
    write(&mut bench, A, &all);
    assert_eq!(bench.take(0), Taken::Nothing);
    assert!(bench.backend.is_broken(A));
    others_are_served(&mut bench);
}

#[test]
fn extra_information_of_an_unknown_kind_silences_its_interface() {
    for extra in [[0; 12], [9; 12]] {
        let mut bench = Bench::new(2, 1);
        let first = TxRequest { flags: tx_flag::EXTRA, ..request(0, 0, 60) };
        write(&mut bench, A, &[first.emit(), extra]);
        assert_eq!(bench.take(0), Taken::Nothing);
        assert!(bench.backend.is_broken(A));
        others_are_served(&mut bench);
    }
}

#[test]
fn a_guest_that_never_takes_answers_back_stops_at_its_ring() {
    let mut bench = Bench::new(2, 1);
    let reference = bench.grant(A, 0, false);
    let one = request(reference, 0, 60).emit();
    write(&mut bench, A, &[one].repeat(SLOTS as usize));
    let frames = bench.forward(0, |_| B) + bench.forward(0, |_| B);
    assert!(frames > 0);
    bench.release(0);
    write(&mut bench, A, &[one].repeat(SLOTS as usize + 1));
    while bench.take(0) != Taken::Idle {}
    assert!(bench.backend.is_broken(A));
}

#[test]
fn pages_that_cannot_be_written_cost_their_guest_the_frame() {
    let mut bench = Bench::new(2, 1);
    let read_only = bench.grant(A, 0, false);
    let page = &mut bench.between.rings[0].receive;
    page.slots[0][4..8].copy_from_slice(&read_only.to_le_bytes());
    assert!(bench.arrive(&frame(60, 1), A) && bench.arrive(&frame(60, 2), A));
    bench.turn(0);
    assert_eq!(RxResponse::parse(&bench.between.rings[0].receive.slots[0]).status, status::ERROR);
    let counters = *bench.backend.counters(A);
    assert_eq!((counters.received, counters.unwritable), (1, 1));
    assert_eq!(bench.received(A).len(), 1, "the front end passes over the error");
    assert_eq!(bench.malformed(A), 1);
}

#[test]
fn a_guest_that_takes_back_what_it_posted_loses_its_frames_alone() {
    let mut bench = Bench::new(2, 1);
    (0..4).for_each(|n| assert!(bench.arrive(&frame(60, n), A)));
    bench.between.rings[0].receive.requests = 2;
    assert_eq!(bench.turn(0), 4);
    assert!(bench.backend.is_broken(A));
    assert!(!bench.arrive(&frame(60, 0), A), "and gets no more");
    others_are_served(&mut bench);
}

#[test]
fn no_number_of_events_makes_more_work_than_there_are_interfaces() {
    let mut bench = Bench::new(2, 1);
    (0..10_000).for_each(|_| bench.backend.event(A));
    bench.backend.event(Vif(77));
    assert_eq!((bench.take(0), bench.take(0)), (Taken::Nothing, Taken::Idle));
}

/// Any bytes in all slots, any index: bounded work, and nothing of the other guest's.
#[test]
fn noise_on_a_ring_is_survived() {
    let mut state = 1u64;
    let mut noise = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as u32
    };
    for _ in 0..300 {
        let mut bench = Bench::new(2, 1);
        let references: Vec<u32> = (0..4).map(|page| bench.grant(A, page, false)).collect();
        let rings = &mut bench.between.rings[0];
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
        assert_eq!((bench.backend.under_way(), bench.malformed(B)), (0, 0));
    }
}
