//! Tests features, status and the requests that depend on them: refused without the protocol feature, or out of range.

use vhost_user::backend::{BackendOffer, BackendSession, SessionError};
use vhost_user::features::protocol;
use vhost_user::message::RequestError;

use crate::script::{
    ADD_MEM_REG, DEVICE, EVERYTHING, GET_CONFIG, GET_FEATURES, GET_INFLIGHT_FD, GET_MAX_MEM_SLOTS,
    GET_PROTOCOL_FEATURES, GET_QUEUE_NUM, GET_STATUS, NET_SET_MTU, PROTOCOL, REM_MEM_REG, RESET_DEVICE,
    SEND_RARP, SET_BACKEND_REQ_FD, SET_CONFIG, SET_FEATURES, SET_INFLIGHT_FD, SET_LOG_BASE, SET_LOG_FD,
    SET_OWNER, SET_PROTOCOL_FEATURES, SET_STATUS, SET_VRING_ENABLE, SPLIT, ScriptedSession, fds, long, words,
};

#[test]
fn protocol_features_are_offered_only_if_supported() {
    let mut script = ScriptedSession::fresh();
    let offer = BackendOffer { protocol_features: u64::MAX, ..BackendOffer::net(1, DEVICE) };
    script.session = BackendSession::new(offer);
    let offered = script.number(GET_PROTOCOL_FEATURES);
    assert_eq!(offered, EVERYTHING);
    let never = [protocol::INBAND_NOTIFICATIONS, protocol::XEN_MMAP, protocol::BACKEND_REQ];
    assert!(never.iter().all(|bit| offered >> bit & 1 == 0));
    assert_eq!(script.number(GET_FEATURES), DEVICE | PROTOCOL, "bit 30 always");
}

#[test]
fn backend_offers_at_most_16_queue_pairs_and_512_mem_slots() {
    for (pairs, offered) in [(0, 1), (1, 1), (16, 16), (17, 16), (u32::MAX, 16)] {
        let mut script = ScriptedSession::fresh();
        let offer = BackendOffer { memory_regions: usize::MAX, ..BackendOffer::net(pairs, DEVICE) };
        script.session = BackendSession::new(offer);
        script.tell(SET_PROTOCOL_FEATURES, &long(protocol::OFFERED_TO_NET));
        assert_eq!(script.number(GET_QUEUE_NUM), offered);
        assert_eq!(script.number(GET_MAX_MEM_SLOTS), 512);
        let beyond = words(&[2 * offered as u32, 1]);
        script.ends(SET_VRING_ENABLE, &beyond, Vec::new());
    }
}

#[test]
fn device_features_that_were_not_offered_are_refused() {
    let mut script = ScriptedSession::negotiated(SPLIT);
    assert_eq!(script.acknowledged(SET_FEATURES, &long(SPLIT | 1 << 33), Vec::new()), 1);
    let more = EVERYTHING | 1 << 14;
    let error = script.ends(SET_PROTOCOL_FEATURES, &long(more), Vec::new());
    let reason = RequestError::UnofferedProtocolFeatures(1 << 14);
    assert_eq!(error, SessionError::Refused { request: SET_PROTOCOL_FEATURES, reason });
}

#[test]
fn request_without_its_protocol_feature_ends_the_session() {
    let requests = [
        (SET_LOG_BASE, 1),
        (SET_LOG_FD, 1),
        (SEND_RARP, 2),
        (NET_SET_MTU, 4),
        (SET_BACKEND_REQ_FD, 5),
        (GET_CONFIG, 9),
        (SET_CONFIG, 9),
        (GET_INFLIGHT_FD, 12),
        (SET_INFLIGHT_FD, 12),
        (RESET_DEVICE, 13),
        (GET_MAX_MEM_SLOTS, 15),
        (ADD_MEM_REG, 15),
        (REM_MEM_REG, 15),
        (SET_STATUS, 16),
        (GET_STATUS, 16),
    ];
    for (request, bit) in requests {
        let mut script = ScriptedSession::fresh();
        script.tell(SET_PROTOCOL_FEATURES, &long(EVERYTHING & !(1 << bit)));
        let error = script.ends(request, &long(0), fds(&[7]));
        assert_eq!(error, SessionError::Refused { request, reason: RequestError::NotNegotiated(bit) });
    }
}

