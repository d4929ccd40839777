//! Tests properties of a session for every stream of messages: no panic, bounded memory, progress, well-formed replies,
//! and equal results for any division into pieces.

use proptest::collection::vec;
use proptest::prelude::*;
use vfio_user::decoder::BUFFER_LIMIT;
use vfio_user::outbox::MessageOutbox;
use vfio_user::server::{OUTBOX_LIMIT, ServerSession, SessionProgress};

use crate::script::{
    CountedFd, ERROR, NO_REPLY, QEMU_CAPABILITIES, REPLY, ReceivedReply, RecordingDevice, access, dma_map,
    dma_unmap, message, set_irqs, sized_message, take_replies, version_body, words,
};

/// Generates a client's message that is valid, or nearly so.
fn any_message() -> impl Strategy<Value = Vec<u8>> {
    let offset = prop_oneof![0u64..0x5000, Just(u64::MAX), any::<u64>()];
    let size = prop_oneof![(0u64..8).prop_map(|pages| pages * 4096), any::<u64>()];
    let flags = prop_oneof![4 => Just(0), 2 => Just(NO_REPLY), 1 => any::<u32>()];
    let body = prop_oneof![
        (0u32..10, offset.clone(), 0u32..5000).prop_map(|(r, o, c)| (9, access(r, o, c, &[]))),
        (0u32..10, offset.clone(), vec(any::<u8>(), 0..16))
            .prop_map(|(r, o, d)| (10, access(r, o, d.len() as u32, &d))),
        (0u32..4, size.clone(), size.clone()).prop_map(|(f, i, s)| (2, dma_map(f, 0, i, s))),
        (0u32..4, size.clone(), size).prop_map(|(f, i, s)| (3, dma_unmap(f, i, s))),
        (0u32..64, 0u32..6, 0u32..5, 0u32..5).prop_map(|(f, i, s, c)| (8, set_irqs(f, i, s, c))),
        (0u32..100, 0u32..12).prop_map(|(a, i)| (5, [words(&[a, 0, i, 0]), vec![0; 16]].concat())),
        (0u64..9, offset).prop_map(|(n, o)| {
            let writes = (0..4).flat_map(|_| access(0, o, 4, &[1; 8]));
            (15, n.to_le_bytes().into_iter().chain(writes).collect())
        }),
        (0u16..20, vec(any::<u8>(), 0..600)),
    ];
    (any::<u16>(), flags, body).prop_map(|(id, flags, (command, body))| message(id, command, flags, &body))
}

/// Generates a client's stream: a `VERSION` message, without which the session would refuse the others, and up to 19
/// random messages.
fn conversation() -> impl Strategy<Value = Vec<u8>> {
    vec(any_message(), 0..20).prop_map(|messages| {
        let version = message(0, 1, 0, &version_body(QEMU_CAPABILITIES));
        [version, messages.concat()].concat()
    })
}

struct ServerSessionRunResult {
    replies: Vec<ReceivedReply>,
    device: RecordingDevice,
    error: bool,
}

/// Passes a client's stream to a new session, in pieces whose lengths repeat `pieces`. Returns the replies, the device,
/// and true if the session failed.
fn run(stream: &[u8], pieces: &[usize], fds: usize) -> ServerSessionRunResult {
    run_on(RecordingDevice::default(), stream, pieces, fds)
}

