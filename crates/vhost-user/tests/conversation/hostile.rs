//! Tests messages of hostile front ends. [`crate::cves`] has those that exposed flaws in other back ends.

use std::rc::Rc;

use vhost_user::backend::{BackendProgress, BackendSession, MAX_UNSENT_REPLIES, SessionError};
use vhost_user::decoder::StreamError;
use vhost_user::message::{MAX_BODY, MAX_MESSAGE_FDS, RegionError, RequestError};

use crate::script::{
    ADD_MEM_REG, CountedFd, GET_FEATURES, MEMORY, PACKED, PLAIN, REM_MEM_REG, SET_MEM_TABLE, SET_VRING_ADDR,
    SET_VRING_BASE, SET_VRING_CALL, SET_VRING_ENABLE, SET_VRING_KICK, SET_VRING_NUM, SPLIT, ScriptedSession,
    USER, fds, long, longs, memory_table, message, ring_addresses, single_region, state, words,
};

/// Returns the reason for which a request ends the session.
#[track_caller]
pub(crate) fn reason(
    script: &mut ScriptedSession,
    request: u32,
    body: &[u8],
    fds: Vec<CountedFd>,
) -> RequestError {
    match script.ends(request, body, fds) {
        SessionError::Refused { request: refused, reason } if refused == request => reason,
        other => panic!("{other}"),
    }
}

#[test]
fn split_ring_size_must_be_a_power_of_two() {
    for (features, live) in [(SPLIT, false), (PACKED, true)] {
        let mut script = ScriptedSession::running(features);
        script.tell(SET_VRING_NUM, &state(1, 100));
        script.tell(SET_VRING_ADDR, &ring_addresses(1));
        script.tell(SET_VRING_KICK, &long(0x101));
        assert_eq!(script.session.is_live(1), live);
    }
}

#[test]
fn packed_ring_base_beyond_the_ring_is_a_fault() {
    for base in [0x8000_8100, 0x8100_8000, 0x7fff_7fff] {
        let mut script = ScriptedSession::running(PACKED);
        script.tell(SET_VRING_BASE, &state(1, base));
        script.set_up_ring(1);
        assert!(!script.session.is_live(1));
    }
}

#[test]
fn request_with_an_invalid_memory_region_is_refused() {
    let good = [0, 0x1000, USER, 0];
    let cases = [
        ([0xfff, 0x1000, USER + 0x10_0000, 0], RegionError::Overlaps(0xfff)),
        ([0x2000, 0x1000, USER + 0xfff, 0], RegionError::Overlaps(0x2000)),
        ([0x2000, 0, USER + 0x1000, 0], RegionError::Empty(0x2000)),
        ([u64::MAX, 1, USER + 0x1000, 0], RegionError::Wraps(u64::MAX)),
        ([0x2000, 0x1000, u64::MAX - 0xffe, 0], RegionError::Wraps(0x2000)),
        ([0x2000, 0x1000, USER + 0x1000, u64::MAX], RegionError::Wraps(0x2000)),
    ];
    for (bad, refusal) in cases {
        let mut script = ScriptedSession::negotiated(SPLIT);
        let table = memory_table(&[good, bad]);
        assert_eq!(reason(&mut script, SET_MEM_TABLE, &table, fds(&[5, 6])), RequestError::Region(refusal));
        assert_eq!(script.said(), ["close [5, 6]"]);
        let mut script = ScriptedSession::negotiated(SPLIT);
        script.tell_with(SET_MEM_TABLE, &memory_table(&[good]), fds(&[5]));
        let body = [long(0), longs(&bad)].concat();
        assert_eq!(script.acknowledged(ADD_MEM_REG, &body, fds(&[6])), 1);
        assert_eq!(script.session.memory().regions().len(), 1, "{refusal}");
    }
}

#[test]
fn memory_table_that_claims_more_regions_than_it_has_is_refused() {
    for claimed in [0, 2, 33, u32::MAX] {
        let mut script = ScriptedSession::negotiated(SPLIT);
        let body = [words(&[claimed, 0]), longs(&[0, 0x1000, USER, 0])].concat();
        assert!(matches!(
            reason(&mut script, SET_MEM_TABLE, &body, fds(&[5])),
            RequestError::BodySize { received: 40, .. }
        ));
    }
}

#[test]
fn number_of_memory_regions_is_limited() {
    let mut script = ScriptedSession::negotiated(SPLIT);
    for region in 0..64 {
        script.tell_with(
            ADD_MEM_REG,
            &single_region(region << 12, 0x1000, USER + (region << 12), 0),
            fds(&[5]),
        );
    }
    let body = single_region(64 << 12, 0x1000, USER + (64 << 12), 0);
    assert_eq!(script.acknowledged(ADD_MEM_REG, &body, fds(&[5])), 1);
    assert_eq!(script.session.memory().regions().len(), 64);
}

