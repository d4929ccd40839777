//! Tests sessions that continue in a successor process from saved bytes.

use proptest::collection::vec;
use proptest::prelude::*;
use vhost_user::backend::{
    BackendOffer, BackendProgress, BackendSession, SessionRestoreError, SessionSaveError,
};
use vhost_user::message::RingBase;
use vhost_user::outbox::OutgoingMessages;

use crate::script::{
    CountedFd, DEVICE, EVERYTHING, GET_FEATURES, GET_VRING_BASE, MEMORY, PACKED, PLAIN, PROTOCOL,
    SET_FEATURES, SET_MEM_TABLE, SET_STATUS, SPLIT, ScriptedSession, fds, long, message, state,
};

type Session = BackendSession<CountedFd>;

fn offer() -> BackendOffer {
    BackendOffer { protocol_features: EVERYTHING, ..BackendOffer::net(2, DEVICE) }
}

/// Asserts that a session's successor, once it has reported its events, is saved as the same bytes.
pub(crate) fn assert_round_trip(session: &Session) {
    let bytes = match session.save() {
        Ok(bytes) => bytes,
        Err(error) => {
            return assert!(matches!(
                error,
                SessionSaveError::MigrationLog | SessionSaveError::PartialDescriptors(_)
            ));
        }
    };
    let mut restored = Session::restore(offer(), &bytes).unwrap();
    let mut out = OutgoingMessages::new();
    while let BackendProgress::Event(_) = restored.step(&mut out).unwrap() {}
    assert_eq!(restored.save().unwrap(), bytes);
}

/// Session of version 1 with packed rings and the first bytes of a message. A changed encoding needs a new version, and later
/// programs refuse an unknown one.
const KEPT: &str = include_str!("session-v1.hex");

/// Continues a scripted session in a successor, which steps it until it needs bytes.
fn succeed(script: &mut ScriptedSession) {
    let bytes = script.session.save().unwrap();
    script.session = BackendSession::restore(offer(), &bytes).unwrap();
    script.said();
    script.handle().unwrap();
    assert_eq!(script.session.save().unwrap(), bytes, "the successor can be succeeded");
}

#[test]
fn restored_session_continues_its_rings_at_the_hosts_positions() {
    for (features, wire) in [(SPLIT, 0x1234), (PACKED, 0x8005_8005)] {
        let mut script = ScriptedSession::running(features);
        let position = RingBase::from_wire(wire, features == PACKED);
        succeed(&mut script);
        let accepted = format!("features {:#x}", features | PROTOCOL);
        let live = format!("live 0: 256 at {:#x}, base kept, enabled ", MEMORY.0);
        let said = script.said();
        assert_eq!(said[0], accepted);
        assert!(said[1].starts_with(&live), "{said:?}");
        script.host.position = Some(position);
        assert_eq!(script.ask(GET_VRING_BASE, &state(0, 0)), state(0, wire));
    }
}

#[test]
fn kept_session_is_saved_alike_and_continued() {
    let mut script = ScriptedSession::running(PACKED);
    script.receive(&message(SET_STATUS, PLAIN, &long(15))[..13], Vec::new()).unwrap();
    let digits = |bytes: Vec<u8>| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let kept: String = KEPT.split_whitespace().collect();
    assert_eq!(digits(script.session.save().unwrap()), kept, "a changed encoding needs a new version");
    succeed(&mut script);
    assert_eq!(digits(script.session.save().unwrap()), kept);
}

#[test]
fn incomplete_message_is_completed_in_the_successor() {
    let status = message(SET_STATUS, PLAIN, &long(15));
    for cut in 0..status.len() {
        let mut script = ScriptedSession::running(SPLIT);
        script.receive(&status[..cut], Vec::new()).unwrap();
        succeed(&mut script);
        script.said();
        script.receive(&status[cut..], Vec::new()).unwrap();
        assert_eq!(script.said(), ["status 15"]);
    }
}

#[test]
fn session_is_not_saved_in_the_middle_of_a_request() {
    let mut script = ScriptedSession::running(SPLIT);
    script.session.push(&message(SET_MEM_TABLE, PLAIN, &[])[..5], &mut fds(&[7])).unwrap();
    assert_eq!(script.session.save(), Err(SessionSaveError::PartialDescriptors(1)));

    let mut script = ScriptedSession::running(SPLIT);
    script.session.push(&message(GET_FEATURES, PLAIN, &[]), &mut Vec::new()).unwrap();
    script.session.step(&mut script.out).unwrap();
    assert_eq!(script.session.save(), Err(SessionSaveError::Unfinished));

    let mut script = ScriptedSession::running(SPLIT);
    script.tell(SET_FEATURES, &long(SPLIT | PROTOCOL | 1 << 26));
    assert_eq!(script.session.save(), Err(SessionSaveError::MigrationLog));
}

#[test]
fn truncated_or_longer_saved_session_is_refused() {
    let bytes = ScriptedSession::running(PACKED).session.save().unwrap();
    for length in 0..bytes.len() {
        let error = Session::restore(offer(), &bytes[..length]).unwrap_err();
        assert!(matches!(error, SessionRestoreError::Truncated(_)), "{length}: {error}");
    }
    let error = Session::restore(offer(), &[&bytes[..], &[0]].concat()).unwrap_err();
    assert!(matches!(error, SessionRestoreError::Invalid { field: "length", .. }));
}

#[test]
fn saved_session_beyond_the_offer_names_its_field() {
    let bytes = ScriptedSession::running(PACKED).session.save().unwrap();
    let cases = [
        (BackendOffer { features: SPLIT, ..offer() }, "features"),
        (BackendOffer { protocol_features: 0, ..offer() }, "protocol features"),
        (BackendOffer { queue_pairs: 1, ..offer() }, "number of rings"),
        (BackendOffer { ring_size: 128, ..offer() }, "size of a ring"),
    ];
    for (offer, name) in cases {
        let error = Session::restore(offer, &bytes).unwrap_err();
        assert!(matches!(error, SessionRestoreError::Invalid { field, .. } if field == name), "{error}");
    }
}

proptest! {
    #[test]
    fn damaged_saved_session_is_refused_or_restored_whole(
        damages in vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
    ) {
        let mut bytes = ScriptedSession::running(PACKED).session.save().unwrap();
        for (at, value) in damages {
            let at = at.index(bytes.len());
            bytes[at] = value;
        }
        if let Ok(session) = Session::restore(offer(), &bytes) {
            let mut script = ScriptedSession::running(PACKED);
            script.session = session;
            let _ = script.handle();
        }
    }
}
