//! Tests a card in parts, each with some of the VFs and a plane of its own. Frames between parts cross in trunks. All VFs map
//! their doorbells, so that their drivers store doorbells at any step of a move.

use crate::trunks::{NumberedFrames, PARTS, RandomNumbers, TrunkEnd, Trunks, VFS};
use crate::world::{CardFixture, mac};
use avf::bits::dyn_ctl;
use avf::control::{CardCommand, CardControl};
use avf::register as r;
use avf_nic::Nic;
use driver::Hal;
use driver::avf::vf::AvfDriver;
use pcie::Function;
use plane::pacing::TransmitPacing;
use plane::switch::{StormState, SwitchTables};
use plane::{ForwardingPlane, PortCounters, PortIndex, PortSet};
use std::sync::{Arc, Mutex};

/// Value of VFINT_DYN_CTLN that enables a vector, without a change of intervals.
const ON: u32 = dyn_ctl::INTENA | 3 << dyn_ctl::ITR_SHIFT;

/// A card in parts. The part in use is in the fixture; the others are beside it.
struct DividedCard {
    world: CardFixture,
    drivers: Vec<AvfDriver>,
    parts: Vec<(Nic, Option<Box<ForwardingPlane<64>>>)>,
    trunks: Arc<Mutex<Trunks>>,
}

/// Returns a frame from one VF to another.
fn frame(from: u8, to: [u8; 6], payload: &[u8]) -> Vec<u8> {
    let mut frame = [&to[..], &mac(from).0, &[0x88, 0xb5], payload].concat();
    frame.resize(60, 0);
    frame
}

impl DividedCard {
    /// Divides a card whose VFs are all in the first part, with an active driver of each.
    fn new() -> Self {
        let mut world = CardFixture::new(VFS).across_a_plane();
        (0..VFS).for_each(|vf| world.map(vf));
        let drivers = (0..VFS).map(|vf| world.start(vf)).collect();
        world.round();
        let trunks = Arc::new(Mutex::new(Trunks::default()));
        let mut parts = Vec::new();
        for part in 0..PARTS {
            let mut nic = Nic::new(VFS);
            nic.leave_to_others(PortSet::new(u64::MAX));
            let counters = [PortCounters::default(); 64];
            let (tables, pacing) = (SwitchTables::closed(0), TransmitPacing::new(None));
            let mut plane = ForwardingPlane::new(tables, pacing, StormState::default(), counters);
            plane.set_tables(world.plane.as_ref().unwrap().tables().clone());
            if part == 0 {
                std::mem::swap(&mut nic, &mut world.card);
            }
            nic.set_trunk(Some(Box::new(TrunkEnd::new(part, &trunks))));
            parts.push((nic, Some(Box::new(plane))));
        }
        Self { world, drivers, parts, trunks }
    }

    fn home(&self, vf: u8) -> usize {
        self.trunks.lock().unwrap().homes[usize::from(vf)]
    }

    /// Calls `act` with a part in the fixture.
    fn on<R>(&mut self, part: usize, act: impl FnOnce(&mut CardFixture) -> R) -> R {
        let Self { world, parts, .. } = self;
        let (nic, plane) = &mut parts[part];
        std::mem::swap(&mut world.card, nic);
        std::mem::swap(&mut world.plane, plane);
        let result = act(world);
        std::mem::swap(&mut world.card, nic);
        std::mem::swap(&mut world.plane, plane);
        result
    }

    /// Has the driver of a VF send a frame. Its doorbell is a store into the VF's pages, wherever the VF is.
    fn send(&mut self, vf: u8, queue: u8, frame: &[u8]) {
        let Self { world, drivers, .. } = self;
        let driver = &mut drivers[usize::from(vf)];
        driver.clean(&mut world.vf(vf));
        assert!(driver.transmit(&mut world.vf(vf), queue, frame));
    }

