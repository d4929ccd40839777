//! Tests of interfaces that change workers with frames in flight: order is kept, each page is released by the worker
//! thread that mapped it, and no frame or event is lost.

use super::{A, B};
use crate::PendingOffloads;
use crate::back::{TransmitPollOutcome, VifIndex};
use crate::tests::bench::{SplitNetworkFixture, frame};
use alloc::vec;
use alloc::vec::Vec;
use proptest::prelude::{Strategy, prop, prop_assert, prop_assert_eq, proptest};

fn numbers(frames: &[(Vec<u8>, PendingOffloads)]) -> Vec<u8> {
    frames.iter().map(|(frame, _)| frame[14]).collect()
}

#[test]
fn new_frames_wait_for_earlier_ones_during_an_interface_move() {
    let mut bench = SplitNetworkFixture::new(2, 2);
    (0..5).for_each(|n| assert!(bench.arrive(&frame(60, n), A)));
    assert!(
        bench.backend.start_move(A, 1) && !bench.backend.start_move(A, 1),
        "a second move during a move is refused"
    );
    (5..9).for_each(|n| assert!(bench.arrive(&frame(60, n), A)));
    assert_eq!((bench.backend.finish_move(A), bench.copy(1)), (None, 0), "worker 0 still has five frames");
    assert_eq!(bench.copy(0), 5);
    assert!(bench.backend.is_drained(A));
    assert_eq!((bench.backend.finish_move(A), bench.backend.worker_of(A)), (Some(1), 1));
    assert_eq!((bench.copy(0), bench.copy(1)), (0, 4));
    assert_eq!(numbers(&bench.received(A)), (0..9).collect::<Vec<_>>());
}

#[test]
fn interface_changes_worker_only_after_unmapping_its_pages() {
    let mut bench = SplitNetworkFixture::new(2, 2);
    bench.send(A, &frame(3_000, 1), PendingOffloads::default()).unwrap();
    let TransmitPollOutcome::Frame(_, key) = bench.take(0) else { panic!("expected a frame") };
    assert!(bench.backend.start_move(A, 1));
    bench.backend.discard(key);
    assert!(!bench.backend.is_drained(A), "worker 0 still has a page to release");
    assert_eq!((bench.release(1), bench.release(0)), (0, 1), "worker 0 mapped the page and releases it");
    assert_eq!(bench.backend.finish_move(A), Some(1));
    assert_eq!((bench.clean(A), bench.stuck(A)), (1, 0));
}

#[test]
fn frames_sent_during_an_interface_move_use_the_new_worker() {
    let mut bench = SplitNetworkFixture::new(2, 2);
    for n in [1, 2] {
        bench.send(A, &frame(60, n), PendingOffloads::default()).unwrap();
    }
    assert!(bench.backend.start_move(A, 1));
    assert_eq!(bench.take(0), TransmitPollOutcome::Idle, "the old worker no longer serves the interface");
    bench.send(A, &frame(60, 3), PendingOffloads::default()).unwrap();
    assert_eq!(bench.take(1), TransmitPollOutcome::Idle, "the new worker does not serve the interface yet");
    assert_eq!(bench.backend.finish_move(A), Some(1));
    assert_eq!((bench.forward(1, |_| B), bench.copy(1)), (3, 3));
    assert_eq!(numbers(&bench.received(B)), [1, 2, 3]);
}

#[test]
fn interface_move_to_an_invalid_worker_is_rejected() {
    let mut bench = SplitNetworkFixture::new(2, 2);
    assert!(!bench.backend.start_move(VifIndex(9), 1) && !bench.backend.start_move(A, 2));
    assert!(!bench.backend.start_move(A, 0), "the interface has worker 0 already");
    assert_eq!((bench.backend.finish_move(A), bench.backend.finish_move(VifIndex(9))), (None, None));
}

#[test]
fn disabled_interface_stays_disabled_after_a_worker_change() {
    let mut bench = SplitNetworkFixture::new(2, 2);
    bench.shared.rings[0].transmit.requests = 9_999;
    bench.backend.event(A);
    assert_eq!(bench.take(0), TransmitPollOutcome::Nothing);
    assert!(bench.backend.start_move(A, 1));
    assert_eq!(bench.backend.finish_move(A), Some(1));
    bench.backend.event(A);
    assert_eq!(bench.take(1), TransmitPollOutcome::Idle);
}

#[test]
fn guest_events_are_withheld_until_a_full_batch_or_the_delay() {
    let mut bench = SplitNetworkFixture::new(1, 1);
    bench.backend.notify_every(3);
    let give = |bench: &mut SplitNetworkFixture, frames: u8| {
        (0..frames).for_each(|n| assert!(bench.arrive(&frame(60, n), A)));
        bench.turn(0);
        (bench.events_to(A), bench.backend.has_withheld_events(0))
    };
    assert_eq!(give(&mut bench, 2), (0, true));
    assert_eq!(
        give(&mut bench, 1),
        (1, true),
        "three frames send the event; the withheld list is cleared later"
    );
    bench.notify_withheld(0);
    assert_eq!(
        (bench.events_to(A), bench.backend.has_withheld_events(0)),
        (1, false),
        "the guest was notified of the three frames"
    );
    assert_eq!(bench.received(A).len(), 3);
    assert_eq!(give(&mut bench, 1), (1, true));
    bench.notify_withheld(0);
    assert_eq!(bench.events_to(A), 2);
}

