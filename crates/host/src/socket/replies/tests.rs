//! Tests reply logs of a process that dies between any two calls, and of a successor process that continues with the
//! file and its records.

use super::*;
use crate::socket::{ReceivedFds, SocketReceiveResult};

/// Reply log of a connection to a client, with the records that the log's owner keeps.
struct ReplyLogOwner {
    log: ReplyLog,
    noted: UnsentReplyRange,
    held: IncompleteMessageRange,
    ours: StreamSocket,
    theirs: StreamSocket,
}

impl ReplyLogOwner {
    fn new() -> Self {
        let (ours, theirs) = StreamSocket::pair().unwrap();
        let (noted, held) = (UnsentReplyRange::default(), IncompleteMessageRange::default());
        Self { log: ReplyLog::new().unwrap(), noted, held, ours, theirs }
    }

    fn append(&mut self, bytes: &[u8]) {
        let moves = self.log.make_room(bytes.len());
        self.log.append(bytes).unwrap();
        self.noted = self.log.extent();
        if moves {
            self.log.settle().unwrap();
        }
    }

    fn send(&mut self, bytes: usize) {
        assert_eq!(self.log.send(&self.ours, bytes).unwrap(), SocketSendResult::Bytes(bytes));
    }

    fn hears(&self, bytes: &[u8]) {
        let (mut received, mut buffer) = (Vec::new(), [0; 1 << 16]);
        while received.len() < bytes.len() {
            match self.theirs.recv(&mut buffer, &mut ReceivedFds::new()).unwrap() {
                SocketReceiveResult::Bytes(count) => received.extend_from_slice(&buffer[..count]),
                other => panic!("{other:?} after {} bytes", received.len()),
            }
        }
        assert!(received == bytes, "the client received other bytes");
    }

    /// Simulates the end of the process, and adopts its reply log as the successor process does. Returns the bytes that
    /// the successor still has to send.
    fn die(&mut self) -> Vec<u8> {
        let file = self.log.file.try_clone().unwrap();
        let (log, replies, sent) = ReplyLog::adopt(file, self.noted, self.held).unwrap();
        self.log = log;
        replies[sent..].to_vec()
    }
}

#[test]
fn next_process_reads_the_number_of_sent_reply_bytes() {
    let mut world = ReplyLogOwner::new();
    world.append(b"first second");
    world.send(6);
    assert_eq!(world.die(), b"second");
    world.send(6);
    world.hears(b"first second");
    assert_eq!(world.die(), b"");
}

#[test]
fn unrecorded_reply_bytes_are_not_sent_after_a_crash() {
    let mut world = ReplyLogOwner::new();
    world.append(b"noted");
    world.log.append(b"not noted").unwrap();
    assert_eq!(world.die(), b"noted");
    world.log.append(b" later").unwrap();
    world.noted = world.log.extent();
    world.send(11);
    world.hears(b"noted later");
}

#[test]
fn unread_replies_survive_the_release_of_reply_log_pages() {
    let mut world = ReplyLogOwner::new();
    let mut expected = Vec::new();
    for number in 0..40_u8 {
        let reply = vec![number; 3000];
        world.append(&reply);
        world.send(reply.len());
        world.log.trim().unwrap();
        expected.extend(reply);
    }
    assert!(world.log.hole >= HOLE, "pages were released");
    world.hears(&expected);
}

#[test]
fn crash_at_a_reply_log_page_boundary_loses_no_recorded_reply() {
    let mut world = ReplyLogOwner::new();
    world.append(&[7; 4000]);
    world.send(4000);
    for recorded in [false, true] {
        assert!(world.log.make_room(200), "200 bytes more would cross the page");
        world.log.append(&[8; 200]).unwrap();
        if recorded {
            world.noted = world.log.extent();
        }
        assert_eq!(world.die(), [8; 200][..if recorded { 200 } else { 0 }]);
    }
    world.send(200);
    world.hears(&[[7; 4000].as_slice(), &[8; 200]].concat());
}

#[test]
fn message_part_held_in_the_reply_log_survives_crashes() {
    let mut world = ReplyLogOwner::new();
    let mut sent = Vec::new();
    for round in 1..20_u8 {
        world.append(&[round; 10]);
        world.send(10);
        world.log.trim().unwrap();
        sent.extend([round; 10]);
        let message = vec![0x80 | round; usize::from(round) * 4500];
        for part in message.chunks(3000) {
            world.log.hold(part).unwrap();
            // Not recorded yet, so a successor writes the part again.
            world.die();
            world.log.hold(part).unwrap();
            world.held = world.log.held();
            world.die();
        }
        assert!(world.log.read_held().unwrap() == message);
        world.append(&[round; 100]);
        assert!(world.log.read_held().unwrap() == message, "its reply lies elsewhere");
        world.held = IncompleteMessageRange::default();
        world.log.release().unwrap();
        world.die();
        world.send(100);
        world.log.trim().unwrap();
        sent.extend([round; 100]);
    }
    world.hears(&sent);
}

#[test]
fn sending_replies_does_not_block_if_the_client_reads_none() {
    let mut world = ReplyLogOwner::new();
    world.append(&[1; 1 << 20]);
    let mut total = 0;
    while let SocketSendResult::Bytes(sent) = world.log.send(&world.ours, (1 << 20) - total).unwrap() {
        total += sent;
    }
    assert_eq!(world.die().len(), (1 << 20) - total);
}