#[test]
fn removed_memory_of_a_live_ring_pauses_the_ring() {
    let mut script = ScriptedSession::running(SPLIT);
    let region = single_region(MEMORY.0, MEMORY.1, USER, 0);
    assert_eq!(script.acknowledged(REM_MEM_REG, &region, fds(&[8])), 0);
    let said = script.said();
    assert_eq!(said[..3], ["pause 0", "close [8]", "remove 0x100000"]);
    assert!(said[3].starts_with("fault 0") && !script.session.is_live(0));
    assert_eq!(script.acknowledged(REM_MEM_REG, &region, Vec::new()), 0, "it is gone");
    assert_eq!(script.said(), [] as [&str; 0]);
}

#[test]
fn region_that_is_added_for_each_queue_pair_is_mapped_once() {
    // QEMU 7.2 sends ADD_MEM_REG and REM_MEM_REG for every pair, and its rings run meanwhile.
    let mut script = ScriptedSession::running(SPLIT);
    let region = single_region(MEMORY.0, MEMORY.1, USER, 0);
    for pair in 1..4 {
        assert_eq!(script.acknowledged(ADD_MEM_REG, &region, fds(&[8])), 0, "pair {pair}");
        assert_eq!(script.said(), ["close [8]"]);
    }
    let moved = single_region(MEMORY.0, MEMORY.1, USER, 0x1000);
    assert_eq!(script.acknowledged(ADD_MEM_REG, &moved, fds(&[8])), 1, "another part of the file");
    script.said();
    // Each pair removes the region and adds its successor, before the next pair does.
    for pair in 0..4 {
        assert_eq!(script.acknowledged(REM_MEM_REG, &region, Vec::new()), 0, "pair {pair}");
        assert_eq!(script.acknowledged(ADD_MEM_REG, &moved, fds(&[9])), 0, "pair {pair}");
        let said = script.said();
        match pair {
            // Another removal of the region is one of its successor, which has the same addresses.
            0 => assert_eq!(said[..2], ["pause 0", "remove 0x100000"]),
            _ => assert!(said.iter().any(|line| line.starts_with("add 0x100000")), "{said:?}"),
        }
    }
    assert!(script.session.is_live(0));
}

#[test]
fn ring_size_does_not_change_while_the_ring_runs() {
    let mut script = ScriptedSession::running(SPLIT);
    script.tell(SET_VRING_NUM, &state(0, 256));
    assert_eq!(script.acknowledged(SET_VRING_NUM, &state(0, 512), Vec::new()), 1);
    assert_eq!(script.said(), [] as [&str; 0]);
    assert_eq!(
        reason(&mut script, SET_VRING_NUM, &state(0, 512), Vec::new()),
        RequestError::RingIsRunning(0)
    );
}

#[test]
fn new_base_restarts_a_running_ring_at_that_base() {
    let mut script = ScriptedSession::running(SPLIT);
    script.tell(SET_VRING_BASE, &state(0, 5));
    assert_eq!(script.said(), ["pause 0", "live 0: 256 at 0x100000, base 0x5, enabled false"]);
}

#[test]
fn ring_enable_message_causes_at_most_one_event() {
    let mut script = ScriptedSession::running(SPLIT);
    for round in 0..10_000 {
        script.tell(SET_VRING_ENABLE, &state(0, round % 2));
    }
    assert_eq!(script.said().len(), 9_999, "the first changes nothing");
    script.tell(SET_VRING_ENABLE, &state(0, 1));
    assert_eq!(script.said(), [] as [&str; 0]);
}

#[test]
fn message_with_33_descriptors_ends_the_session() {
    let fd = Rc::new(7);
    let mut script = ScriptedSession::negotiated(SPLIT);
    let mut sent = vec![fd.clone(); MAX_MESSAGE_FDS + 1];
    let error = script.session.push(&message(SET_MEM_TABLE, PLAIN, &[0; 8])[..12], &mut sent).unwrap_err();
    assert_eq!(error, SessionError::Stream(StreamError::TooManyDescriptors));
    assert_eq!(sent.len(), 33, "they are handed back");
    assert_eq!((script.session.room(), script.handle()), (0, Err(error)));
    drop((script, sent));
    assert_eq!(Rc::strong_count(&fd), 1);
}

