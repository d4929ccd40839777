//! Tests a card in parts, each with some of the VFs and a plane of its own. Frames between parts cross in trunks.

use crate::exchange::{datagram, pseudo};
use crate::machine::{GuestDriverConfig, MODERN, TestMachine};
use crate::offloads::{TSO, large_packet};
use crate::trunks::{NumberedFrames, PARTS, ROOM, RandomNumbers, TrunkEnd, Trunks, VFS, frames_in};
use plane::ledger::PortCounters;
use plane::pacing::TransmitPacing;
use plane::switch::{StormState, SwitchTables};
use plane::{ForwardingPlane, PortIndex};
use std::sync::{Arc, Mutex};
use virtio::VirtioFeatures;
use virtio::net::{NetHeader, flag};
use virtio_nic::{MAX_VFS, Nic};

/// A card in parts. The part in use is in the machine; the others are beside it.
struct DividedCard {
    machine: TestMachine,
    parts: Vec<(Nic, Box<ForwardingPlane<MAX_VFS>>)>,
    trunks: Arc<Mutex<Trunks>>,
}

impl DividedCard {
    /// Divides a card whose VFs are all in the first part.
    fn new(features: VirtioFeatures) -> Self {
        Self::of(TestMachine::new(&[(false, features); VFS as usize]))
    }

    fn of(mut machine: TestMachine) -> Self {
        machine.poll(0);
        let trunks = Arc::new(Mutex::new(Trunks::default()));
        let mut parts = Vec::new();
        for part in 0..PARTS {
            let mut nic = Nic::new(VFS);
            nic.follow(&machine.nic);
            let mut plane = ForwardingPlane::new(
                SwitchTables::closed(0),
                TransmitPacing::new(None),
                StormState::default(),
                [PortCounters::default(); MAX_VFS],
            );
            plane.set_tables(machine.plane.tables().clone());
            if part == 0 {
                std::mem::swap(&mut nic, &mut machine.nic);
            }
            nic.set_trunk(Some(Box::new(TrunkEnd::new(part, &trunks))));
            parts.push((nic, Box::new(plane)));
        }
        Self { machine, parts, trunks }
    }

    fn home(&self, vf: u8) -> usize {
        self.trunks.lock().unwrap().homes[usize::from(vf)]
    }

    /// Calls `act` with a part in the machine.
    fn on<R>(&mut self, part: usize, act: impl FnOnce(&mut TestMachine) -> R) -> R {
        let Self { machine, parts, .. } = self;
        let (nic, plane) = &mut parts[part];
        std::mem::swap(&mut machine.nic, nic);
        std::mem::swap(&mut machine.plane, plane);
        let result = act(machine);
        std::mem::swap(&mut machine.nic, nic);
        std::mem::swap(&mut machine.plane, plane);
        result
    }

    /// Sends a packet of a guest.
    fn send(&mut self, vf: u8, header: NetHeader, frame: &[u8]) {
        let part = self.home(vf);
        self.on(part, |machine| {
            machine.finished(vf);
            assert!(machine.send(vf, header, frame, &[]));
        });
    }

    /// Delivers all frames in the trunks to a part.
    fn empty_trunks(&mut self, part: usize) {
        let incoming = std::mem::take(&mut self.trunks.lock().unwrap().batches[part]);
        self.on(part, |machine| {
            for mut batch in incoming.into_iter().flatten() {
                machine.nic.leave_trunk(&mut machine.plane, &mut batch, &mut machine.bus);
            }
        });
    }

    fn poll(&mut self, part: usize) {
        self.empty_trunks(part);
        self.on(part, |machine| machine.poll_once(0, 8));
    }

    /// Moves a VF's device to another part, after the frames in all trunks have left.
    fn move_device(&mut self, vf: u8, to: usize) {
        let from = self.home(vf);
        (0..PARTS).for_each(|part| self.empty_trunks(part));
        let device = self.parts[from].0.detach(vf).unwrap();
        self.parts[to].0.attach(device);
        self.trunks.lock().unwrap().homes[usize::from(vf)] = to;
    }
}

