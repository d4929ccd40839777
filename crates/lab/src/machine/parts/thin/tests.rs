//! Requests are served once, in order, and a visit's work is bounded.

use super::admin::{BYTES, Firmware, Found, MESSAGE_FROM_VF, Message, Queue, flag};
use super::monitor::{Limits, Monitor};
use proptest::prelude::{any, proptest};

const SLOTS: u16 = 32;

fn machine(limits: Limits) -> (Vec<u8>, Firmware, Monitor) {
    let mut ring = vec![0; usize::from(SLOTS) * BYTES];
    let queue = Queue::new(SLOTS, 4_096, &mut ring);
    (ring, Firmware::new(SLOTS), Monitor::new(queue, limits))
}

fn message(vf: u16, operation: u32) -> Message {
    Message { vf, operation, length: 24 }
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
}

#[test]
fn a_reset_cancels_what_that_vf_had_asked_before_and_nothing_else() {
    let (mut ring, mut card, mut monitor) = machine(LIMITS);
    for (vf, operation) in [(1, 10), (2, 20), (1, 11)] {
        assert!(card.send(message(vf, operation), &mut ring));
    }
    let mut resets = 1 << 1;
    let visit = monitor.visit(&mut ring, &mut card, &mut resets);
    assert_eq!((visit.served, resets, monitor.dropped), (vec![message(2, 20)], 0, 2));
    card.send(message(1, 12), &mut ring);
    assert_eq!(monitor.visit(&mut ring, &mut card, &mut resets).served, [message(1, 12)]);
}

#[test]
fn one_processor_at_a_time_is_in_the_thread() {
    let (_, _, mut monitor) = machine(LIMITS);
    assert!(monitor.enter() && !monitor.enter());
    monitor.leave();
    assert!(monitor.enter());
}

#[test]
fn a_posted_descriptor_is_as_the_datasheet_has_it() {
    let mut ring = vec![0xff; 4 * BYTES];
    Queue::new(4, 4_096, &mut ring);
    assert_eq!(ring[..8], [0, 0x12, 0, 0, 0, 0x10, 0, 0], "BUF and LB; 4,096 bytes");
}

#[test]
fn an_error_another_operation_or_a_vf_that_is_none_is_no_message() {
    for (at, value) in [(0, flag::DONE | flag::ERROR), (2, 0x0102), (6, 128), (4, 5_000)] {
        let (mut ring, mut card, mut monitor) = machine(LIMITS);
        card.send(message(3, 1), &mut ring);
        ring[at..at + 2].copy_from_slice(&value.to_le_bytes());
        assert_eq!(monitor.visit(&mut ring, &mut card, &mut 0).served, []);
        assert_eq!(monitor.strange, 1);
    }
}

proptest! {
    /// Whatever is in memory, a descriptor is looked at once and posted again.
    #[test]
    fn any_descriptor_is_taken_once(bytes in any::<[u8; BYTES]>()) {
        let mut ring = vec![0; 4 * BYTES];
        let mut queue = Queue::new(4, 512, &mut ring);
        ring[..BYTES].copy_from_slice(&bytes);
        let done = u16::from(bytes[0]) & flag::DONE != 0;
        let found = queue.take(&mut ring);
        assert_eq!(found.is_some(), done);
        if let Some(Found::Message(message)) = found {
            assert!(message.vf < 128 && message.length <= 512);
            assert_eq!(u16::from_le_bytes([bytes[2], bytes[3]]), MESSAGE_FROM_VF);
        }
        assert_eq!(queue.take(&mut ring), None);
    }
}
