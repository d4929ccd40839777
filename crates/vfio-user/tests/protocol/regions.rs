//! Tests reads and writes of regions: no address causes an error, posted writes have no reply, and one message may have
//! several writes.

use crate::script::{COMMAND, EINVAL, NO_REPLY, REPLY, ScriptedSession, access, message, u32_at, u64_at};
use vfio_user::server::SessionProgress;

const READ: u16 = 9;
const WRITE: u16 = 10;
const WRITE_MULTI: u16 = 15;

#[test]
fn region_read_reply_echoes_the_request_before_the_data() {
    let mut script = ScriptedSession::agreed();
    script.device.bar0 = (0..=255).cycle().take(0x4000).collect();
    let reply = script.ask(READ, &access(0, 0x10, 4, &[]));
    assert_eq!(reply, [&access(0, 0x10, 4, &[])[..], &[0x10, 0x11, 0x12, 0x13]].concat());
    assert_eq!(script.said(), ["read 0 0x10 4"]);
}

#[test]
fn region_read_outside_all_regions_returns_all_ones() {
    let mut script = ScriptedSession::agreed();
    let outside = [
        (0, 0x4000, 1),
        (0, 0x3ffd, 4),
        (0, u64::MAX, 4),
        (0, u64::MAX - 3, 4),
        (1, 0, 4),
        (6, 0, 4),
        (7, 4096, 4),
        (9, 0, 4),
        (u32::MAX, 0, 4),
    ];
    for (region, offset, count) in outside {
        let reply = script.ask(READ, &access(region, offset, count, &[]));
        assert_eq!(reply[16..], vec![0xff; count as usize], "region {region} offset {offset:#x}");
    }
    assert_eq!(script.said(), [""; 0], "the device was not called");
    assert_eq!(script.session.counters().out_of_range, outside.len() as u64);
}

#[test]
fn region_read_of_no_bytes_gets_an_empty_reply() {
    let mut script = ScriptedSession::agreed();
    assert_eq!(script.ask(READ, &access(0, 0, 0, &[])).len(), 16);
    assert_eq!(script.ask(READ, &access(77, u64::MAX, 0, &[])).len(), 16);
}

#[test]
fn region_read_beyond_the_maximum_is_refused() {
    let mut script = ScriptedSession::agreed();
    for count in [(1 << 20) + 1, 0xffff_fff0, u32::MAX] {
        assert_eq!(script.refused(READ, &access(0, 0, count, &[])), EINVAL);
    }
    assert_eq!(
        script.ask(READ, &access(0, 0, 1 << 20, &[])).len(),
        16 + (1 << 20),
        "the maximum itself is served"
    );
}

#[test]
fn region_read_with_no_reply_flag_is_ignored() {
    let mut script = ScriptedSession::agreed();
    script.tell(READ, &access(0, 0, 4, &[]));
    assert_eq!(script.said(), [""; 0], "reads clear registers");
}

#[test]
fn configuration_space_is_read_in_one_block_as_qemu_does() {
    let mut script = ScriptedSession::agreed();
    assert_eq!(script.ask(READ, &access(7, 0, 4096, &[])).len(), 16 + 4096);
}

#[test]
fn region_write_reply_echoes_the_request_without_data() {
    let mut script = ScriptedSession::agreed();
    let reply = script.ask(WRITE, &access(0, 0x3818, 4, &[1, 2, 3, 4]));
    assert_eq!(reply, access(0, 0x3818, 4, &[]));
    assert_eq!(script.said(), ["write 0 0x3818 [1, 2, 3, 4]"]);
}

#[test]
fn posted_write_gets_no_reply() {
    let mut script = ScriptedSession::agreed();
    script.tell(WRITE, &access(0, 0x3818, 4, &[1, 0, 0, 0]));
    assert_eq!(script.said(), ["write 0 0x3818 [1, 0, 0, 0]"]);
    let counters = script.session.counters();
    assert_eq!((counters.posted_writes, counters.synchronous_writes), (1, 0));
}

#[test]
fn region_write_outside_all_regions_is_ignored() {
    let mut script = ScriptedSession::agreed();
    for (region, offset) in [(0, 0x4000), (0, u64::MAX), (1, 0), (6, 0), (99, 0), (u32::MAX, u64::MAX)] {
        script.ask(WRITE, &access(region, offset, 8, &[0xaa; 8]));
        script.tell(WRITE, &access(region, offset, 8, &[0xaa; 8]));
    }
    assert_eq!(script.said(), [""; 0]);
    script.ask(WRITE, &access(0, 0, 1, &[9]));
    assert_eq!(script.said(), ["write 0 0x0 [9]"]);
}

