//! Tests messages that exposed flaws in other back ends. Each test is named after the CVE of the flaw.

use std::rc::Rc;

use vhost_user::message::RequestError;

use crate::hostile::reason;
use crate::script::{
    ADD_MEM_REG, EVERYTHING, GET_FEATURES, GET_INFLIGHT_FD, GET_PROTOCOL_FEATURES, GET_VRING_BASE, MEMORY,
    PLAIN, PROTOCOL, SET_FEATURES, SET_INFLIGHT_FD, SET_LOG_BASE, SET_PROTOCOL_FEATURES, SET_VRING_ADDR,
    SET_VRING_BASE, SET_VRING_ENABLE, SET_VRING_KICK, SET_VRING_NUM, SPLIT, ScriptedSession, USER, addresses,
    fds, inflight, long, longs, single_region, state,
};

#[test]
fn cve_2018_1059_ring_across_the_end_of_a_region_is_not_live() {
    let mut script = ScriptedSession::running(SPLIT);
    // A used ring of 2,054 bytes that begins in the region and ends beyond it.
    let end = USER + MEMORY.1;
    script.tell(SET_VRING_ADDR, &addresses(0, 0, [USER, end - 2052, USER + 0x1000], 0));
    let fault = format!(
        "fault 0: 2054 bytes of the ring at user address {:#x} are not in one memory region",
        end - 2052
    );
    assert_eq!(script.said(), ["pause 0".into(), fault]);
    script.tell(SET_VRING_ADDR, &addresses(0, 0, [USER, end - 2056, USER + 0x1000], 0));
    assert_eq!(script.said(), ["live 0: 256 at 0x100000, base kept, enabled false"]);
}

#[test]
fn cve_2019_14818_repeated_ring_size_request_keeps_no_memory() {
    let mut script = ScriptedSession::negotiated(SPLIT);
    for _ in 0..1000 {
        script.tell(SET_VRING_NUM, &state(0, 256));
    }
    let fd = Rc::new(7);
    let refusal = reason(&mut script, SET_VRING_NUM, &state(0, 256), vec![fd.clone(), fd.clone()]);
    assert_eq!(refusal, RequestError::Descriptors { received: 2, expected: 0 });
    assert_eq!((script.said(), Rc::strong_count(&fd)), (vec!["close [7, 7]".into()], 1));
}

#[test]
fn cve_2020_10722_log_that_wraps_around_is_refused() {
    for (size, offset) in [(0x1000, u64::MAX - 0xfff), (u64::MAX, 1), (0, 0), (1, i64::MAX as u64)] {
        let mut script = ScriptedSession::running(SPLIT);
        let refusal = reason(&mut script, SET_LOG_BASE, &longs(&[size, offset]), fds(&[7]));
        assert_eq!(refusal, RequestError::LogArea { size, offset });
        assert_eq!(script.said(), ["close [7]"]);
    }
}

#[test]
fn cve_2020_10723_ring_number_is_not_truncated_to_16_bits() {
    for request in [SET_VRING_NUM, SET_VRING_BASE, GET_VRING_BASE, SET_VRING_ENABLE] {
        for ring in [4, 0x1_0000, u32::MAX] {
            let mut script = ScriptedSession::running(SPLIT);
            let refusal = reason(&mut script, request, &state(ring, 1), Vec::new());
            assert_eq!(refusal, RequestError::RingOutOfRange { ring, rings: 4 });
        }
    }
    let mut script = ScriptedSession::running(SPLIT);
    let refusal = reason(&mut script, SET_VRING_KICK, &long(255), fds(&[7]));
    assert_eq!(refusal, RequestError::RingOutOfRange { ring: 255, rings: 4 });
    assert_eq!(script.said(), ["close [7]"]);
}

#[test]
fn cve_2020_10724_crypto_requests_are_unknown() {
    for request in [0, 22, 23, 26, 27, 28, 33, 35, 41, 45, 1000, u32::MAX] {
        let mut script = ScriptedSession::running(SPLIT);
        assert_eq!(script.acknowledged(request, &[0; 500], fds(&[7])), 1, "refused, and nothing else");
        assert_eq!(script.said(), ["close [7]"]);
        assert_eq!(reason(&mut script, request, &[], Vec::new()), RequestError::Unknown);
    }
}

#[test]
fn cve_2020_10725_ring_outside_of_memory_is_not_live() {
    for user in [0, USER - 16, USER + MEMORY.1, u64::MAX - 15, MEMORY.0] {
        let mut script = ScriptedSession::negotiated(SPLIT);
        script.tell_with(ADD_MEM_REG, &single_region(MEMORY.0, MEMORY.1, USER, 0), fds(&[5]));
        script.tell(SET_VRING_NUM, &state(0, 256));
        script.tell(SET_VRING_ADDR, &addresses(0, 0, [user, USER + 0x2000, USER + 0x1000], 0));
        script.tell_with(SET_VRING_KICK, &long(0), fds(&[10]));
        assert!(!script.session.is_live(0));
        assert!(script.said().iter().any(|line| line.starts_with("fault 0: 4096 bytes")));
    }
}