#[test]
fn polling_guest_is_sent_no_event() {
    let mut bench = SplitNetworkFixture::new(1, 1);
    bench.backend.notify_every(4);
    assert!(bench.arrive(&frame(60, 1), A));
    bench.turn(0);
    bench.notify_withheld(0);
    for n in 2..9 {
        assert!(bench.arrive(&frame(60, n), A));
        bench.turn(0);
    }
    bench.notify_withheld(0);
    assert_eq!(bench.events_to(A), 1, "the guest has requested no further event");
    assert_eq!(bench.received(A).len(), 8);
}

/// Operation on interfaces and workers in the property test, with their indices.
#[derive(Debug, Clone, Copy)]
enum GuestWorkerOperation {
    Arrive(u8),
    Send(u8),
    Move(u8, u8),
    Settle,
    Copy(u8),
    Forward(u8),
    Release(u8),
    Receive(u8),
}

fn operations() -> impl Strategy<Value = Vec<GuestWorkerOperation>> {
    let operation = (0u8..8, 0u8..3, 0u8..3).prop_map(|(what, vif, worker)| match what {
        0 => GuestWorkerOperation::Arrive(vif),
        1 => GuestWorkerOperation::Send(vif),
        2 => GuestWorkerOperation::Move(vif, worker),
        3 => GuestWorkerOperation::Settle,
        4 => GuestWorkerOperation::Copy(worker),
        5 => GuestWorkerOperation::Forward(worker),
        6 => GuestWorkerOperation::Release(worker),
        _ => GuestWorkerOperation::Receive(vif),
    });
    prop::collection::vec(operation, 0..300)
}

/// Model of three guests on three workers, with the numbers of the frames that each guest was sent and has received.
struct GuestWorkerModel {
    bench: SplitNetworkFixture,
    next: [u8; 3],
    sent: [Vec<u8>; 3],
    received: [Vec<u8>; 3],
}

impl GuestWorkerModel {
    /// Performs an operation of the property test. Frames that arrive for a guest are numbered, and frames that guests
    /// send are dropped.
    fn operation(&mut self, operation: GuestWorkerOperation) {
        let all = [VifIndex(0), VifIndex(1), VifIndex(2)];
        let Self { bench, next, sent, received } = self;
        match operation {
            GuestWorkerOperation::Arrive(to) => {
                let at = usize::from(to);
                if bench.arrive(&frame(60, next[at]), all[at]) {
                    sent[at].push(next[at]);
                    next[at] = next[at].wrapping_add(1);
                }
            }
            GuestWorkerOperation::Send(from) => {
                let _ = bench.send(all[usize::from(from)], &frame(300, 0), PendingOffloads::default());
            }
            GuestWorkerOperation::Move(vif, to) => {
                let _ = bench.backend.start_move(all[usize::from(vif)], to.into());
            }
            GuestWorkerOperation::Settle => {
                for vif in all {
                    bench.backend.finish_move(vif);
                }
            }
            GuestWorkerOperation::Copy(worker) => drop(bench.copy(worker.into())),
            GuestWorkerOperation::Forward(worker) => {
                // The destination is a card: drop the frame.
                while let TransmitPollOutcome::Frame(_, key) = bench.take(worker.into()) {
                    bench.backend.discard(key);
                }
            }
            GuestWorkerOperation::Release(worker) => drop(bench.release(worker.into())),
            GuestWorkerOperation::Receive(vif) => {
                let at = usize::from(vif);
                received[at].extend(numbers(&bench.received(all[at])));
                bench.clean(all[at]);
                bench.deliver_events();
            }
        }
    }
}

proptest! {
    #[test]
    fn moving_interfaces_between_workers_keeps_all_frames_in_order(operations in operations()) {
        let mut world =
            GuestWorkerModel { bench: SplitNetworkFixture::new(3, 3), next: [0; 3], sent: Default::default(), received: Default::default() };
        operations.into_iter().for_each(|operation| world.operation(operation));
        for _ in 0..4 {
            for n in 0..3 {
                for operation in [GuestWorkerOperation::Copy(n), GuestWorkerOperation::Forward(n), GuestWorkerOperation::Release(n), GuestWorkerOperation::Settle] {
                    world.operation(operation);
                }
            }
            (0..3).for_each(|n| world.operation(GuestWorkerOperation::Receive(n)));
        }
        prop_assert_eq!(&world.received, &world.sent);
        prop_assert_eq!(world.bench.backend.in_flight(), 0);
        for vif in [A, B, VifIndex(2)] {
            prop_assert!(world.bench.stuck(vif) == 0 && world.bench.unsent(vif) == 0);
        }
    }
}

#[test]
fn merged_tcp_segments_are_received_and_counted_as_one_packet() {
    let mut bench = SplitNetworkFixture::new(1, 1);
    bench.merge_segments(A);
    let segment = |sequence: u32| {
        let mut segment = vec![0; 66 + 100];
        segment[12..15].copy_from_slice(&[8, 0, 0x45]);
        segment[16..18].copy_from_slice(&152u16.to_be_bytes());
        segment[23] = 6;
        segment[38..42].copy_from_slice(&sequence.to_be_bytes());
        segment[46] = 0x80;
        segment
    };
    for sequence in [0, 100, 200, 999] {
        assert!(bench.arrive(&segment(sequence), A));
    }
    bench.turn(0);
    let lengths: Vec<usize> = bench.received(A).iter().map(|(frame, _)| frame.len()).collect();
    assert_eq!(lengths, [366, 166]);
}