#[test]
fn no_frame_is_lost_or_overtaken_in_10_000_moves_of_devices() {
    let mut card = DividedCard::new(MODERN);
    let (mut sent, mut received) = (NumberedFrames::default(), NumberedFrames::default());
    let mut numbers = RandomNumbers::new();
    let mut random = |below: u32| numbers.next(below);
    for vf in 0..VFS {
        (0..100).for_each(|_| assert!(card.machine.post_one(vf, 0, &[1_536])));
    }
    let mut moves = 0;
    while moves < 10_000 {
        let from = random(VFS.into()) as u8;
        let to = (from + 1 + random(u32::from(VFS) - 1) as u8) % VFS;
        for _ in 0..1 + random(4) {
            let number = sent.next(from, to);
            card.send(from, NetHeader::default(), &datagram(from, to, &number.to_be_bytes()));
        }
        card.poll(random(PARTS as u32) as usize);
        if random(3) == 0 {
            (0..PARTS).for_each(|part| card.poll(part));
        }
        card.move_device(random(VFS.into()) as u8, random(PARTS as u32) as usize);
        moves += 1;
        let last = moves == 10_000;
        (0..if last { 2 * PARTS } else { PARTS }).for_each(|part| card.poll(part % PARTS));
        for vf in 0..VFS {
            for (_, bytes, _) in card.machine.received(vf) {
                let source = bytes[11];
                let number = u32::from_be_bytes(bytes[42..46].try_into().unwrap());
                assert_eq!(number, received.next(source, vf), "from VF {source} to VF {vf}");
                let part = card.home(vf);
                assert!(card.on(part, |machine| machine.post_one(vf, 0, &[1_536])));
            }
        }
    }
    assert_eq!(received, sent);
    let crossed: u64 =
        (0..PARTS).map(|part| card.parts[part].1.ledger.total(PortIndex::of_field(0)).rx_packets).sum();
    assert_eq!(crossed, u64::from(sent.to(0)), "each frame is counted once, where it arrives");
}

/// Returns a datagram from VF 0 to VF 1 of arbitrary length and port: without a checksum, with a wrong one, or with the request to
/// insert it.
fn arbitrary_frame(numbers: &mut RandomNumbers) -> (NetHeader, Vec<u8>) {
    let payload = if numbers.next(2) == 0 { numbers.next(40) } else { numbers.next(1_400) };
    let mut frame = datagram(0, 1, &vec![payload as u8; payload as usize]);
    frame[35] = numbers.next(64) as u8;
    let checksum = &mut frame[40..42];
    match numbers.next(3) {
        0 => checksum.fill(0),
        1 => checksum.fill(0x5a),
        _ => {
            let sum = pseudo(&frame[14..34], 17, 8 + payload).checksum();
            frame[40..42].copy_from_slice(&(!sum).to_be_bytes());
            let header = NetHeader {
                flags: flag::NEEDS_CSUM,
                checksum_start: 34,
                checksum_offset: 6,
                ..NetHeader::default()
            };
            return (header, frame);
        }
    }
    (NetHeader::default(), frame)
}

#[test]
fn frames_that_cross_a_trunk_arrive_as_within_one_part() {
    let guest = GuestDriverConfig { packed: false, features: MODERN, pairs: 2, size: 64 };
    let mut numbers = RandomNumbers::new();
    for round in 0..50 {
        let frames: Vec<_> = (0..60).map(|_| arbitrary_frame(&mut numbers)).collect();
        // In some rounds not every frame finds a buffer.
        let buffers = 20 + numbers.next(40);
        let outcomes = [false, true].map(|divided| {
            let mut card = DividedCard::of(TestMachine::with(&[guest; VFS as usize]));
            for queue in [0, 2] {
                (0..buffers).for_each(|_| assert!(card.machine.post_one(1, queue, &[1_700])));
            }
            if divided {
                card.move_device(1, 1);
            }
            for (at, (header, frame)) in frames.iter().enumerate() {
                card.send(0, *header, frame);
                if at % 13 == 0 {
                    card.poll(0);
                }
            }
            (0..2 * PARTS).for_each(|part| card.poll(part % PARTS));
            let part = card.home(1);
            let got = [0, 2].map(|queue| card.machine.received_by(1, queue));
            let counted = card.parts[part].1.ledger.total(PortIndex::of_field(1));
            (got, counted.rx_packets, counted.rx_bytes, counted.rx_no_descriptors)
        });
        assert!(!outcomes[0].0.concat().is_empty());
        assert_eq!(outcomes[0], outcomes[1], "round {round}, {buffers} buffers");
    }
}

#[test]
fn broadcast_reaches_vfs_in_other_parts() {
    let mut card = DividedCard::new(MODERN);
    (1..VFS).for_each(|vf| assert!(card.machine.post_one(vf, 0, &[1_536])));
    card.move_device(2, 1);
    card.move_device(3, 2);
    let mut frame = datagram(0, 1, &[7; 60]);
    frame[..6].fill(0xff);
    card.send(0, NetHeader::default(), &frame);
    (0..PARTS).for_each(|part| card.poll(part));
    for vf in 1..VFS {
        let received = card.machine.received(vf);
        assert_eq!(received.len(), 1, "VF {vf}");
        assert_eq!(received[0].1, frame, "VF {vf}");
    }
}

