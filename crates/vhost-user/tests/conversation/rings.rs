//! Tests the life of a ring: settings in any order, pauses while memory changes, stop and restart, migration.

use vhost_user::backend::{
    BackendEvent, BackendOffer, BackendProgress, BackendSession, HostOperation, HostOperationOutcome,
};
use vhost_user::message::RingBase;
use vhost_user::outbox::OutgoingMessages;

use crate::script::{
    ADD_MEM_REG, GET_FEATURES, GET_VRING_BASE, MEMORY, NEED_REPLY, PACKED, PLAIN, PROTOCOL, RESET_DEVICE,
    RESET_OWNER, SET_FEATURES, SET_LOG_BASE, SET_MEM_TABLE, SET_STATUS, SET_VRING_ADDR, SET_VRING_BASE,
    SET_VRING_ENABLE, SET_VRING_KICK, SET_VRING_NUM, SPLIT, ScriptedSession, USER, addresses, fds, long,
    longs, memory_table, message, ring_addresses, single_region, state,
};

const LIVE: &str = "live 0: 256 at 0x100000, base 0x0, enabled true";

#[test]
fn ring_becomes_live_after_all_its_settings_in_any_order() {
    let settings: [(u32, Vec<u8>, &[i32]); 6] = [
        (SET_VRING_ENABLE, state(0, 1), &[]),
        (SET_FEATURES, long(SPLIT | PROTOCOL), &[]),
        (ADD_MEM_REG, single_region(MEMORY.0, MEMORY.1, USER, 0), &[5]),
        (SET_VRING_NUM, state(0, 256), &[]),
        (SET_VRING_ADDR, ring_addresses(0), &[]),
        (SET_VRING_KICK, long(0), &[10]),
    ];
    for first in 0..6 {
        let mut script = ScriptedSession::negotiated_protocol();
        let mut missing = 5;
        for at in 0..6 {
            let (request, body, numbers) = &settings[(first + at) % 6];
            script.tell_with(*request, body, fds(numbers));
            // A disabled ring is live too.
            missing -= u32::from(*request != SET_VRING_ENABLE);
            assert_eq!(script.session.is_live(0), missing == 0);
        }
        let said = script.said();
        let live = said.contains(&LIVE.into()) || said.ends_with(&["enable 0 true".into()]);
        assert!(live, "{said:?}");
    }
}

#[test]
fn features_without_bit_30_enable_all_rings_at_once() {
    let mut script = ScriptedSession::running(SPLIT);
    script.ask(GET_VRING_BASE, &state(0, 0));
    script.said();
    script.tell(SET_FEATURES, &long(SPLIT));
    script.tell_with(SET_VRING_KICK, &long(0), fds(&[10]));
    assert_eq!(script.said()[2..], [LIVE]);
}

#[test]
fn replaced_memory_pauses_and_translates_every_ring() {
    let mut script = ScriptedSession::running(SPLIT);
    let moved = memory_table(&[[0x4000_0000, MEMORY.1, USER, 0]]);
    assert_eq!(script.acknowledged(SET_MEM_TABLE, &moved, fds(&[6])), 0);
    let live = "live 0: 256 at 0x40000000, base kept, enabled false";
    assert_eq!(script.said(), ["pause 0", "memory [(40000000, 6)]", live]);
}

#[test]
fn failed_mapping_leaves_no_memory_and_no_live_ring() {
    let mut script = ScriptedSession::running(SPLIT);
    script.host.fails = true;
    let table = memory_table(&[[MEMORY.0, MEMORY.1, USER, 0]]);
    assert_eq!(script.acknowledged(SET_MEM_TABLE, &table, fds(&[6])), 1);
    assert!(script.session.memory().regions().is_empty() && !script.session.is_live(0));
    let more = single_region(MEMORY.0, MEMORY.1, USER, 0);
    assert_eq!(script.acknowledged(ADD_MEM_REG, &more, fds(&[6])), 1);
    script.host.fails = false;
    assert_eq!(script.acknowledged(ADD_MEM_REG, &more, fds(&[6])), 0);
    assert!(script.session.is_live(0), "the ring is translated anew");
}

#[test]
fn stopped_ring_is_not_live_before_the_next_kick_eventfd() {
    let mut script = ScriptedSession::running(SPLIT);
    script.host.position = Some(RingBase::Split { available: 0xfff0 });
    assert_eq!(script.ask(GET_VRING_BASE, &state(0, 0)), state(0, 0xfff0));
    script.tell(SET_VRING_NUM, &state(0, 256));
    script.tell(SET_VRING_ADDR, &ring_addresses(0));
    let memory = memory_table(&[[MEMORY.0, MEMORY.1, USER, 0]]);
    script.tell_with(SET_MEM_TABLE, &memory, fds(&[6]));
    assert!(!script.session.is_live(0));
    assert_eq!(script.ask(GET_VRING_BASE, &state(0, 0)), state(0, 0xfff0), "again, without the host");
    script.tell_with(SET_VRING_KICK, &long(0), fds(&[10]));
    assert!(script.said().contains(&"live 0: 256 at 0x100000, base 0xfff0, enabled false".into()));
}