#[test]
fn request_acknowledgement_needs_its_protocol_feature() {
    let mut script = ScriptedSession::fresh();
    let header_and_body = crate::script::message(SET_OWNER, crate::script::NEED_REPLY, &[]);
    script.receive(&header_and_body, Vec::new()).unwrap();
    assert_eq!(script.replies(), []);
    script.tell(SET_PROTOCOL_FEATURES, &long(1 << 3));
    assert_eq!(script.acknowledged(SET_OWNER, &[], Vec::new()), 0);
    assert_eq!(script.said(), ["OwnerSet", "protocol 0x8"], "the owner is set once");
}

#[test]
fn device_status_is_returned_as_stored() {
    let mut script = ScriptedSession::negotiated(SPLIT);
    for status in [0, 1, 3, 11, 15, 0x8f, 0] {
        script.tell(SET_STATUS, &long(status));
        assert_eq!(script.number(GET_STATUS), status);
    }
    assert_eq!(script.acknowledged(SET_STATUS, &long(0x100), Vec::new()), 1);
}

#[test]
fn queue_num_counts_pairs_with_status_feature_rings_without() {
    let mut script = ScriptedSession::negotiated(SPLIT);
    assert_eq!(script.number(GET_QUEUE_NUM), 2);
    script.tell(SET_PROTOCOL_FEATURES, &long(EVERYTHING & !(1 << 16)));
    assert_eq!(script.number(GET_QUEUE_NUM), 4);
}

#[test]
fn rarp_and_mtu_requests_are_passed_to_the_host() {
    let mut script = ScriptedSession::negotiated(SPLIT);
    script.tell(SEND_RARP, &[0x52, 0x54, 0, 1, 2, 3, 0, 0]);
    assert_eq!(script.acknowledged(NET_SET_MTU, &long(9000), Vec::new()), 0);
    script.host.fails = true;
    assert_eq!(script.acknowledged(NET_SET_MTU, &long(9000), Vec::new()), 1, "the policy refuses it");
    assert_eq!(script.said(), ["SendRarp([82, 84, 0, 1, 2, 3])", "SetMtu(9000)", "SetMtu(9000)"]);
    for mtu in [0, 67, 0x1_0000, u64::MAX] {
        assert_eq!(script.acknowledged(NET_SET_MTU, &long(mtu), Vec::new()), 1);
    }
    assert_eq!(script.said(), [] as [&str; 0]);
}

#[test]
fn refused_get_config_returns_no_configuration_bytes() {
    let mut script = ScriptedSession::negotiated(SPLIT);
    let read = |offset, size: u32| [words(&[offset, size, 0]), vec![0; size as usize]].concat();
    let contents = [words(&[4, 3, 0]), vec![4, 5, 6]].concat();
    assert_eq!(script.ask(GET_CONFIG, &read(4, 3)), contents);
    script.host.fails = true;
    assert_eq!(script.ask(GET_CONFIG, &read(4, 3)), words(&[4, 0, 0]));
    assert_eq!(script.acknowledged(SET_CONFIG, &read(0, 6), Vec::new()), 1);
    for (offset, size) in [(0, 0), (0, 257), (u32::MAX, 1)] {
        let mut script = ScriptedSession::negotiated(SPLIT);
        let error = script.ends(GET_CONFIG, &read(offset, size), Vec::new());
        let reason = RequestError::ConfigRange { offset, size };
        assert_eq!(error, SessionError::Refused { request: GET_CONFIG, reason });
    }
}