#[test]
fn region_write_with_wrong_length_is_ignored_with_a_reply() {
    let mut script = ScriptedSession::agreed();
    for (count, data) in [(8, 4), (4, 8), (u32::MAX, 4), (4, 0), (0, 4)] {
        script.ask(WRITE, &access(0, 0, count, &vec![1; data]));
        script.tell(WRITE, &access(0, 0, count, &vec![1; data]));
    }
    assert_eq!(script.said(), [""; 0]);
    assert_eq!(script.session.counters().malformed_writes, 10);
}

#[test]
fn region_access_shorter_than_its_fixed_part_is_refused() {
    let mut script = ScriptedSession::agreed();
    for command in [READ, WRITE] {
        assert_eq!(script.refused(command, &[0; 15]), EINVAL);
        assert_eq!(script.refused(command, &[]), EINVAL);
    }
}

#[test]
fn region_write_beyond_the_maximum_is_refused() {
    let mut script = ScriptedSession::agreed();
    let longest = 1 << 20;
    script.ask(WRITE, &access(0, 0, longest, &vec![1; longest as usize]));
    assert_eq!(script.refused(WRITE, &access(0, 0, longest + 1, &vec![1; longest as usize + 1])), EINVAL);
    script.ask(WRITE, &access(0, 0, 4, &[0; 4]));
}

fn multi(writes: &[(u64, u32, u32, [u8; 8])]) -> Vec<u8> {
    let mut body = (writes.len() as u64).to_le_bytes().to_vec();
    for (offset, region, count, data) in writes {
        body.extend(access(*region, *offset, *count, data));
    }
    body
}

#[test]
fn write_multi_performs_its_writes_in_order() {
    let mut script = ScriptedSession::agreed();
    script.tell(
        WRITE_MULTI,
        &multi(&[
            (0x3818, 0, 4, [1, 0, 0, 0, 9, 9, 9, 9]),
            (0x100, 0, 8, [8; 8]),
            (0x4000, 0, 4, [0; 8]),
            (0, 0, 9, [0; 8]),
            (0x2818, 0, 4, [2, 0, 0, 0, 9, 9, 9, 9]),
        ]),
    );
    assert_eq!(
        script.said(),
        [
            "write 0 0x3818 [1, 0, 0, 0]",
            "write 0 0x100 [8, 8, 8, 8, 8, 8, 8, 8]",
            "write 0 0x2818 [2, 0, 0, 0]"
        ]
    );
    assert_eq!(script.session.counters().posted_writes, 5);
}

#[test]
fn suspended_message_continues_where_it_stopped() {
    let mut script = ScriptedSession::agreed();
    let writes = [(0, 0, 4, [1; 8]), (0x10, 0, 8, [2; 8]), (0x20, 0, 9, [0; 8]), (0x30, 0, 4, [3; 8])];
    let bytes = [
        script.message(WRITE_MULTI, COMMAND, &multi(&writes)),
        script.message(WRITE, COMMAND, &access(0, 0x40, 6, &[4; 6])),
        script.message(WRITE, NO_REPLY, &access(0, 0x50, 1, &[5])),
    ]
    .concat();
    let mut received = &bytes[..];
    // Each turn writes three bytes. A message is undone until it is finished, and nothing is answered before.
    for turn in 0..8 {
        script.device.allowance = Some(3);
        let progress = script.receive(received, Vec::new());
        let ends = turn == 7;
        assert_eq!(progress, Ok(if ends { SessionProgress::Starved } else { SessionProgress::Suspended }));
        assert_eq!(script.session.is_suspended(), !ends);
        let left = bytes.len() - [0, 0, 0, 0, 0, 120, 120, bytes.len()][turn];
        assert_eq!(script.session.undone(), left, "turn {turn}");
        received = &[];
    }
    assert_eq!(
        script.said(),
        [
            "write 0 0x0 [1, 1, 1]",
            "write 0 0x3 [1]",
            "write 0 0x10 [2, 2]",
            "write 0 0x12 [2, 2, 2]",
            "write 0 0x15 [2, 2, 2]",
            "write 0 0x30 [3, 3, 3]",
            "write 0 0x33 [3]",
            "write 0 0x40 [4, 4]",
            "write 0 0x42 [4, 4, 4]",
            "write 0 0x45 [4]",
            "write 0 0x50 [5]",
        ]
    );
    assert_eq!(script.replies().len(), 2);
    let counters = script.session.counters();
    assert_eq!((counters.synchronous_writes, counters.posted_writes, counters.malformed_writes), (5, 1, 1));
}

