//! Interfaces that change their worker while frames are under way: order is kept, each page is released by the worker
//! that mapped it, nothing is lost, and nobody hears of less.

use super::{A, B};
use crate::Offload;
use crate::back::{Taken, Vif};
use crate::tests::bench::{Bench, frame};
use alloc::vec;
use alloc::vec::Vec;
use proptest::prelude::{Strategy, prop, prop_assert, prop_assert_eq, proptest};

fn numbers(frames: &[(Vec<u8>, Offload)]) -> Vec<u8> {
    frames.iter().map(|(frame, _)| frame[14]).collect()
}

#[test]
fn frames_that_come_meanwhile_wait_for_those_before_them() {
    let mut bench = Bench::new(2, 2);
    (0..5).for_each(|n| assert!(bench.arrive(&frame(60, n), A)));
    assert!(bench.backend.move_to(A, 1) && !bench.backend.move_to(A, 1), "once");
    (5..9).for_each(|n| assert!(bench.arrive(&frame(60, n), A)));
    assert_eq!((bench.backend.arrive(A), bench.copy(1)), (None, 0), "five are still with the first");
    assert_eq!(bench.copy(0), 5);
    assert!(bench.backend.is_drained(A));
    assert_eq!((bench.backend.arrive(A), bench.backend.worker_of(A)), (Some(1), 1));
    assert_eq!((bench.copy(0), bench.copy(1)), (0, 4));
    assert_eq!(numbers(&bench.received(A)), (0..9).collect::<Vec<_>>());
}

#[test]
fn a_page_that_is_mapped_holds_its_interface_back() {
    let mut bench = Bench::new(2, 2);
    bench.send(A, &frame(3_000, 1), Offload::default()).unwrap();
    let Taken::Frame(_, key) = bench.take(0) else { panic!("no frame") };
    assert!(bench.backend.move_to(A, 1));
    bench.backend.discard(key);
    assert!(!bench.backend.is_drained(A), "its page waits to be released");
    assert_eq!((bench.release(1), bench.release(0)), (0, 1), "by who has mapped it");
    assert_eq!(bench.backend.arrive(A), Some(1));
    assert_eq!((bench.clean(A), bench.stuck(A)), (1, 0));
}

#[test]
fn what_a_guest_sends_meanwhile_is_taken_by_its_new_worker() {
    let mut bench = Bench::new(2, 2);
    for n in [1, 2] {
        bench.send(A, &frame(60, n), Offload::default()).unwrap();
    }
    assert!(bench.backend.move_to(A, 1));
    assert_eq!(bench.take(0), Taken::Idle, "the old one has it no more");
    bench.send(A, &frame(60, 3), Offload::default()).unwrap();
    assert_eq!(bench.take(1), Taken::Idle, "the new one has it not yet");
    assert_eq!(bench.backend.arrive(A), Some(1));
    assert_eq!((bench.forward(1, |_| B), bench.copy(1)), (3, 3));
    assert_eq!(numbers(&bench.received(B)), [1, 2, 3]);
}

#[test]
fn nonsense_is_not_moved() {
    let mut bench = Bench::new(2, 2);
    assert!(!bench.backend.move_to(Vif(9), 1) && !bench.backend.move_to(A, 2));
    assert!(!bench.backend.move_to(A, 0), "it is there");
    assert_eq!((bench.backend.arrive(A), bench.backend.arrive(Vif(9))), (None, None));
}

#[test]
fn a_silenced_interface_goes_too_and_stays_silent() {
    let mut bench = Bench::new(2, 2);
    bench.between.rings[0].transmit.requests = 9_999;
    bench.backend.event(A);
    assert_eq!(bench.take(0), Taken::Nothing);
    assert!(bench.backend.move_to(A, 1));
    assert_eq!(bench.backend.arrive(A), Some(1));
    bench.backend.event(A);
    assert_eq!(bench.take(1), Taken::Idle);
}

#[test]
fn events_are_withheld_up_to_so_many_frames_or_until_somebody_says() {
    let mut bench = Bench::new(1, 1);
    bench.backend.tell_every(3);
    let give = |bench: &mut Bench, frames: u8| {
        (0..frames).for_each(|n| assert!(bench.arrive(&frame(60, n), A)));
        bench.turn(0);
        (bench.events_to(A), bench.backend.withholds(0))
    };
    assert_eq!(give(&mut bench, 2), (0, true));
    assert_eq!(give(&mut bench, 1), (1, true), "three are there; the list is looked at later");
    bench.tell(0);
    assert_eq!((bench.events_to(A), bench.backend.withholds(0)), (1, false), "it has heard of them");
    assert_eq!(bench.received(A).len(), 3);
    assert_eq!(give(&mut bench, 1), (1, true));
    bench.tell(0);
    assert_eq!(bench.events_to(A), 2);
}