#[test]
fn unsegmented_packet_crosses_a_trunk_whole() {
    let features = MODERN.with(VirtioFeatures::GUEST_TSO4);
    let mut card = DividedCard::new(features);
    for _ in 0..40 {
        assert!(card.machine.post_one(1, 0, &[1_536]));
    }
    card.move_device(1, 1);
    let packet = large_packet(0, 1, &[7; 20_000]);
    card.send(0, TSO, &packet);
    (0..PARTS).for_each(|part| card.poll(part));
    let received = card.machine.received(1);
    assert_eq!(received.len(), 1);
    assert_eq!((&received[0].1, received[0].0.gso_size), (&packet, 1_448));
    assert_eq!(card.parts[0].0.counters(0).unwrap().uncut_to_guests, 1);
    assert_eq!(card.parts[1].0.counters(1).unwrap().passed_uncut, 1);
    let port = PortIndex::of_field(1);
    assert_eq!(
        card.parts[1].1.ledger.total(port).rx_packets,
        20_000_u64.div_ceil(1_448),
        "segments are counted"
    );
}

#[test]
fn receiver_counts_frames_that_a_full_trunk_drops() {
    let mut card = DividedCard::new(MODERN);
    card.move_device(1, 1);
    for number in 0..ROOM as u8 + 2 {
        card.send(0, NetHeader::default(), &datagram(0, 1, &[number]));
        card.on(0, |machine| machine.poll_once(0, 8));
    }
    assert_eq!(card.parts[0].1.ledger.total(PortIndex::of_field(1)).rx_no_descriptors, 2);
}

#[test]
fn trunk_emptied_after_each_vf_has_room_for_its_neighbours() {
    let mut card = DividedCard::new(MODERN);
    card.move_device(2, 1);
    (0..ROOM).for_each(|_| card.send(0, NetHeader::default(), &datagram(0, 2, b"flood")));
    card.send(1, NetHeader::default(), &datagram(1, 2, b"one"));
    let (trunks, mut crossed) = (card.trunks.clone(), Vec::new());
    card.on(0, |TestMachine { nic, plane, bus, wire, .. }| {
        plane.shares.begin_round();
        nic.visit_ready_vfs(plane, 2 * ROOM, bus, wire, |_, _| {
            crossed.push(frames_in(&std::mem::take(&mut trunks.lock().unwrap().batches[1][0])));
        })
    });
    assert_eq!(crossed, [ROOM, 1, 0, 0]);
    assert_eq!(card.parts[0].1.ledger.total(PortIndex::of_field(2)).rx_no_descriptors, 0);
}

/// Step of a move before which a driver makes a packet available and kicks its ring.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum KickedBefore {
    LastVisit,
    Detach,
    Attach,
    FirstVisit,
    SecondVisit,
}

#[test]
fn kick_at_any_step_of_a_move_gets_its_packet_sent() {
    use KickedBefore::{Attach, Detach, FirstVisit, LastVisit, SecondVisit};
    for step in [LastVisit, Detach, Attach, FirstVisit, SecondVisit] {
        let mut card = DividedCard::new(MODERN | VirtioFeatures::EVENT_IDX);
        assert!(card.machine.post_one(1, 0, &[1_536]));
        // The driver's kick reaches a part only if the part has the device. Otherwise it is lost.
        let kick = |card: &mut DividedCard, now: KickedBefore, part: usize| {
            if now == step {
                card.on(part, |machine| {
                    assert!(machine.send(0, NetHeader::default(), &datagram(0, 1, b"x"), &[]));
                });
            }
        };
        kick(&mut card, LastVisit, 0);
        card.poll(0);
        kick(&mut card, Detach, 0);
        let device = card.parts[0].0.detach(0).unwrap();
        kick(&mut card, Attach, 2);
        card.parts[1].0.attach(device);
        card.trunks.lock().unwrap().homes[0] = 1;
        kick(&mut card, FirstVisit, 2);
        card.poll(1);
        kick(&mut card, SecondVisit, 1);
        (0..PARTS).for_each(|part| card.poll(part));
        card.poll(0);
        assert_eq!(card.machine.received(1).len(), 1, "kicked before {step:?}");
    }
}