fn run_on(
    mut device: RecordingDevice,
    stream: &[u8],
    pieces: &[usize],
    fds: usize,
) -> ServerSessionRunResult {
    let mut session = ServerSession::default();
    let mut out: MessageOutbox<CountedFd> = MessageOutbox::new();
    let (mut rest, mut replies) = (stream, Vec::new());
    let mut pieces = pieces.iter().cycle();
    let mut error = false;
    while !rest.is_empty() && !error {
        let (piece, later) = rest.split_at((*pieces.next().unwrap()).clamp(1, rest.len()));
        rest = later;
        session.push(piece, std::iter::repeat_n(CountedFd::new(1), fds)).unwrap();
        // Every step takes a whole header or waits for one, so this number suffices for any piece.
        for _ in 0..=2 * (piece.len() + BUFFER_LIMIT) / 16 {
            match session.step(&mut device, &mut out) {
                Ok(SessionProgress::Handled | SessionProgress::Suspended) => {}
                Ok(SessionProgress::Starved) => break,
                Ok(SessionProgress::Waiting) => session.complete(Ok(()), &mut out),
                Ok(SessionProgress::Blocked) => replies.extend(take_replies(&mut out)),
                Err(_) => {
                    error = true;
                    break;
                }
            }
            assert!(out.pending() < OUTBOX_LIMIT + (1 << 20) + 64);
        }
        replies.extend(take_replies(&mut out));
    }
    session.close(&mut device);
    ServerSessionRunResult { replies, device, error }
}

fn check_replies(replies: &[ReceivedReply]) {
    for reply in replies {
        assert_eq!(reply.flags & 0xf, REPLY);
        if reply.flags & ERROR == 0 {
            assert_eq!(reply.error, 0);
        } else {
            assert_ne!(reply.error, 0);
            assert!(reply.body.is_empty());
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, ..ProptestConfig::default() })]

    #[test]
    fn session_survives_any_bytes_in_pieces_of_any_size(
        stream in vec(any::<u8>(), 0..3000),
        pieces in vec(1usize..200, 1..8),
        fds in 0usize..40,
    ) {
        check_replies(&run(&stream, &pieces, fds).replies);
    }

    #[test]
    fn session_survives_messages_with_any_header(
        headers in vec((any::<u16>(), 0u16..20, any::<u32>(), 16u32..5000), 1..20),
        pieces in vec(1usize..5000, 1..8),
    ) {
        let stream: Vec<u8> = headers.iter().flat_map(|&(id, command, flags, size)| {
            sized_message(id, command, flags, size, &vec![0; size as usize - 16])
        }).collect();
        let run = run(&stream, &pieces, 0);
        check_replies(&run.replies);
        prop_assert!(!run.error || run.replies.iter().any(|reply| reply.command == 1));
    }

    #[test]
    fn replies_do_not_depend_on_the_size_of_received_pieces(
        stream in conversation(),
        pieces in vec(prop_oneof![1usize..4, 1usize..100, 1usize..5000], 1..8),
    ) {
        let whole = run(&stream, &[usize::MAX], 0);
        let cut = run(&stream, &pieces, 0);
        check_replies(&whole.replies);
        prop_assert_eq!(whole.replies, cut.replies);
        prop_assert_eq!(whole.device.said, cut.device.said);
        prop_assert_eq!(whole.error, cut.error);
    }

    #[test]
    fn replies_do_not_depend_on_late_completion_by_the_device(stream in conversation()) {
        let now = run(&stream, &[usize::MAX], 0);
        let later = run_on(RecordingDevice { later: true, ..RecordingDevice::default() }, &stream, &[usize::MAX], 0);
        prop_assert_eq!(now.replies, later.replies);
        prop_assert_eq!(now.device.said, later.device.said);
    }

    #[test]
    fn every_request_that_wants_a_reply_gets_exactly_one(
        messages in vec((any::<u16>(), 0u16..30, any::<bool>(), vec(any::<u8>(), 0..100)), 0..30),
    ) {
        let mut stream = message(0, 1, 0, &[0; 4]);
        let mut expected = vec![(0, 1)];
        for (id, command, silent, body) in &messages {
            stream.extend(message(*id, *command, if *silent { NO_REPLY } else { 0 }, body));
            if !silent {
                expected.push((*id, *command));
            }
        }
        let run = run(&stream, &[usize::MAX], 0);
        let answered: Vec<_> = run.replies.iter().map(|reply| (reply.id, reply.command)).collect();
        prop_assert_eq!(answered, expected);
    }
}
