//! Tests the stream of messages: divided anywhere, too long, too short, unexpected, too many; and the ownership of
//! descriptors.

use std::rc::Rc;

use vfio_user::decoder::{BUFFER_LIMIT, Decoder, MessageBody, ProtocolError};
use vfio_user::server::{OUTBOX_LIMIT, SessionProgress};

use crate::script::{
    COMMAND, EINVAL, ERROR, NO_REPLY, REPLY, ScriptedSession, access, dma_map, fds, message, set_irqs,
    sized_message,
};

#[test]
fn message_shorter_than_its_header_ends_the_connection() {
    for size in [0, 1, 15] {
        let mut script = ScriptedSession::agreed();
        let lost = Err(ProtocolError::SizeBelowHeader { size });
        assert_eq!(script.receive(&sized_message(1, 9, 0, size, &[]), Vec::new()), lost);
        assert_eq!(script.receive(&message(2, 13, 0, &[]), Vec::new()), lost, "for good");
        assert_eq!(script.replies(), []);
    }
}

#[test]
fn message_that_arrives_in_single_bytes_is_one_message() {
    let mut script = ScriptedSession::agreed();
    for byte in message(7, 10, 0, &access(0, 0x10, 4, &[1, 2, 3, 4])) {
        assert_eq!(script.receive(&[byte], Vec::new()), Ok(SessionProgress::Starved));
    }
    assert_eq!(script.said(), ["write 0 0x10 [1, 2, 3, 4]"]);
    assert_eq!(script.replies().len(), 1);
}

#[test]
fn incomplete_message_uses_no_more_memory_than_its_bytes() {
    let mut script = ScriptedSession::agreed();
    let bytes = sized_message(7, 10, 0, 32 + (1 << 20), &access(0, 0, 1 << 20, &[0; 1000]));
    assert_eq!(script.receive(&bytes, Vec::new()), Ok(SessionProgress::Starved));
    assert_eq!(script.replies(), []);
}

#[test]
fn claimed_message_size_allocates_no_memory() {
    let mut script = ScriptedSession::agreed();
    script.receive(&sized_message(9, 2, 0, u32::MAX, &[0; 32]), Vec::new()).unwrap();
    let chunk = vec![0; 1 << 20];
    let mut left = u32::MAX as usize - 48;
    while left > 0 {
        let here = left.min(chunk.len());
        script.receive(&chunk[..here], Vec::new()).unwrap();
        left -= here;
    }
    let replies = script.replies();
    assert_eq!((replies.len(), replies[0].id, replies[0].error), (1, 9, EINVAL));
    script.ask(13, &[]);
}

#[test]
fn unexpected_replies_are_discarded_and_counted() {
    let mut script = ScriptedSession::agreed();
    for (command, size) in [(9, 0), (11, 24), (12, 16), (999, 70_000)] {
        for flags in [REPLY, REPLY | ERROR, REPLY | NO_REPLY] {
            let bytes = message(1, command, flags, &vec![0x77; size]);
            assert_eq!(script.receive(&bytes, fds(&[4])), Ok(SessionProgress::Starved));
        }
    }
    assert_eq!(script.replies(), []);
    let counters = script.session.counters();
    assert_eq!((counters.unasked_replies, counters.dropped_fds), (12, 12));
    script.ask(13, &[]);
}

#[test]
fn request_with_invalid_type_or_error_bit_is_refused() {
    let mut script = ScriptedSession::agreed();
    for flags in [2, 15, ERROR, 2 | ERROR] {
        let bytes = script.message(13, flags, &[]);
        script.receive(&bytes, Vec::new()).unwrap();
        assert_eq!(script.replies()[0].error, EINVAL);
        let bytes = script.message(13, flags | NO_REPLY, &[]);
        script.receive(&bytes, Vec::new()).unwrap();
        assert_eq!(script.replies(), []);
    }
    assert_eq!(script.said(), [""; 0]);
}

#[test]
fn message_id_may_be_reused_by_a_later_request() {
    let mut script = ScriptedSession::agreed();
    let resets = [message(3, 13, 0, &[]), message(3, 13, 0, &[]), message(3, 13, 0, &[])].concat();
    script.receive(&resets, Vec::new()).unwrap();
    assert_eq!(script.replies().iter().map(|reply| reply.id).collect::<Vec<_>>(), [3, 3, 3]);
}

#[test]
fn session_handles_no_message_while_too_many_replies_wait() {
    let mut script = ScriptedSession::agreed();
    let read = message(1, 9, 0, &access(7, 0, 4096, &[]));
    let mut blocked = false;
    for _ in 0..100 {
        blocked |= script.receive(&read, Vec::new()).unwrap() == SessionProgress::Blocked;
        assert!(script.out.pending() < OUTBOX_LIMIT + 4096 + 32);
    }
    assert!(blocked, "more than 256 KiB of replies were requested");
    let served = script.replies().len();
    while script.receive(&[], Vec::new()).unwrap() == SessionProgress::Blocked {}
    assert_eq!(served + script.replies().len(), 100, "nothing is lost when the client reads again");
}