#[test]
fn suspended_read_is_answered_once_it_is_whole() {
    let mut script = ScriptedSession::agreed();
    script.device.bar0 = (0..=255).cycle().take(4096).collect();
    let bytes = [
        script.message(READ, COMMAND, &access(0, 0x10, 8, &[])),
        script.message(READ, COMMAND, &access(0, 0x40, 2, &[])),
    ]
    .concat();
    let mut received = &bytes[..];
    for turn in 0..3 {
        script.device.allowance = Some(3);
        let suspended = script.receive(received, Vec::new()) == Ok(SessionProgress::Suspended);
        assert_eq!((suspended, script.session.is_suspended()), (true, true), "turn {turn}");
        let answered = if turn == 2 { bytes.len() / 2 } else { 0 };
        assert_eq!(script.session.undone(), bytes.len() - answered, "turn {turn}");
        let bodies: Vec<_> = script.replies().into_iter().map(|reply| reply.body).collect();
        let whole = access(0, 0x10, 8, &[0x10, 0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17]);
        assert_eq!(bodies, if turn == 2 { vec![whole] } else { vec![] }, "turn {turn}");
        received = &[];
    }
    script.device.allowance = None;
    assert_eq!(script.receive(&[], Vec::new()), Ok(SessionProgress::Starved));
    let reads = ["read 0 0x10 3", "read 0 0x13 3", "read 0 0x16 2", "read 0 0x40 1", "read 0 0x41 1"];
    assert_eq!(script.said(), reads);
    assert_eq!(script.session.counters().reads, 2);
}

#[test]
fn write_multi_reply_has_the_number_of_writes() {
    let mut script = ScriptedSession::agreed();
    let reply = script.ask(WRITE_MULTI, &multi(&[(0, 0, 1, [1; 8]), (4, 0, 1, [2; 8])]));
    assert_eq!((reply.len(), u64_at(&reply, 0)), (8, 2));
}

#[test]
fn write_multi_without_negotiation_or_a_valid_count_is_refused() {
    let mut plain = ScriptedSession::fresh();
    plain.ask(1, &[0; 4]);
    assert_eq!(plain.refused(WRITE_MULTI, &multi(&[(0, 0, 1, [1; 8])])), EINVAL);
    plain.ask(WRITE, &access(0, 0, 1, &[1]));

    let mut script = ScriptedSession::agreed();
    for count in [2, u64::MAX] {
        let mut body = multi(&[(0, 0, 1, [1; 8])]);
        body[..8].copy_from_slice(&count.to_le_bytes());
        assert_eq!(script.refused(WRITE_MULTI, &body), EINVAL);
        script.tell(WRITE_MULTI, &body);
    }
    assert_eq!(script.refused(WRITE_MULTI, &[0; 7]), EINVAL);
    assert_eq!(script.refused(WRITE_MULTI, &multi(&vec![(0, 0, 1, [1; 8]); 5000])), EINVAL);
    assert_eq!(script.said(), [""; 0]);
}

#[test]
fn posted_write_precedes_the_reply_to_a_later_read() {
    let mut script = ScriptedSession::agreed();
    let pipeline = [
        message(1, WRITE, NO_REPLY, &access(0, 0, 1, &[1])),
        message(1, READ, COMMAND, &access(0, 0, 1, &[])),
        message(1, WRITE, NO_REPLY, &access(0, 0, 1, &[2])),
    ];
    script.receive(&pipeline.concat(), Vec::new()).unwrap();
    assert_eq!(script.said(), ["write 0 0x0 [1]", "read 0 0x0 1", "write 0 0x0 [2]"]);
    let replies = script.replies();
    assert_eq!((replies.len(), replies[0].flags, replies[0].id), (1, REPLY, 1));
    assert_eq!(u32_at(&replies[0].body, 12), 1);
}
