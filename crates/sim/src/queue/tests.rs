//! The order of events, and the events that never happen.

use std::collections::BTreeMap;
use std::vec::Vec;

use proptest::collection::vec;
use proptest::prelude::{Strategy, any, prop_oneof, proptest};

use super::*;

fn at(picos: u64) -> Instant {
    Instant::from_picos(picos)
}

fn drain<E>(queue: &mut EventQueue<E>) -> Vec<E> {
    core::iter::from_fn(|| queue.pop()).map(|(_, event)| event).collect()
}

#[test]
fn events_of_the_same_time_happen_in_the_order_they_were_scheduled() {
    let mut queue = EventQueue::new();
    for name in ["a", "b", "c", "d", "e", "f"] {
        queue.schedule(at(10), name);
    }
    queue.schedule(at(5), "first");
    assert_eq!(drain(&mut queue), ["first", "a", "b", "c", "d", "e", "f"]);
}

#[test]
fn a_cancelled_event_does_not_happen_and_its_key_fits_nothing_else() {
    let mut queue = EventQueue::new();
    let timer = queue.schedule(at(10), "timer");
    assert_eq!(queue.cancel(timer), Some("timer"));
    let other = queue.schedule(at(10), "takes the same place");
    assert_eq!(queue.cancel(timer), None);
    assert!(!queue.reschedule(timer, at(1)));
    assert_eq!(queue.pop(), Some((at(10), "takes the same place")));
    assert_eq!(queue.cancel(other), None);
}

#[test]
fn a_moved_event_comes_after_those_already_there() {
    let mut queue = EventQueue::new();
    let timer = queue.schedule(at(10), "timer");
    queue.schedule(at(20), "there");
    assert!(queue.reschedule(timer, at(20)));
    assert_eq!(drain(&mut queue), ["there", "timer"]);
}

#[test]
fn an_event_put_in_the_place_of_another_keeps_its_turn_only_at_its_time() {
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
fn what_is_scheduled_for_the_past_happens_now() {
    let mut queue = EventQueue::new();
    queue.schedule(at(10), "present");
    queue.pop();
    queue.schedule(at(3), "late");
    assert_eq!(queue.pop(), Some((at(10), "late")));
}

#[test]
fn time_goes_on_to_the_end_asked_for_when_nothing_happens_before_it() {
    let mut queue = EventQueue::new();
    queue.schedule(at(10), ());
    assert_eq!(queue.pop_before(at(10)), None);
    assert_eq!((queue.now(), queue.len()), (at(10), 1));
    assert_eq!(queue.pop_before(at(11)), Some((at(10), ())));
}

#[test]
fn a_timer_set_anew_for_every_packet_leaves_nothing_behind() {
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
enum Act {
    Schedule(u64),
    Cancel(usize),
    Reschedule(usize, u64),
    Pop,
}

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        4 => (0..50_u64).prop_map(Act::Schedule),
        1 => any::<usize>().prop_map(Act::Cancel),
        1 => (any::<usize>(), 0..50_u64).prop_map(|(which, time)| Act::Reschedule(which, time)),
        2 => proptest::prelude::Just(Act::Pop),
    ]
}

proptest! {
    /// The queue against a sorted map of (time, sequence).
    #[test]
    fn any_sequence_of_acts_gives_the_order_of_a_sorted_map(acts in vec(act(), 0..300)) {
        let mut queue = EventQueue::new();
        let mut model: BTreeMap<(u64, usize), usize> = BTreeMap::new();
        let mut keys: Vec<(EventKey, Option<(u64, usize)>)> = Vec::new();
        for (sequence, act) in acts.into_iter().enumerate() {
            let now = queue.now().picos();
            match act {
                Act::Schedule(time) => {
                    let key = queue.schedule(at(time), keys.len());
                    model.insert((time.max(now), sequence), keys.len());
                    keys.push((key, Some((time.max(now), sequence))));
                }
                Act::Cancel(which) if !keys.is_empty() => {
                    let which = which % keys.len();
                    let (key, place) = &mut keys[which];
                    let known = place.take().and_then(|place| model.remove(&place));
                    assert_eq!(queue.cancel(*key), known);
                }
                Act::Reschedule(which, time) if !keys.is_empty() => {
                    let which = which % keys.len();
                    let (key, place) = &mut keys[which];
                    let known = place.and_then(|place| model.remove(&place));
                    assert_eq!(queue.reschedule(*key, at(time)), known.is_some());
                    if known.is_some() {
                        *place = Some((time.max(now), sequence));
                        model.insert((time.max(now), sequence), which);
                    }
                }
                Act::Pop => {
                    let known = model.pop_first();
                    if let Some((_, which)) = known {
                        keys[which].1 = None;
                    }
                    assert_eq!(queue.pop(), known.map(|((time, _), which)| (at(time), which)));
                }
                Act::Cancel(_) | Act::Reschedule(..) => {}
            }
            assert_eq!(queue.len(), model.len());
        }
    }
}