    /// Returns the next frame that the driver of a VF has received.
    fn receive(&mut self, vf: u8) -> Option<Vec<u8>> {
        let Self { world, drivers, .. } = self;
        let mut into = [0; 2048];
        let got = drivers[usize::from(vf)].receive(&mut world.vf(vf), 0, &mut into)?;
        Some(into[..got.length].to_vec())
    }

    /// Has a part read the doorbells of its VFs, and deliver all frames in the trunks to it.
    fn empty_trunks(&mut self, part: usize) {
        let (incoming, homes) = {
            let mut trunks = self.trunks.lock().unwrap();
            (std::mem::take(&mut trunks.batches[part]), trunks.homes)
        };
        self.on(part, |world| {
            let CardFixture { card, plane, memories, mapped, .. } = world;
            for (_, mapped) in mapped.iter_mut().filter(|(vf, _)| homes[usize::from(**vf)] == part) {
                card.read_doorbells(&mut mapped.doorbells, &mapped.pages);
            }
            for mut batch in incoming.into_iter().flatten() {
                card.leave_trunk(plane.as_mut().unwrap(), &mut batch, memories);
            }
            card.give_back(memories);
        });
    }

    /// Runs one round of a part.
    fn poll(&mut self, part: usize) {
        self.empty_trunks(part);
        let homes = self.trunks.lock().unwrap().homes;
        self.on(part, |world| {
            let CardFixture { card, plane, memories, mapped, cable, now, .. } = world;
            card.visit_ready(plane.as_mut().unwrap(), 8, memories, cable);
            card.send_interrupts(*now, memories);
            for (_, mapped) in mapped.iter_mut().filter(|(vf, _)| homes[usize::from(**vf)] == part) {
                card.publish_registers(&mut mapped.doorbells, &mapped.pages);
            }
        });
    }

    /// Moves a VF to another part, after the frames in all trunks have left.
    fn move_device(&mut self, vf: u8, to: usize) {
        let from = self.home(vf);
        (0..PARTS).for_each(|part| self.empty_trunks(part));
        assert!(self.parts[from].0.may_detach(vf));
        let device = self.parts[from].0.detach(vf).unwrap();
        self.parts[to].0.attach(device);
        self.trunks.lock().unwrap().homes[usize::from(vf)] = to;
    }

    /// Returns the vectors of a VF's interrupts since the last call.
    fn interrupts(&mut self, vf: u8) -> Vec<u16> {
        let sent = std::mem::take(&mut self.world.memories.interrupts);
        let own = sent.into_iter().filter(|(function, _)| *function == Function::Vf(vf));
        own.map(|(_, vector)| vector).collect()
    }
}

#[test]
fn no_frame_is_lost_or_overtaken_in_10_000_moves_of_vfs() {
    let mut card = DividedCard::new();
    let (mut sent, mut received) = (NumberedFrames::default(), NumberedFrames::default());
    let mut numbers = RandomNumbers::new();
    let mut random = |below: u32| numbers.next(below);
    let mut moves = 0;
    while moves < 10_000 {
        let from = random(VFS.into()) as u8;
        let to = (from + 1 + random(u32::from(VFS) - 1) as u8) % VFS;
        for _ in 0..1 + random(4) {
            let number = sent.next(from, to);
            // The frames of a flow are in one queue.
            card.send(from, to, &frame(from, mac(to).0, &number.to_be_bytes()));
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
            while let Some(bytes) = card.receive(vf) {
                let source = bytes[11];
                let number = u32::from_be_bytes(bytes[14..18].try_into().unwrap());
                assert_eq!(number, received.next(source, vf), "from VF {source} to VF {vf}");
            }
        }
    }
    assert_eq!(received, sent);
    let crossed: u64 = (0..PARTS)
        .map(|part| card.parts[part].1.as_ref().unwrap().ledger.total(PortIndex::of_field(0)).rx_packets)
        .sum();
    assert_eq!(crossed, u64::from(sent.to(0)), "each frame is counted once, where it arrives");
    let home = card.home(0);
    assert_eq!(card.parts[home].0.statistics(0).rx_unicast, crossed, "a VF keeps its statistics");
}

