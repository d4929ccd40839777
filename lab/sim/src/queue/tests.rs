//! Tests of event order, cancellation and rescheduling.

use std::collections::BTreeMap;
use std::vec::Vec;

use proptest::collection::vec;
use proptest::prelude::{Strategy, any, prop_oneof, proptest};

use super::*;

fn at(picos: u64) -> VirtualInstant {
    VirtualInstant::from_picos(picos)
}

fn drain<E>(queue: &mut EventQueue<E>) -> Vec<E> {
    core::iter::from_fn(|| queue.pop()).map(|(_, event)| event).collect()
}

#[test]
fn simultaneous_events_keep_their_scheduling_order() {
    let mut queue = EventQueue::new();
    for name in ["a", "b", "c", "d", "e", "f"] {
        queue.schedule(at(10), name);
    }
    queue.schedule(at(5), "first");
    assert_eq!(drain(&mut queue), ["first", "a", "b", "c", "d", "e", "f"]);
}

#[test]
fn key_of_a_cancelled_event_matches_no_later_event() {
    let mut queue = EventQueue::new();
    let timer = queue.schedule(at(10), "timer");
    assert_eq!(queue.cancel(timer), Some("timer"));
    let other = queue.schedule(at(10), "takes the same slot");
    assert_eq!(queue.cancel(timer), None);
    assert!(!queue.reschedule(timer, at(1)));
    assert_eq!(queue.pop(), Some((at(10), "takes the same slot")));
    assert_eq!(queue.cancel(other), None);
}

#[test]
fn rescheduled_event_comes_after_others_of_its_new_time() {
    let mut queue = EventQueue::new();
    let timer = queue.schedule(at(10), "timer");
    queue.schedule(at(20), "there");
    assert!(queue.reschedule(timer, at(20)));
    assert_eq!(drain(&mut queue), ["there", "timer"]);
}

#[test]
fn replaced_event_keeps_its_order_only_if_its_time_is_unchanged() {
    let mut queue = EventQueue::new();
    let key = queue.replace(None, Some(at(10)), "look");
    queue.schedule(at(20), "there");
    let key = queue.replace(key, Some(at(20)), "look again");
    assert_eq!(drain(&mut queue), ["there", "look again"]);
    let key = queue.replace(key, Some(at(30)), "look once more");
    queue.schedule(at(30), "there");
    let key = queue.replace(key, Some(at(30)), "look the last time");
    assert_eq!(drain(&mut queue), ["look the last time", "there"]);
    let key = queue.replace(key, Some(at(40)), "never");
    assert_eq!((queue.replace(key, None, ""), queue.len()), (None, 0));
}

#[test]
fn event_scheduled_in_the_past_is_due_now() {
    let mut queue = EventQueue::new();
    queue.schedule(at(10), "present");
    queue.pop();
    queue.schedule(at(3), "late");
    assert_eq!(queue.pop(), Some((at(10), "late")));
}

#[test]
fn popping_an_empty_event_queue_advances_time_to_the_limit() {
    let mut queue = EventQueue::new();
    queue.schedule(at(10), ());
    assert_eq!(queue.pop_before(at(10)), None);
    assert_eq!((queue.now(), queue.len()), (at(10), 1));
    assert_eq!(queue.pop_before(at(11)), Some((at(10), ())));
}

#[test]
fn rescheduling_a_timer_does_not_grow_the_event_queue() {
    let mut queue = EventQueue::new();
    let timer = queue.schedule(at(1_000_000), "timer");
    for packet in 0..10_000 {
        queue.reschedule(timer, at(1_000_000 + packet));
    }
    for packet in 0..10_000 {
        let key = queue.schedule(at(packet), "packet");
        queue.cancel(key);
    }
    assert_eq!((queue.len(), queue.slots.len()), (1, 2));
}

#[derive(Clone, Debug)]
enum EventQueueOperation {
    Schedule(u64),
    Cancel(usize),
    Reschedule(usize, u64),
    Pop,
}

fn operation() -> impl Strategy<Value = EventQueueOperation> {
    prop_oneof![
        4 => (0..50_u64).prop_map(EventQueueOperation::Schedule),
        1 => any::<usize>().prop_map(EventQueueOperation::Cancel),
        1 => (any::<usize>(), 0..50_u64).prop_map(|(which, time)| EventQueueOperation::Reschedule(which, time)),
        2 => proptest::prelude::Just(EventQueueOperation::Pop),
    ]
}

proptest! {
    /// Performs random operations on the event queue and on a map sorted by (time, sequence), and compares
    /// both.
    #[test]
    fn event_queue_operations_match_a_sorted_map(operations in vec(operation(), 0..300)) {
        let mut queue = EventQueue::new();
        let mut model: BTreeMap<(u64, usize), usize> = BTreeMap::new();
        let mut keys: Vec<(EventKey, Option<(u64, usize)>)> = Vec::new();
        for (sequence, act) in operations.into_iter().enumerate() {
            let now = queue.now().picos();
            match act {
                EventQueueOperation::Schedule(time) => {
                    let key = queue.schedule(at(time), keys.len());
                    model.insert((time.max(now), sequence), keys.len());
                    keys.push((key, Some((time.max(now), sequence))));
                }
                EventQueueOperation::Cancel(which) if !keys.is_empty() => {
                    let which = which % keys.len();
                    let (key, due) = &mut keys[which];
                    let known = due.take().and_then(|due| model.remove(&due));
                    assert_eq!(queue.cancel(*key), known);
                }
                EventQueueOperation::Reschedule(which, time) if !keys.is_empty() => {
                    let which = which % keys.len();
                    let (key, due) = &mut keys[which];
                    let known = due.and_then(|due| model.remove(&due));
                    assert_eq!(queue.reschedule(*key, at(time)), known.is_some());
                    if known.is_some() {
                        *due = Some((time.max(now), sequence));
                        model.insert((time.max(now), sequence), which);
                    }
                }
                EventQueueOperation::Pop => {
                    let known = model.pop_first();
                    if let Some((_, which)) = known {
                        keys[which].1 = None;
                    }
                    assert_eq!(queue.pop(), known.map(|((time, _), which)| (at(time), which)));
                }
                EventQueueOperation::Cancel(_) | EventQueueOperation::Reschedule(..) => {}
            }
            assert_eq!(queue.len(), model.len());
            assert_eq!(queue.next_at().map(VirtualInstant::picos), model.keys().next().map(|(time, _)| *time));
        }
    }
}

#[test]
fn queue_is_empty_without_pending_events() {
    let mut queue = EventQueue::new();
    assert!(queue.is_empty());
    queue.schedule(at(10), "only");
    assert!(!queue.is_empty());
    queue.pop();
    assert!(queue.is_empty());
}
