//! Tests front ends and a back end over real grant tables: frame order, page release, moving interfaces, and
//! hostile front ends.

mod bench;
mod hostile;
mod moving;

use crate::back::{FrameHandle, TransmitPollOutcome};
use crate::front::TransmitError;
use crate::ring::SLOTS;
use crate::{MAX_FRAME, PendingOffloads, back::VifIndex};
use alloc::vec::Vec;
use bench::{SplitNetworkFixture, frame};

const A: VifIndex = VifIndex(0);
const B: VifIndex = VifIndex(1);

#[test]
fn transmitted_frame_reaches_another_guest() {
    let mut bench = SplitNetworkFixture::new(2, 1);
    let sent = frame(700, 1);
    bench.send(A, &sent, PendingOffloads::default()).unwrap();
    assert_eq!(bench.forward(0, |_| B), 1);
    assert_eq!(bench.turn(0), 1);
    assert_eq!(bench.received(B), [(sent, PendingOffloads::default())]);
    assert_eq!(bench.received(A), []);
}

#[test]
fn frame_of_several_pages_arrives_whole_with_its_offloads() {
    let mut bench = SplitNetworkFixture::new(2, 1);
    let offload = PendingOffloads { csum_blank: true, segment: Some(1_448) };
    for length in [4_096, 4_097, 8_193, MAX_FRAME] {
        let sent = frame(length, 2);
        bench.send(A, &sent, offload).unwrap();
        bench.forward(0, |_| B);
        bench.turn(0);
        assert_eq!(bench.received(B), [(sent, offload)], "{length} bytes");
        bench.clean(A);
    }
}

#[test]
fn frames_to_a_guest_keep_their_order() {
    let mut bench = SplitNetworkFixture::new(3, 2);
    let numbered = |n: u8| frame(64 + usize::from(n), n);
    for n in 0..40 {
        bench.send(A, &numbered(n), PendingOffloads::default()).unwrap();
    }
    while bench.forward(0, |frame| if frame[14] % 3 == 0 { VifIndex(2) } else { B }) > 0 {
        bench.turn(0);
        bench.turn(1);
    }
    let order = |bench: &mut SplitNetworkFixture, vif| {
        bench.received(vif).iter().map(|(frame, _)| frame[14]).collect::<Vec<_>>()
    };
    assert_eq!(order(&mut bench, VifIndex(2)), (0..40).filter(|n| n % 3 == 0).collect::<Vec<_>>());
    assert_eq!(order(&mut bench, B), (0..40).filter(|n| n % 3 != 0).collect::<Vec<_>>());
}

#[test]
fn granted_page_is_released_by_the_worker_that_mapped_it() {
    let mut bench = SplitNetworkFixture::new(2, 2);
    bench.send(A, &frame(4_000, 1), PendingOffloads::default()).unwrap();
    bench.forward(0, |_| B);
    assert_eq!(bench.backend.worker_of(B), 1);
    assert_eq!(bench.copy(1), 1, "worker 1 copies the frame");
    assert!(!bench.backend.may_transmit(1), "worker 1 has no page to release");
    assert_eq!(bench.clean(A), 0, "worker 0 still has the page mapped");
    assert!(bench.backend.may_transmit(0));
    assert_eq!(bench.release(0), 1);
    assert_eq!((bench.clean(A), bench.stuck(A)), (1, 0));
}

#[test]
fn page_of_a_headers_only_frame_is_released_before_delivery() {
    let mut bench = SplitNetworkFixture::new(2, 1);
    bench.send(A, &frame(66, 1), PendingOffloads::default()).unwrap();
    let TransmitPollOutcome::Frame(from, key) = bench.take(0) else { panic!("expected a frame") };
    assert_eq!((from, bench.release(0)), (A, 1));
    assert_eq!(bench.clean(A), 1);
    assert!(bench.deliver(key, B));
    bench.turn(0);
    assert_eq!(bench.received(B), [(frame(66, 1), PendingOffloads::default())]);
}

#[test]
fn headers_overwritten_after_inspection_reach_no_receiver() {
    let mut bench = SplitNetworkFixture::new(2, 1);
    bench.send(A, &frame(300, 1), PendingOffloads::default()).unwrap();
    let TransmitPollOutcome::Frame(_, key) = bench.take(0) else { panic!("expected a frame") };
    let looked_at = bench.backend.head(&key).to_vec();
    bench.overwrite_pages(A);
    assert!(bench.deliver(key, B));
    bench.turn(0);
    let (received, _) = bench.received(B).remove(0);
    assert_eq!(received[..looked_at.len()], looked_at);
    assert_ne!(received, frame(300, 1), "bytes behind the inspected headers may change");
}