#[test]
fn a_guest_that_looks_by_itself_is_not_told() {
    let mut bench = Bench::new(1, 1);
    bench.backend.tell_every(4);
    assert!(bench.arrive(&frame(60, 1), A));
    bench.turn(0);
    bench.tell(0);
    for n in 2..9 {
        assert!(bench.arrive(&frame(60, n), A));
        bench.turn(0);
    }
    bench.tell(0);
    assert_eq!(bench.events_to(A), 1, "it has not asked again");
    assert_eq!(bench.received(A).len(), 8);
}

/// What may happen.
#[derive(Debug, Clone, Copy)]
enum Act {
    Arrive(u8),
    Send(u8),
    Move(u8, u8),
    Settle,
    Copy(u8),
    Forward(u8),
    Release(u8),
    Receive(u8),
}

fn acts() -> impl Strategy<Value = Vec<Act>> {
    let act = (0u8..8, 0u8..3, 0u8..3).prop_map(|(what, vif, worker)| match what {
        0 => Act::Arrive(vif),
        1 => Act::Send(vif),
        2 => Act::Move(vif, worker),
        3 => Act::Settle,
        4 => Act::Copy(worker),
        5 => Act::Forward(worker),
        6 => Act::Release(worker),
        _ => Act::Receive(vif),
    });
    prop::collection::vec(act, 0..300)
}

/// Three guests on three workers, and what each was sent and has received, by number.
struct World {
    bench: Bench,
    next: [u8; 3],
    sent: [Vec<u8>; 3],
    received: [Vec<u8>; 3],
}

impl World {
    /// What is for each guest is numbered on its way in: what guests send goes to the first.
    fn act(&mut self, act: Act) {
        let all = [Vif(0), Vif(1), Vif(2)];
        let Self { bench, next, sent, received } = self;
        match act {
            Act::Arrive(to) => {
                let at = usize::from(to);
                if bench.arrive(&frame(60, next[at]), all[at]) {
                    sent[at].push(next[at]);
                    next[at] = next[at].wrapping_add(1);
                }
            }
            Act::Send(from) => drop(bench.send(all[usize::from(from)], &frame(300, 0), Offload::default())),
            Act::Move(vif, to) => drop(bench.backend.move_to(all[usize::from(vif)], to.into())),
            Act::Settle => {
                for vif in all {
                    bench.backend.arrive(vif);
                }
            }
            Act::Copy(worker) => drop(bench.copy(worker.into())),
            Act::Forward(worker) => {
                // To nobody: it goes to a card.
                while let Taken::Frame(_, key) = bench.take(worker.into()) {
                    bench.backend.discard(key);
                }
            }
            Act::Release(worker) => drop(bench.release(worker.into())),
            Act::Receive(vif) => {
                let at = usize::from(vif);
                received[at].extend(numbers(&bench.received(all[at])));
                bench.clean(all[at]);
                bench.hear();
            }
        }
    }
}

proptest! {
    #[test]
    fn whatever_moves_when_every_frame_arrives_once_and_in_order(acts in acts()) {
        let mut world =
            World { bench: Bench::new(3, 3), next: [0; 3], sent: Default::default(), received: Default::default() };
        acts.into_iter().for_each(|act| world.act(act));
        for _ in 0..4 {
            for n in 0..3 {
                for act in [Act::Copy(n), Act::Forward(n), Act::Release(n), Act::Settle] {
                    world.act(act);
                }
            }
            (0..3).for_each(|n| world.act(Act::Receive(n)));
        }
        prop_assert_eq!(&world.received, &world.sent);
        prop_assert_eq!(world.bench.backend.under_way(), 0);
        for vif in [A, B, Vif(2)] {
            prop_assert!(world.bench.stuck(vif) == 0 && world.bench.unsent(vif) == 0);
        }
    }
}

#[test]
fn merged_segments_are_one_packet_and_counted() {
    let mut bench = Bench::new(1, 1);
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