#[test]
fn surplus_file_descriptors_are_refused_and_closed_by_the_host() {
    for (request, body) in
        [(GET_FEATURES, vec![]), (SET_VRING_ENABLE, state(0, 1)), (SET_VRING_CALL, long(0x100))]
    {
        let mut script = ScriptedSession::negotiated(SPLIT);
        let refusal = reason(&mut script, request, &body, fds(&[7, 8]));
        assert_eq!(refusal, RequestError::Descriptors { received: 2, expected: 0 });
        assert_eq!(script.said(), ["close [7, 8]"]);
        assert_eq!(script.session.counters().unused_fds, 2);
    }
}

#[test]
fn message_header_without_its_body_has_no_effect() {
    let mut script = ScriptedSession::negotiated(SPLIT);
    script.receive(&message(SET_VRING_NUM, PLAIN, &state(0, 256))[..12], fds(&[7])).unwrap();
    assert_eq!((script.session.room(), script.said(), script.replies()), (8, vec![], vec![]));
    let fd = Rc::new(7);
    let mut session = BackendSession::new(vhost_user::backend::BackendOffer::net(1, 0));
    session.push(&message(SET_VRING_NUM, PLAIN, &state(0, 256))[..13][..12], &mut vec![fd.clone()]).unwrap();
    drop(session);
    assert_eq!(Rc::strong_count(&fd), 1, "descriptors of an unfinished message are closed");
}

#[test]
fn message_received_in_single_bytes_is_one_message() {
    for fd_at in 0..20 {
        let mut script = ScriptedSession::negotiated(SPLIT);
        for (at, byte) in message(SET_VRING_CALL, PLAIN, &long(3)).iter().enumerate() {
            assert_eq!(script.said(), [] as [&str; 0]);
            script.receive(&[*byte], if at == fd_at { fds(&[7]) } else { Vec::new() }).unwrap();
        }
        assert_eq!(script.said(), ["call 3: Some(7)"], "whichever byte the descriptor came with");
    }
}

#[test]
fn session_takes_no_message_while_replies_are_unread() {
    let mut script = ScriptedSession::negotiated(SPLIT);
    for _ in 0..MAX_UNSENT_REPLIES {
        script.receive(&message(GET_FEATURES, PLAIN, &[]), Vec::new()).unwrap();
    }
    script.session.push(&message(GET_FEATURES, PLAIN, &[]), &mut Vec::new()).unwrap();
    assert_eq!(script.session.step(&mut script.out), Ok(BackendProgress::Blocked));
    assert_eq!((script.session.room(), script.out.pending()), (0, MAX_UNSENT_REPLIES));
    assert_eq!(script.replies().len(), MAX_UNSENT_REPLIES);
    script.handle().unwrap();
    assert_eq!(script.replies().len(), 1);
}

#[test]
fn long_body_wrong_version_or_reply_ends_the_session() {
    let mut script = ScriptedSession::negotiated(SPLIT);
    let header = words(&[SET_MEM_TABLE, PLAIN, MAX_BODY as u32 + 1]);
    let error = script.receive(&header, Vec::new()).unwrap_err();
    let too_long = StreamError::BodyTooLong { request: SET_MEM_TABLE, size: MAX_BODY as u32 + 1 };
    assert_eq!((error, script.session.room()), (SessionError::Stream(too_long), 0));
    for (flags, version) in [(0, 0), (2, 2), (11, 3)] {
        let mut script = ScriptedSession::negotiated(SPLIT);
        let error = script.receive(&words(&[GET_FEATURES, flags, 0]), Vec::new()).unwrap_err();
        assert_eq!(error, SessionError::Stream(StreamError::UnsupportedVersion(version)));
    }
    let mut script = ScriptedSession::negotiated(SPLIT);
    let error = script.receive(&message(GET_FEATURES, 5, &[]), fds(&[7])).unwrap_err();
    assert_eq!(
        (error, script.said()),
        (SessionError::UnexpectedReply(GET_FEATURES), vec!["close [7]".into()])
    );
}

#[test]
fn request_body_of_a_wrong_length_is_refused() {
    let cases = [
        (GET_FEATURES, 0usize),
        (SET_VRING_NUM, 8),
        (SET_VRING_ADDR, 40),
        (SET_VRING_KICK, 8),
        (ADD_MEM_REG, 40),
    ];
    for (request, size) in cases {
        for length in
            [size + 1, size + 100, size.saturating_sub(1), 0].into_iter().filter(|&length| length != size)
        {
            let mut script = ScriptedSession::negotiated(SPLIT);
            let refusal = reason(&mut script, request, &vec![0; length], Vec::new());
            assert_eq!(refusal, RequestError::BodySize { received: length, expected: size });
        }
    }
}