#[test]
fn frames_queued_for_a_guest_never_exceed_its_posted_pages() {
    let mut bench = SplitNetworkFixture::new(1, 1);
    let fill =
        |bench: &mut SplitNetworkFixture, n: u32| (0..n).filter(|_| bench.arrive(&frame(60, 0), A)).count();
    assert_eq!(fill(&mut bench, SLOTS + 10), SLOTS as usize);
    assert_eq!(bench.backend.counters(A).no_room, 10);
    assert_eq!(bench.backend.in_flight(), SLOTS as usize);
    while bench.turn(0) > 0 {}
    assert_eq!(fill(&mut bench, 1), 0, "the guest has posted no page since");
    assert_eq!(bench.received(A).len(), SLOTS as usize);
    assert_eq!(fill(&mut bench, SLOTS), SLOTS as usize);
}

#[test]
fn full_transmit_ring_accepts_frames_again_after_an_event() {
    let mut bench = SplitNetworkFixture::new(2, 1);
    let small = frame(60, 0);
    let sent = (0..=SLOTS).take_while(|_| bench.send(A, &small, PendingOffloads::default()).is_ok()).count();
    assert_eq!(sent, SLOTS as usize);
    assert_eq!(bench.send(A, &small, PendingOffloads::default()), Err(TransmitError::Full));
    bench.clean(A);
    let before = bench.events_to(A);
    while bench.forward(0, |_| B) > 0 {}
    bench.release(0);
    assert_eq!(bench.events_to(A) - before, 1, "one event for half of the pages");
    assert!(bench.clean(A) > 0);
    assert_eq!(bench.send(A, &small, PendingOffloads::default()), Ok(()));
    assert_eq!(bench.send(A, &[0; 13], PendingOffloads::default()), Err(TransmitError::Length(13)));
}

#[test]
fn guest_gets_one_event_per_frame_batch_and_none_while_polling() {
    let mut bench = SplitNetworkFixture::new(1, 1);
    (0..10).for_each(|n| assert!(bench.arrive(&frame(60, n), A)));
    bench.turn(0);
    assert_eq!(bench.events_to(A), 1);
    (0..10).for_each(|n| assert!(bench.arrive(&frame(60, n), A)));
    bench.turn(0);
    assert_eq!(bench.events_to(A), 1, "the guest has requested no further event");
    assert_eq!(bench.received(A).len(), 20);
    assert!(bench.arrive(&frame(60, 0), A));
    bench.turn(0);
    assert_eq!(bench.events_to(A), 2);
}

/// Makes the back end publish a frame after the front end's last poll and before its event request: the check
/// after the request finds the frame.
#[test]
fn frame_sent_before_a_guest_requests_events_is_not_lost() {
    let mut bench = SplitNetworkFixture::new(1, 1);
    assert!(bench.arrive(&frame(60, 1), A));
    bench.turn(0);
    assert_eq!(bench.take_all(A).len(), 1);
    assert!(bench.arrive(&frame(60, 2), A));
    bench.turn(0);
    assert_eq!(bench.events_to(A), 1);
    assert!(bench.receive_done(A), "a frame before the event request needs another poll");
    assert_eq!(bench.take_all(A).len(), 1);
    assert!(!bench.receive_done(A));
}

#[test]
fn interfaces_of_one_back_end_worker_send_frames_in_turn() {
    let mut bench = SplitNetworkFixture::new(3, 1);
    for vif in [A, B] {
        (0..3).for_each(|n| bench.send(vif, &frame(60, n), PendingOffloads::default()).unwrap());
    }
    let mut order = Vec::new();
    while let TransmitPollOutcome::Frame(from, key) = bench.take(0) {
        order.push(from);
        bench.backend.discard(key);
    }
    assert_eq!(order, [A, B, A, B, A, B]);
}

#[test]
fn flooded_frame_is_copied_to_each_guest() {
    let mut bench = SplitNetworkFixture::new(3, 1);
    bench.send(A, &frame(1_500, 9), PendingOffloads::default()).unwrap();
    let TransmitPollOutcome::Frame(_, key) = bench.take(0) else { panic!("expected a frame") };
    let copy: FrameHandle = bench.duplicate(&key).unwrap();
    assert!(bench.deliver(copy, B) && bench.deliver(key, VifIndex(2)));
    bench.turn(0);
    for vif in [B, VifIndex(2)] {
        assert_eq!(bench.received(vif), [(frame(1_500, 9), PendingOffloads::default())]);
    }
    bench.release(0);
    assert_eq!((bench.backend.in_flight(), bench.clean(A)), (0, 1));
}
