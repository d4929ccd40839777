//! Requests are served once, in order, and a visit's work is bounded.

use super::admin::{Firmware, Sent, VFS};
use super::monitor::Monitor;
use avf::admin::SIZE;
use driver::avf::inbox::{Inbox, Limits};
use driver::avf::queue::{Message, Queue};

const SLOTS: u16 = 32;

fn machine(limits: Limits) -> (Vec<u8>, Firmware, Monitor) {
    let mut ring = vec![0; usize::from(SLOTS) * SIZE];
    let queue = Queue::new(SLOTS, 4_096, 0, VFS, ring.as_mut_slice());
    (ring, Firmware::new(SLOTS), Monitor::new(Inbox::new(queue, limits, VFS)))
}

fn message(vf: u16, operation: u32) -> Sent {
    Sent { vf, operation, length: 24 }
}

/// What of served messages their senders know.
fn asked(served: &[Message]) -> Vec<Sent> {
    served.iter().map(|m| Sent { vf: m.vf, operation: m.operation, length: m.length }).collect()
}

const LIMITS: Limits = Limits { messages: 8, resets_every: 1 };

#[test]
fn messages_are_served_once_in_order_for_many_turns_of_the_ring() {
    let (mut ring, mut card, mut monitor) = machine(LIMITS);
    let mut seen = Vec::new();
    for n in 0..1_000 {
        assert!(card.send(message((n % 5) as u16, n), &mut ring));
        if n % 7 == 0 {
            seen.extend(monitor.visit(&mut ring, &mut card, &mut 0).served);
        }
    }
    loop {
        let served = monitor.visit(&mut ring, &mut card, &mut 0).served;
        assert!(served.len() <= 8, "bounded");
        if served.is_empty() {
            break;
        }
        seen.extend(served);
    }
    assert!(seen.iter().map(|message| message.operation).eq(0..1_000));
}

#[test]
fn a_full_queue_refuses_and_what_was_refused_is_not_served() {
    let (mut ring, mut card, mut monitor) = machine(LIMITS);
    let sent = (0..100).filter(|n| card.send(message(1, *n), &mut ring)).count();
    assert_eq!((sent, card.refused), (31, 69));
    let mut served = 0;
    for _ in 0..4 {
        served += monitor.visit(&mut ring, &mut card, &mut 0).served.len();
    }
    assert_eq!(served, 31);
    let again = (0..100).filter(|n| card.send(message(1, *n), &mut ring)).count();
    assert_eq!(again, 31, "as many as were given back");
}

#[test]
fn a_reset_cancels_what_that_vf_had_asked_before_and_nothing_else() {
    let (mut ring, mut card, mut monitor) = machine(LIMITS);
    for (vf, operation) in [(1, 10), (2, 20), (1, 11)] {
        assert!(card.send(message(vf, operation), &mut ring));
    }
    let mut resets = 1 << 1;
    let visit = monitor.visit(&mut ring, &mut card, &mut resets);
    assert_eq!((asked(&visit.served), resets, monitor.dropped()), (vec![message(2, 20)], 0, 2));
    card.send(message(1, 12), &mut ring);
    let visit = monitor.visit(&mut ring, &mut card, &mut resets);
    assert_eq!(asked(&visit.served), [message(1, 12)]);
}

#[test]
fn one_processor_at_a_time_is_in_the_thread() {
    let (_, _, mut monitor) = machine(LIMITS);
    assert!(monitor.enter() && !monitor.enter());
    monitor.leave();
    assert!(monitor.enter());
}