#[test]
fn ring_that_never_ran_returns_the_base_it_was_given() {
    let mut script = ScriptedSession::negotiated(PACKED);
    assert_eq!(script.ask(GET_VRING_BASE, &state(1, 0)), state(1, 0x8000_8000));
    script.tell(SET_VRING_BASE, &state(1, 0x8003_8003));
    assert_eq!(script.ask(GET_VRING_BASE, &state(1, 0)), state(1, 0x8003_8003));
    assert_eq!(script.said(), [] as [&str; 0]);
}

#[test]
fn host_that_fails_to_stop_a_ring_ends_the_session() {
    let mut script = ScriptedSession::running(SPLIT);
    script.host.fails = true;
    let error = script.ends(GET_VRING_BASE, &state(0, 0), Vec::new());
    assert_eq!(
        error.to_string(),
        "vhost-user request 11 is refused: the host's task for the request failed, such as mapping memory or stopping a ring"
    );
}

#[test]
fn ring_without_kick_eventfd_is_polled() {
    let mut script = ScriptedSession::running(SPLIT);
    script.tell(SET_VRING_NUM, &state(1, 512));
    script.tell(SET_VRING_ADDR, &ring_addresses(1));
    script.tell(SET_VRING_KICK, &long(0x101));
    assert_eq!(script.said(), ["kick 1: None", "live 1: 512 at 0x110000, base 0x0, enabled false"]);
}

#[test]
fn migration_logging_keeps_a_running_rings_position() {
    let mut script = ScriptedSession::running(SPLIT);
    let area = longs(&[0x1000, 0x2000]);
    assert_eq!(script.ask_with(SET_LOG_BASE, PLAIN, &area, fds(&[7])).body, area);
    script.tell(SET_FEATURES, &long(SPLIT | PROTOCOL | 1 << 26));
    let ring = [USER, USER + 0x2000, USER + 0x1000];
    script.receive(&message(SET_VRING_ADDR, PLAIN, &addresses(0, 1, ring, 0x10_2000)), Vec::new()).unwrap();
    let live = "live 0: 256 at 0x100000, base kept, enabled false";
    assert_eq!(script.said(), ["log 0x1000 at 0x2000 7", "features 0x174009883", "pause 0", live]);
}

#[test]
fn features_other_than_the_log_bit_are_fixed_while_a_ring_runs() {
    let mut script = ScriptedSession::running(SPLIT);
    for features in [SPLIT, PACKED | PROTOCOL, PROTOCOL] {
        assert_eq!(script.acknowledged(SET_FEATURES, &long(features), Vec::new()), 1);
    }
    assert_eq!(script.session.features(), Some(SPLIT | PROTOCOL));
    script.ask(GET_VRING_BASE, &state(0, 0));
    assert_eq!(script.acknowledged(SET_FEATURES, &long(PACKED | PROTOCOL), Vec::new()), 0);
}

#[test]
fn reset_device_request_keeps_only_guest_memory() {
    let mut script = ScriptedSession::running(SPLIT);
    script.tell(SET_STATUS, &long(15));
    script.tell(RESET_DEVICE, &[]);
    assert_eq!(script.said(), ["status 15", "pause 0", "DeviceReset"]);
    assert_eq!((script.session.features(), script.session.memory().regions().len()), (None, 1));
    script.tell(SET_FEATURES, &long(PACKED | PROTOCOL));
    script.set_up_ring(0);
    assert!(script.said().contains(&"live 0: 256 at 0x100000, base 0x80008000, enabled false".into()));
}

#[test]
fn reset_owner_request_disables_live_rings() {
    let mut script = ScriptedSession::running(SPLIT);
    script.tell(SET_VRING_ENABLE, &state(0, 1));
    script.tell(RESET_OWNER, &[]);
    assert_eq!(script.said(), ["enable 0 true", "enable 0 false", "OwnerReset"]);
    assert!(script.session.is_live(0));
}

#[test]
fn reply_is_sent_after_the_host_has_completed_the_task() {
    let mut session = BackendSession::new(BackendOffer::net(1, 1 << 32));
    let mut out = OutgoingMessages::new();
    let mut send = |session: &mut BackendSession<i32>, bytes: Vec<u8>, fds: &[i32]| {
        let (header, body) = bytes.split_at(12);
        session.push(header, &mut fds.to_vec()).unwrap();
        session.push(body, &mut Vec::new()).unwrap();
        session.step(&mut out).unwrap()
    };
    // REPLY_ACK and memory slots.
    assert_eq!(send(&mut session, message(16, PLAIN, &long(0x8008)), &[]), BackendProgress::Handled);
    let added = message(ADD_MEM_REG, NEED_REPLY, &single_region(0, 0x1000, USER, 0));
    assert_eq!(
        send(&mut session, added, &[5]),
        BackendProgress::Event(BackendEvent::ProtocolFeaturesSet(0x8008))
    );
    assert_eq!(session.step(&mut out), Ok(BackendProgress::Handled));
    assert!(matches!(session.step(&mut out), Ok(BackendProgress::Task(HostOperation::AddRegion(_)))));
    session.push(&message(GET_FEATURES, PLAIN, &[]), &mut Vec::new()).unwrap();
    for _ in 0..3 {
        assert_eq!((session.step(&mut out), out.pending()), (Ok(BackendProgress::Waiting), 0));
    }
    session.complete(HostOperationOutcome::Done);
    session.complete(HostOperationOutcome::Failed);
    assert_eq!((session.step(&mut out), out.pending()), (Ok(BackendProgress::Handled), 1));
    assert_eq!(out.chunk().unwrap().bytes[12..], long(0), "the second completion does nothing");
}
