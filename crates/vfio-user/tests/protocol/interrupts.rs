//! Tests `DEVICE_SET_IRQS`: every combination of data, action and range.

use std::rc::Rc;

use crate::script::{EINVAL, ENOTSUP, ScriptedSession, fds, set_irqs, words};

const SET: u16 = 8;
const NONE: u32 = 1;
const BOOL: u32 = 2;
const EVENTFD: u32 = 4;
const MASK: u32 = 8;
const UNMASK: u32 = 16;
const TRIGGER: u32 = 32;
const MSIX: u32 = 2;

#[test]
fn client_assigns_and_replaces_eventfds_of_interrupts() {
    let mut script = ScriptedSession::agreed();
    let first = fds(&[10, 11]);
    script.ask_with(SET, &set_irqs(EVENTFD | TRIGGER, MSIX, 1, 2), first.clone());
    script.ask_with(SET, &set_irqs(EVENTFD | TRIGGER, MSIX, 1, 1), fds(&[20]));
    let numbers: Vec<_> = script.device.vectors.iter().map(|fd| fd.as_ref().map(|fd| **fd)).collect();
    assert_eq!(numbers, [None, Some(20), Some(11)]);
    assert_eq!(Rc::strong_count(&first[0]), 1, "the replaced one is closed");
}

#[test]
fn interrupt_vectors_set_without_eventfds_lose_the_old_ones() {
    let mut script = ScriptedSession::agreed();
    script.ask_with(SET, &set_irqs(EVENTFD | TRIGGER, MSIX, 0, 3), fds(&[1, 2, 3]));
    script.said();
    script.ask(SET, &set_irqs(EVENTFD | TRIGGER, MSIX, 0, 1));
    assert_eq!(script.said(), ["Deassign { index: 2, vectors: 0..1 }"]);
}

#[test]
fn interrupt_type_is_disabled_by_an_empty_vector_range() {
    let mut script = ScriptedSession::agreed();
    let eventfds = fds(&[1, 2, 3]);
    script.ask_with(SET, &set_irqs(EVENTFD | TRIGGER, MSIX, 0, 3), eventfds.clone());
    script.ask(SET, &set_irqs(NONE | TRIGGER, MSIX, 0, 0));
    assert!(eventfds.iter().all(|fd| Rc::strong_count(fd) == 1));
    for index in [0, 1, 3, 4] {
        script.ask(SET, &set_irqs(NONE | TRIGGER, index, 0, 0));
    }
}

#[test]
fn client_fires_interrupt_vectors_by_range_or_singly() {
    let mut script = ScriptedSession::agreed();
    script.ask(SET, &set_irqs(NONE | TRIGGER, MSIX, 1, 2));
    assert_eq!(script.said(), ["Trigger { index: 2, vector: 1 }", "Trigger { index: 2, vector: 2 }"]);
    let body = [&words(&[23, BOOL | TRIGGER, MSIX, 0, 3])[..], &[1, 0, 1]].concat();
    script.ask(SET, &body);
    assert_eq!(script.said(), ["Trigger { index: 2, vector: 0 }", "Trigger { index: 2, vector: 2 }"]);
    assert_eq!(script.refused(SET, &body[..22]), EINVAL, "one byte short");
}

#[test]
fn interrupt_range_beyond_the_types_vectors_is_refused() {
    let mut script = ScriptedSession::agreed();
    let ranges = [(0, 4), (3, 1), (2, 2), (u32::MAX, 1), (1, u32::MAX), (u32::MAX, u32::MAX), (0, u32::MAX)];
    for (start, count) in ranges {
        for data in [NONE, BOOL, EVENTFD] {
            assert_eq!(script.refused(SET, &set_irqs(data | TRIGGER, MSIX, start, count)), EINVAL);
        }
    }
    assert_eq!(script.said(), [""; 0]);
}

#[test]
fn eventfd_count_must_match_the_vector_range_or_be_zero() {
    let mut script = ScriptedSession::agreed();
    for given in [&[1][..], &[1, 2, 3]] {
        let eventfds = fds(given);
        assert_eq!(
            script.refused_with(SET, &set_irqs(EVENTFD | TRIGGER, MSIX, 0, 2), eventfds.clone()),
            EINVAL
        );
        assert!(eventfds.iter().all(|fd| Rc::strong_count(fd) == 1), "closed");
    }
}

#[test]
fn interrupt_request_needs_one_data_bit_and_one_action_bit() {
    let mut script = ScriptedSession::agreed();
    let all = NONE | BOOL | EVENTFD | MASK | UNMASK | TRIGGER;
    for flags in [0, NONE, TRIGGER, NONE | BOOL | TRIGGER, NONE | MASK | TRIGGER, all, 64 | NONE | TRIGGER] {
        assert_eq!(script.refused(SET, &set_irqs(flags, MSIX, 0, 1)), EINVAL, "{flags:#x}");
    }
    assert_eq!(script.refused(SET, &set_irqs(EVENTFD | TRIGGER, MSIX, 0, 0)), EINVAL, "no vectors");
    assert_eq!(script.refused(SET, &set_irqs(NONE | MASK, MSIX, 0, 0)), EINVAL);
}

#[test]
fn masking_an_unmaskable_interrupt_type_is_refused() {
    let mut script = ScriptedSession::agreed();
    for action in [MASK, UNMASK] {
        assert_eq!(script.refused(SET, &set_irqs(NONE | action, MSIX, 0, 1)), ENOTSUP);
        assert_eq!(script.refused_with(SET, &set_irqs(EVENTFD | action, MSIX, 0, 1), fds(&[1])), ENOTSUP);
    }
}

#[test]
fn unknown_interrupt_type_and_one_without_vectors_are_refused() {
    let mut script = ScriptedSession::agreed();
    for index in [5, u32::MAX] {
        assert_eq!(script.refused(SET, &set_irqs(NONE | TRIGGER, index, 0, 0)), EINVAL);
    }
    for index in [0, 1, 3, 4] {
        assert_eq!(script.refused_with(SET, &set_irqs(EVENTFD | TRIGGER, index, 0, 1), fds(&[1])), EINVAL);
    }
    assert_eq!(script.refused(SET, &[0; 19]), EINVAL);
}

#[test]
fn more_boolean_data_than_interrupt_vectors_is_refused() {
    let mut script = ScriptedSession::agreed();
    let storm = [words(&[20 + 2048, BOOL | TRIGGER, MSIX, 0, 2048]), vec![1; 2048]].concat();
    assert_eq!(script.refused(SET, &storm), EINVAL);
    let storm = [words(&[1 << 20, BOOL | TRIGGER, MSIX, 0, 1 << 20]), vec![1; 1 << 20]].concat();
    assert_eq!(script.refused(SET, &storm), EINVAL, "the too long request is not even buffered");
    assert_eq!(script.said(), [""; 0]);
}
