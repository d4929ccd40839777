//! Tests `VERSION`: accepted requests, and replies that fit the client's buffer.

use vfio_user::decoder::ProtocolError;

use crate::script::{EINVAL, NO_REPLY, QEMU_CAPABILITIES, ScriptedSession, message, u16_at, version_body};

#[test]
fn version_reply_fits_the_clients_request_buffer() {
    let mut script = ScriptedSession::fresh();
    let request = version_body(QEMU_CAPABILITIES);
    let reply = script.ask(1, &request);
    assert!(reply.len() <= request.len(), "QEMU: 'reply larger than recv buffer' ends the connection");
    assert_eq!(reply.last(), Some(&0), "QEMU: 'corrupt version reply'");
    assert_eq!(
        std::str::from_utf8(&reply[4..reply.len() - 1]),
        Ok(concat!(
            r#"{"capabilities":{"max_msg_fds":16,"max_data_xfer_size":1048576,"max_dma_maps":65535,"#,
            r#""pgsizes":4096,"write_multiple":true}}"#
        ))
    );
    assert!(script.session.negotiated().unwrap().write_multiple);
}

#[test]
fn reply_to_a_version_without_capabilities_fits_its_buffer() {
    for text in ["", "\0", "{}\0", "{}", "{\"capabilities\":{}}\0", "{\"unknown\":{\"deep\":[1,2]}}\0"] {
        let mut script = ScriptedSession::fresh();
        let request = version_body(text);
        let reply = script.ask(1, &request);
        assert!(reply.len() <= request.len(), "{text:?} got the reply {reply:?}");
        assert!(!script.session.negotiated().unwrap().write_multiple, "only what the client offers");
    }
}

#[test]
fn capability_that_does_not_fit_is_not_negotiated() {
    let mut script = ScriptedSession::fresh();
    let reply = script.ask(1, &version_body("{\"capabilities\":{\"max_msg_fds\":1}}\0"));
    assert_eq!(&reply[4..], b"{\"capabilities\":{}}\0", "\"16\" is longer than \"1\"");
}

#[test]
fn negotiated_minor_version_is_the_lower_of_both() {
    for (theirs, agreed) in [(0, 0), (1, 1), (2, 1), (u16::MAX, 1)] {
        let mut script = ScriptedSession::fresh();
        let reply = script.ask(1, &[&[0, 0][..], &theirs.to_le_bytes()].concat());
        assert_eq!((u16_at(&reply, 0), u16_at(&reply, 2)), (0, agreed));
    }
}

#[test]
fn unsupported_major_version_ends_the_session() {
    let mut script = ScriptedSession::fresh();
    let closed = Err(ProtocolError::UnsupportedVersion { major: 1 });
    assert_eq!(script.receive(&message(5, 1, 0, &[1, 0, 0, 0]), Vec::new()), closed);
    assert_eq!(script.replies()[0].error, EINVAL);
    assert_eq!(script.receive(&message(6, 4, 0, &[0; 16]), Vec::new()), closed, "the session stays failed");
}

#[test]
fn requests_before_a_version_message_are_refused() {
    let mut script = ScriptedSession::fresh();
    for command in 2..=18 {
        assert_ne!(script.refused(command, &[0; 32]), 0);
    }
    assert_eq!(script.said(), [""; 0], "the device was not called");
    script.ask(1, &version_body("{}\0"));
    script.ask(13, &[]);
}

#[test]
fn malformed_version_message_is_refused_and_may_be_repeated() {
    let mut script = ScriptedSession::fresh();
    for body in [&b""[..], &[0], &[0, 0, 0], b"\0\0\0\0not json\0", &[0, 0, 0, 0, 0xff, 0xfe], b"\0\0\0\0{\0"]
    {
        assert_eq!(script.refused(1, body), EINVAL, "{body:?}");
    }
    let deep = [&[0; 4][..], &[b'['; 4000]].concat();
    assert_eq!(script.refused(1, &deep), EINVAL);
    script.ask(1, &version_body("{}\0"));
}

#[test]
fn too_long_version_message_is_discarded_and_refused() {
    let mut script = ScriptedSession::fresh();
    assert_eq!(script.refused(1, &vec![b' '; 100_000]), EINVAL);
    script.ask(1, &version_body("{}\0"));
}

#[test]
fn second_version_message_is_refused() {
    let mut script = ScriptedSession::agreed();
    assert_eq!(script.refused(1, &version_body("{}\0")), EINVAL);
    assert!(script.session.negotiated().unwrap().write_multiple, "the first one stays in force");
}

#[test]
fn version_message_with_no_reply_flag_gets_no_reply() {
    let mut script = ScriptedSession::fresh();
    script.receive(&message(1, 1, NO_REPLY, &version_body("{}\0")), Vec::new()).unwrap();
    assert_eq!(script.replies(), []);
    script.ask(13, &[]);
}
