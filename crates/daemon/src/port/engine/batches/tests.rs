//! Tests of a ring of batches, with both ends on one thread.

use super::*;
use plane::TrunkFrameHeader;

/// Returns the share of a sender.
fn share(number: u8) -> TrunkShare {
    TrunkShare::of_sender(number).unwrap()
}

/// Puts a frame with a number into a ring.
fn put(sender: &mut BatchSender, number: u32) -> bool {
    let frame = [&[0; 60][..], &number.to_be_bytes()].concat();
    put_frame(sender, share(0), &frame)
}

/// Puts a frame of a share into a ring.
fn put_frame(sender: &mut BatchSender, share: TrunkShare, frame: &[u8]) -> bool {
    let header = TrunkFrameHeader::to_uplink(None);
    sender.batch(share, frame.len()).is_some_and(|batch| batch.put(&header, frame))
}

/// Puts runs of 32 long frames into a ring, until the share may put no more.
fn flood(sender: &mut BatchSender, share: TrunkShare) {
    let (lengths, mut starts) = ([1_514; 32], [0; 32]);
    while let Some(batch) = sender.batch(share, 1_514) {
        let count = batch.find_places(&lengths, &mut starts);
        let run = (&starts[..count], &lengths[..count]);
        batch.add_run(&TrunkFrameHeader::to_uplink(None), run, std::iter::repeat_n(0, count));
    }
}

/// Takes all batches out of a ring, and returns the numbers of their frames.
fn numbers(receiver: &mut BatchReceiver) -> Vec<u32> {
    let mut found = Vec::new();
    while receiver.take(|batch| {
        let frames = (0..batch.len()).filter_map(|number| batch.frame_bytes(number));
        found.extend(frames.map(|frame| u32::from_be_bytes(*frame.last_chunk().unwrap())));
    }) {}
    found
}

#[test]
fn frames_leave_in_the_order_in_which_they_were_put() {
    let (mut sender, mut receiver) = connect();
    let mut expected = Vec::new();
    for round in 0..1_000 {
        (0..round % 7).for_each(|at| {
            assert!(put(&mut sender, round * 10 + at));
            expected.push(round * 10 + at);
        });
        sender.flush();
        if round % 5 == 0 {
            assert!(numbers(&mut receiver).iter().eq(expected.drain(..).as_slice()));
        }
    }
}

#[test]
fn receiver_that_is_behind_loses_no_frames_of_many_small_rounds() {
    let (mut sender, mut receiver) = connect();
    for number in 0..1_000 {
        assert!(put(&mut sender, number), "frame {number} of as many rounds has no room");
        sender.flush();
    }
    assert!(sender.holds_frames(), "the sender calls again before it sleeps");
    let mut found = numbers(&mut receiver);
    assert!(sender.flush());
    found.extend(numbers(&mut receiver));
    assert!(found.into_iter().eq(0..1_000));
    assert!(sender.created <= BATCHES);
    assert!(!sender.holds_frames());
}

#[test]
fn receiver_that_keeps_up_needs_two_batches() {
    let (mut sender, mut receiver) = connect();
    for number in 0..1_000 {
        assert!(put(&mut sender, number) && sender.flush());
        assert_eq!(numbers(&mut receiver), [number]);
    }
    assert!(sender.created <= 2, "{} batches", sender.created);
}

#[test]
fn full_ring_takes_no_frame_until_a_batch_comes_back() {
    let (mut sender, mut receiver) = connect();
    let room = (0..100_000).take_while(|number| put(&mut sender, *number)).count();
    assert!((3_900..5_000).contains(&room), "{room} frames had room");
    assert!(sender.flush(), "the receiver is woken, although no batch is open");
    assert!(!put(&mut sender, 0));
    assert!(receiver.take(|_| ()));
    assert!(put(&mut sender, 0));
}

#[test]
fn flooding_share_leaves_half_of_the_pool_to_another() {
    let (mut sender, _receiver) = connect();
    flood(&mut sender, share(0));
    assert!(!put_frame(&mut sender, share(0), &[0; 60]));
    assert!(sender.created <= POOL / 2 + 1, "{} batches", sender.created);
    let room = (0..100_000).take_while(|_| put_frame(&mut sender, share(1), &[0; 1_514])).count();
    assert!(room >= POOL / 4 * 43, "only {room} frames had room");
}

#[test]
fn floods_of_63_shares_leave_another_its_reserved_slots() {
    let (mut sender, mut receiver) = connect();
    for round in 0..RESERVED {
        for flooder in 0..63 {
            flood(&mut sender, share(flooder));
            sender.flush();
        }
        assert!(put_frame(&mut sender, share(63), &[0; 60]), "round {round}");
        sender.flush();
    }
    assert!(sender.created < BATCHES, "{} batches", sender.created);
    while sender.flush() | receiver.take(|_| ()) {}
    assert!(put_frame(&mut sender, share(0), &[0; 60]));
}

#[test]
fn floods_of_31_shares_by_longest_packets_leave_reserved_slots() {
    let (mut sender, _receiver) = connect();
    for round in 0..RESERVED {
        for flooder in 0..31 {
            while put_frame(&mut sender, share(flooder), &[0; 65_536]) {}
            sender.flush();
        }
        assert!(put_frame(&mut sender, share(63), &[0; 60]), "round {round}");
        sender.flush();
    }
}

#[test]
fn empty_ring_charges_no_share() {
    let (mut sender, mut receiver) = connect();
    for number in 0..10_000_u32 {
        let length = 60 + (number as usize * 7_919) % 9_000;
        put_frame(&mut sender, share((number % 5) as u8), &vec![0; length]);
        if number % 3 == 0 {
            sender.flush();
        }
        if number % 11 == 0 {
            receiver.take(|_| ());
        }
    }
    while sender.flush() | receiver.take(|_| ()) {}
    assert!((0..5).all(|number| sender.accounts.held(share(number)) == 0), "{:?}", sender.accounts);
}