#[test]
fn one_session_step_handles_one_message() {
    let mut script = ScriptedSession::agreed();
    script.session.push(&[message(1, 13, 0, &[]), message(2, 13, 0, &[])].concat(), []).unwrap();
    assert_eq!(script.session.step(&mut script.device, &mut script.out), Ok(SessionProgress::Handled));
    assert_eq!(script.replies().len(), 1);
    assert_eq!(script.session.step(&mut script.device, &mut script.out), Ok(SessionProgress::Handled));
    assert_eq!(script.session.step(&mut script.device, &mut script.out), Ok(SessionProgress::Starved));
}

#[test]
fn received_bytes_beyond_the_sessions_limit_are_refused() {
    let mut script = ScriptedSession::agreed();
    let chunk = vec![0x01; 65536];
    let refused = (0..100).find_map(|_| script.session.push(&chunk, []).err());
    assert_eq!(refused, Some(ProtocolError::Overrun));
}

/// Decodes received bytes and descriptors. Returns the id of each message, and the descriptors that belong to the
/// message.
fn owners(pushes: &[(&[u8], &[i32])]) -> Vec<(u16, Vec<i32>)> {
    let mut decoder = Decoder::new(|_| BUFFER_LIMIT);
    let mut owners = Vec::new();
    for (bytes, fds) in pushes {
        decoder.push(bytes, fds.to_vec()).unwrap();
        while let Some(message) = decoder.next_message().unwrap() {
            owners.push((message.header.id.get(), message.fds));
        }
    }
    owners
}

#[test]
fn file_descriptors_belong_to_the_last_message_of_a_recvmsg() {
    let one = message(1, 10, NO_REPLY, &access(0, 0, 4, &[0; 4]));
    let two = message(2, 2, COMMAND, &dma_map(3, 0, 0, 0x1000));
    let both = [&one[..], &two].concat();
    let expected = [(1, vec![]), (2, vec![7])];
    assert_eq!(owners(&[(&one, &[]), (&two, &[7])]), expected, "a recvmsg each");
    assert_eq!(owners(&[(&both, &[7])]), expected, "both in one: the barrier is behind the second");
    for cut in 1..one.len() {
        assert_eq!(owners(&[(&both[..cut], &[]), (&both[cut..], &[7])]), expected, "cut at {cut}");
    }
    for cut in one.len() + 1..both.len() {
        let pushes = [(&both[..cut], &[7][..]), (&both[cut..], &[])];
        assert_eq!(owners(&pushes), expected, "they come with the first byte, cut at {cut}");
    }
}

#[test]
fn file_descriptors_of_two_recvmsgs_belong_to_two_messages() {
    let first = message(1, 2, COMMAND, &dma_map(3, 0, 0, 0x1000));
    let second = message(2, 8, COMMAND, &set_irqs(0x24, 2, 0, 2));
    assert_eq!(
        owners(&[(&first, &[1]), (&second[..1], &[2, 3]), (&second[1..], &[])]),
        [(1, vec![1]), (2, vec![2, 3])]
    );
}

#[test]
fn excess_received_file_descriptors_are_closed() {
    let mut script = ScriptedSession::agreed();
    let many = fds(&[0; 300]);
    assert_eq!(script.refused_with(8, &set_irqs(0x24, 2, 0, 3), many.clone()), EINVAL);
    assert!(many.iter().all(|fd| Rc::strong_count(fd) == 1));
    assert_eq!(script.session.counters().dropped_fds, 300 - 16);

    // One message in single bytes, each with descriptors of its own.
    for byte in message(1, 8, COMMAND, &set_irqs(0x24, 2, 0, 3)) {
        script.receive(&[byte], many[..10].to_vec()).unwrap();
        assert!(many.iter().map(Rc::strong_count).sum::<usize>() <= 300 + 16);
    }
    assert_eq!(script.replies()[0].error, EINVAL);
    assert!(many.iter().all(|fd| Rc::strong_count(fd) == 1));
}

#[test]
fn file_descriptors_received_without_a_message_are_closed() {
    let mut script = ScriptedSession::agreed();
    let lost = fds(&[1]);
    let long = message(5, 16, COMMAND, &[0; 5000]);
    script.receive(&[], lost.clone()).unwrap();
    script.receive(&long[..100], lost.clone()).unwrap();
    script.receive(&long[100..], lost.clone()).unwrap();
    assert_eq!(Rc::strong_count(&lost[0]), 1);
    assert_eq!(script.replies().len(), 1);
    script.ask_with(2, &dma_map(3, 0, 0, 0x1000), fds(&[9]));
    assert_eq!(script.said(), ["map 0x0+0x1000 true Some((9, 0))"], "the next message has its own");
}

#[test]
fn discarded_message_is_reported_once_with_its_header() {
    let mut decoder = Decoder::<i32>::new(|_| 8);
    decoder.push(&[message(1, 3, 0, &[0; 9]), message(2, 3, 0, &[1; 8])].concat(), []).unwrap();
    let first = decoder.next_message().unwrap().unwrap();
    assert_eq!((first.header.id.get(), first.body), (1, MessageBody::Discarded));
    let second = decoder.next_message().unwrap().unwrap();
    assert_eq!((second.header.id.get(), second.body), (2, MessageBody::Whole(&[1; 8])));
    assert!(decoder.next_message().unwrap().is_none());
}