#[test]
fn cve_2020_10726_repeated_inflight_requests_keep_no_memory() {
    let fd = Rc::new(7);
    let mut script = ScriptedSession::negotiated(SPLIT);
    for _ in 0..1000 {
        let reply = script.ask_with(GET_INFLIGHT_FD, PLAIN, &inflight(0, 0, 2, 256), Vec::new());
        assert_eq!(reply.fds, [99], "the host's memory goes to the front end");
        script.tell_with(SET_INFLIGHT_FD, &inflight(0x1000, 0, 2, 256), vec![fd.clone()]);
        assert_eq!(script.said().len(), 2, "one task of each request");
        assert_eq!((Rc::strong_count(&fd), script.host.kept.len(), script.out.pending()), (1, 0, 0));
    }
    assert_eq!(script.session.counters().refused, 0);
}

#[test]
fn cve_2021_3839_inflight_records_of_missing_rings_are_refused() {
    for (queues, size) in [(0, 256), (5, 256), (0xffff, 256), (2, 0), (2, 0x8001)] {
        let refusal = RequestError::InflightArea { queues: queues as u16, queue_size: size as u16 };
        let mut script = ScriptedSession::negotiated(SPLIT);
        let body = inflight(0x1000, 0, queues, size);
        assert_eq!(reason(&mut script, GET_INFLIGHT_FD, &body, Vec::new()), refusal);
        let mut script = ScriptedSession::negotiated(SPLIT);
        assert_eq!(reason(&mut script, SET_INFLIGHT_FD, &body, fds(&[7])), refusal);
        assert_eq!(script.said(), ["close [7]"]);
    }
}

#[test]
fn cve_2022_0669_inflight_file_descriptors_do_not_leak() {
    let fd = Rc::new(7);
    for (request, count) in [(GET_INFLIGHT_FD, 1), (SET_INFLIGHT_FD, 0), (SET_INFLIGHT_FD, 2)] {
        let mut script = ScriptedSession::negotiated(SPLIT);
        let body = inflight(0x1000, 0, 2, 256);
        let refusal = reason(&mut script, request, &body, vec![fd.clone(); count]);
        assert!(matches!(refusal, RequestError::Descriptors { received, .. } if received == count));
    }
    let mut script = ScriptedSession::negotiated(SPLIT);
    let body = inflight(0x1000, u64::MAX, 2, 256);
    reason(&mut script, SET_INFLIGHT_FD, &body, vec![fd.clone()]);
    assert_eq!(Rc::strong_count(&fd), 1);
}

#[test]
fn cve_2017_17381_ring_of_size_zero_is_refused() {
    for size in [0, 0x8001, u32::MAX] {
        let mut script = ScriptedSession::negotiated(SPLIT);
        let refusal = reason(&mut script, SET_VRING_NUM, &state(0, size), Vec::new());
        assert_eq!(refusal, RequestError::RingSize { size, limit: 32768 });
    }
}

#[test]
fn cve_2019_14835_log_of_a_used_ring_that_wraps_is_not_used() {
    let mut script = ScriptedSession::running(SPLIT);
    let ring = [USER, USER + 0x2000, USER + 0x1000];
    script.tell(SET_VRING_ADDR, &addresses(0, 1, ring, u64::MAX - 2053));
    assert_eq!(script.said().len(), 2, "paused, and not live again");
    assert!(!script.session.is_live(0));
    script.tell(SET_VRING_ADDR, &addresses(0, 1, ring, 0x10_2000));
    assert!(script.session.is_live(0));
}

/// The flaws are in the handling of crypto requests on a ring, which needs a session of `VHOST_USER_CREATE_CRYPTO_SESSION`.
#[test]
fn cve_2020_14374_to_14378_crypto_sessions_are_refused() {
    const CRYPTO_SESSION: u64 = 1 << 7;
    let (create, close) = (26, 27);
    let mut script = ScriptedSession::fresh();
    assert_eq!(script.number(GET_PROTOCOL_FEATURES) & CRYPTO_SESSION, 0);
    assert_eq!(vhost_user::features::protocol::SUPPORTED & CRYPTO_SESSION, 0);
    let refusal = reason(&mut script, SET_PROTOCOL_FEATURES, &long(EVERYTHING | CRYPTO_SESSION), Vec::new());
    assert_eq!(refusal, RequestError::UnofferedProtocolFeatures(CRYPTO_SESSION));
    for (request, size) in [(create, 0), (create, 4096), (close, 8)] {
        let mut script = ScriptedSession::running(SPLIT);
        assert_eq!(reason(&mut script, request, &vec![0xff; size], Vec::new()), RequestError::Unknown);
        assert_eq!(script.said(), [] as [&str; 0]);
    }
}

/// The header of a packet has a length that accepted features choose, and `VIRTIO_NET_F_HASH_REPORT` makes it longer.
#[test]
fn cve_2023_6693_longer_packet_header_is_refused() {
    const HASH_REPORT: u64 = 1 << 57;
    let mut script = ScriptedSession::negotiated_protocol();
    assert_eq!(script.number(GET_FEATURES) & HASH_REPORT, 0);
    let refusal = reason(&mut script, SET_FEATURES, &long(SPLIT | PROTOCOL | HASH_REPORT), Vec::new());
    assert_eq!(refusal, RequestError::UnofferedFeatures(HASH_REPORT));
    assert_eq!((script.session.features(), script.said().len()), (None, 0));
}
