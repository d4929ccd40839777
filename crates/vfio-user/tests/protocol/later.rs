//! Tests requests that the device finishes after its function has returned: time and order of the replies.

use std::rc::Rc;

use vfio_user::decoder::ProtocolError;
use vfio_user::server::SessionProgress;
use vfio_user::wire::Errno;

use crate::script::{
    BAR0_SIZE, NO_REPLY, ReceivedReply, ScriptedSession, access, dma_map, dma_unmap, fds, message, set_irqs,
    words,
};

const MAP: u16 = 2;
const UNMAP: u16 = 3;
const SET_IRQS: u16 = 8;
const READ: u16 = 9;
const RW: u32 = 3;

/// Creates a session whose device finishes DMA maps and interrupt requests later.
fn later() -> ScriptedSession {
    let mut script = ScriptedSession::agreed();
    script.device.later = true;
    script.device.bar0 = vec![0; BAR0_SIZE as usize];
    script.said();
    script
}

fn done(script: &mut ScriptedSession) -> Vec<ReceivedReply> {
    script.session.complete(Ok(()), &mut script.out);
    script.replies()
}

/// Returns the message ids and error numbers of replies.
fn ids_and_errors(replies: &[ReceivedReply]) -> Vec<(u16, u32)> {
    replies.iter().map(|reply| (reply.id, reply.error)).collect()
}

#[test]
fn delayed_request_gets_its_reply_on_completion() {
    let mut script = later();
    let map = message(7, MAP, 0, &dma_map(RW, 0, 0x1000, 0x1000));
    assert_eq!(script.receive(&map, fds(&[5])), Ok(SessionProgress::Waiting));
    assert_eq!((script.replies(), script.session.dma_maps()), (vec![], 0));
    assert_eq!(script.receive(&[], vec![]), Ok(SessionProgress::Waiting), "for as long as it takes");
    assert_eq!(ids_and_errors(&done(&mut script)), [(7, 0)]);
    assert_eq!(script.session.dma_maps(), 1);
    assert_eq!(script.receive(&[], vec![]), Ok(SessionProgress::Starved));
    assert_eq!(done(&mut script), [], "one request has one reply");
}

#[test]
fn messages_after_a_delayed_request_are_handled_in_order() {
    let mut script = later();
    let behind = [
        message(1, MAP, 0, &dma_map(RW, 0, 0, 0x1000)),
        message(2, READ, 0, &access(0, 0, 4, &[])),
        message(3, UNMAP, 0, &dma_unmap(0, 0, 0x1000)),
        message(4, SET_IRQS, 0, &set_irqs(0x24, 2, 0, 1)),
        message(5, READ, 0, &access(0, 4, 4, &[])),
    ];
    // Descriptors belong to the message with the last received byte.
    script.session.push(&behind[0], fds(&[5])).unwrap();
    assert_eq!(script.receive(&behind[1], vec![]), Ok(SessionProgress::Waiting));
    script.receive(&behind[2], vec![]).unwrap();
    script.receive(&behind[3], fds(&[6])).unwrap();
    script.receive(&behind[4], vec![]).unwrap();
    assert_eq!(script.said(), ["map 0x0+0x1000 true Some((5, 0))"]);
    assert_eq!(ids_and_errors(&done(&mut script)), [(1, 0)]);

    assert_eq!(script.receive(&[], vec![]), Ok(SessionProgress::Waiting), "the eventfd is pending now");
    assert_eq!(
        ids_and_errors(&script.replies()),
        [(2, 0), (3, 0)],
        "an unmap finds the window mapped before it"
    );
    assert_eq!(script.said()[..2], ["read 0 0x0 4", "unmap 0x0+0x1000"]);
    assert_eq!(ids_and_errors(&done(&mut script)), [(4, 0)]);
    assert_eq!(script.receive(&[], vec![]), Ok(SessionProgress::Starved));
    assert_eq!(ids_and_errors(&script.replies()), [(5, 0)]);
}