#[test]
fn broadcast_reaches_vfs_in_other_parts() {
    let mut card = DividedCard::new();
    card.move_device(2, 1);
    card.move_device(3, 2);
    let sent = frame(0, [0xff; 6], b"to all");
    card.send(0, 0, &sent);
    (0..PARTS).for_each(|part| card.poll(part));
    for vf in 1..VFS {
        assert_eq!(card.receive(vf), Some(sent.clone()), "VF {vf}");
        assert_eq!(card.receive(vf), None, "VF {vf}");
    }
}

#[test]
fn receiver_counts_frames_that_a_full_trunk_drops() {
    let mut card = DividedCard::new();
    card.move_device(1, 1);
    for number in 0..crate::trunks::ROOM as u8 + 2 {
        card.send(0, 0, &frame(0, mac(1).0, &[number]));
        card.poll(0);
    }
    let plane = card.parts[0].1.as_ref().unwrap();
    assert_eq!(plane.ledger.total(PortIndex::of_field(1)).rx_no_descriptors, 2);
}

#[test]
fn part_that_has_a_vf_sends_its_interrupts() {
    let mut card = DividedCard::new();
    card.move_device(1, 1);
    card.interrupts(1);
    card.send(0, 0, &frame(0, mac(1).0, b"x"));
    card.poll(0);
    card.poll(1);
    assert_eq!(card.interrupts(1), [1], "the driver has enabled its vectors");
    // The vector is disabled now, so this cause is kept in the VF while the VF moves.
    card.send(0, 0, &frame(0, mac(1).0, b"y"));
    (0..PARTS).for_each(|part| card.poll(part));
    card.move_device(1, 2);
    assert_eq!(card.interrupts(1), []);
    card.world.vf(1).write(r::dyn_ctl(1), ON);
    (0..2).for_each(|part| card.poll(part));
    assert_eq!(card.interrupts(1), [], "the part that has lost the VF");
    card.poll(2);
    assert_eq!(card.interrupts(1), [1]);
}

#[test]
fn doorbell_at_any_step_of_a_move_gets_its_frame_sent() {
    for step in 0..4 {
        let mut card = DividedCard::new();
        let ring = |card: &mut DividedCard, now: u8| {
            if now == step {
                card.send(0, 0, &frame(0, mac(1).0, b"x"));
            }
        };
        card.poll(0);
        ring(&mut card, 0);
        (0..PARTS).for_each(|part| card.empty_trunks(part));
        ring(&mut card, 1);
        let device = card.parts[0].0.detach(0).unwrap();
        ring(&mut card, 2);
        card.parts[1].0.attach(device);
        card.trunks.lock().unwrap().homes[0] = 1;
        card.poll(1);
        ring(&mut card, 3);
        (0..PARTS).for_each(|part| card.poll(part));
        card.poll(0);
        assert!(card.receive(1).is_some(), "rung at step {step}");
    }
}

#[test]
fn vf_without_a_running_ring_stays_in_the_whole_card() {
    let mut world = CardFixture::new(2).across_a_plane();
    assert!(!world.card.may_detach(0), "no driver");
    let mut driver = world.start(0);
    world.round();
    assert!(world.card.may_detach(0));
    world.card.set_bus_master(0, false);
    assert!(!world.card.may_detach(0), "the bus is off");
    world.card.set_bus_master(0, true);
    driver.stop(&mut world.vf(0)).unwrap();
    world.round();
    assert!(!world.card.may_detach(0), "the driver has stopped");
    world.card.order(0, CardCommand::Run { rx: 1, tx: 0 });
    assert!(world.card.may_detach(0));
    let tail = world.card.read(0, r::VF_ATQT);
    world.card.write(0, r::VF_ATQT, tail + 1);
    assert!(!world.card.may_detach(0), "the PF has a message to take");
    world.card.write(0, r::VF_ATQT, tail);
    assert!(world.card.may_detach(0));
    world.card.function_level_reset(0);
    assert!(!world.card.may_detach(0), "the VF is in reset");
}