#[test]
fn dma_window_whose_delayed_mapping_failed_is_not_mapped() {
    let mut script = later();
    let map = message(7, MAP, 0, &dma_map(RW, 0, 0x1000, 0x1000));
    script.receive(&map, fds(&[5])).unwrap();
    script.session.complete(Err(Errno::ENOSPC), &mut script.out);
    assert_eq!(ids_and_errors(&script.replies()), [(7, 28)]);
    assert_eq!((script.session.dma_maps(), script.session.counters().refused), (0, 1));
    let again = message(8, MAP, 0, &dma_map(RW, 0, 0x1000, 0x1000));
    script.receive(&again, fds(&[5])).unwrap();
    assert_eq!(ids_and_errors(&done(&mut script)), [(8, 0)], "its addresses are free");
}

#[test]
fn request_refused_immediately_is_not_pending() {
    let mut script = later();
    assert_eq!(script.refused(MAP, &dma_map(RW, 0, 1, 0x1000)), 22);
    script.device.refuse = Some(Errno::EINVAL);
    assert_eq!(script.refused(SET_IRQS, &set_irqs(0x21, 2, 0, 0)), 22);
}

#[test]
fn pending_request_without_reply_delays_later_messages() {
    let mut script = later();
    let both =
        [message(1, MAP, NO_REPLY, &dma_map(RW, 0, 0, 0x1000)), message(2, READ, 0, &access(0, 0, 4, &[]))];
    assert_eq!(script.receive(&both.concat(), vec![]), Ok(SessionProgress::Waiting));
    assert_eq!(done(&mut script), []);
    assert_eq!(script.session.dma_maps(), 1);
    script.receive(&[], vec![]).unwrap();
    assert_eq!(ids_and_errors(&script.replies()), [(2, 0)]);
}

#[test]
fn interrupt_request_for_several_vectors_completes_once() {
    let mut script = later();
    let trigger = message(3, SET_IRQS, 0, &set_irqs(0x21, 2, 0, 3));
    assert_eq!(script.receive(&trigger, vec![]), Ok(SessionProgress::Waiting));
    assert_eq!(script.said().len(), 3);
    assert_eq!(ids_and_errors(&done(&mut script)), [(3, 0)]);
    assert_eq!(script.receive(&[], vec![]), Ok(SessionProgress::Starved));
}

#[test]
fn closed_session_drops_a_pending_requests_file_descriptors() {
    let mut script = later();
    let all = fds(&[1, 2]);
    let map = message(1, MAP, 0, &dma_map(RW, 0, 0, 0x1000));
    script.receive(&map, vec![all[0].clone()]).unwrap();
    let irqs = message(2, SET_IRQS, 0, &words(&[20, 0x24, 2, 0, 1]));
    assert_eq!(script.receive(&irqs, vec![all[1].clone()]), Ok(SessionProgress::Waiting));
    let ScriptedSession { session, mut device, .. } = script;
    session.close(&mut device);
    assert!(device.said.iter().any(|said| said == "unmap all"), "{:?}", device.said);
    assert_eq!(device.maps, []);
    assert!(all.iter().all(|fd| Rc::strong_count(fd) == 1), "every descriptor is closed");
}

#[test]
fn invalid_message_is_reported_after_the_pending_request() {
    let mut script = later();
    let map = message(1, MAP, 0, &dma_map(RW, 0, 0, 0x1000));
    let mut bad = message(2, READ, 0, &[]);
    bad[4..8].copy_from_slice(&[0; 4]);
    assert_eq!(script.receive(&[map, bad].concat(), vec![]), Ok(SessionProgress::Waiting));
    assert_eq!(ids_and_errors(&done(&mut script)), [(1, 0)]);
    assert_eq!(script.receive(&[], vec![]), Err(ProtocolError::SizeBelowHeader { size: 0 }));
}
