//! Tests of the port's own thread: with parts of the card that no worker runs, and with workers that end their rounds or fail. Tests
//! of a part whose VFs send to another.

use super::*;
use crate::config::HostConfig;
use crate::config::file::CardFamily;
use crate::confine::ThreadSandboxes;
use crate::port::engine::bus::GuestBus;
use host::dma::DmaPermissions;
use pcie::{Bus, Function};
use plane::{FrameTrunk, TrunkBatch, TrunkFrameHeader};
use rustix::fs::{MemfdFlags, ftruncate, memfd_create};
use std::fs;
use std::sync::mpsc;
use std::time::Instant;
use virtio_nic::Nic;

#[test]
fn lost_shard_is_unmapped_on_the_thread_of_its_function() {
    const SIZE: u64 = 1 << 20;
    let folder = tempfile::tempdir().unwrap();
    let file = HostConfig::parse("[[port]]\nfamily = \"virtio\"\nvfs = 1\n").unwrap();
    let threads = ThreadSandboxes::prepare(&HostConfig::check(file, folder.path()).unwrap()).unwrap();
    let mut bus = GuestBus::new(("pf0", &[CardFamily::Virtio]), SIZE, &threads.helper).unwrap();
    let name = "softiov_lost_shard";
    let is_mapped = || fs::read_to_string("/proc/self/maps").unwrap().contains(name);
    let file = memfd_create(name, MemfdFlags::CLOEXEC).unwrap();
    ftruncate(&file, SIZE).unwrap();
    let reach = bus.reach_mut(Function::Vf(0));
    let region = reach.memory_mut().admit(0, SIZE, DmaPermissions::READ_WRITE, Some(0)).unwrap().unwrap();
    reach.memory_mut().insert(region.map(file).unwrap()).unwrap();
    let (free, held) = mpsc::channel::<()>();
    reach.worker().run(move || assert!(held.recv().is_err()));

    let (trunks, _) = trunk::connect(3).unwrap();
    let mut shards = trunks.into_iter().filter_map(CardShard::<virtio_nic::Nic>::new);
    let (mut lost, mut own) = (shards.next().unwrap(), shards.next().unwrap());
    part(&mut lost, 0, &mut DividedCard { card: &mut own.card, plane: &mut own.plane, bus: &mut bus });
    drop((lost, bus));
    assert!(is_mapped(), "the memory was unmapped on the port's thread");
    drop(free);
    let began = Instant::now();
    while is_mapped() {
        assert!(began.elapsed() < Duration::from_secs(60), "the memory stays mapped");
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn worker() -> OtherWorker<Nic> {
    let (exchange, poller) = (Arc::new(ShardExchange::new()), Arc::new(Poller::new().unwrap()));
    OtherWorker { exchange, shard: None, poller, thread: None }
}

#[test]
fn workers_end_their_rounds_at_the_same_time() {
    let mut workers = [worker(), worker()];
    let [first, second] = [0, 1].map(|worker: usize| workers[worker].exchange.clone());
    let (begin, begun) = mpsc::channel();
    let round = std::thread::spawn(move || {
        let _round = first.state.lock().unwrap();
        begin.send(()).unwrap();
        let began = Instant::now();
        while !second.wanted.load(Ordering::Relaxed) && began.elapsed() < Duration::from_secs(10) {
            std::thread::yield_now();
        }
        second.wanted.load(Ordering::Relaxed)
    });
    begun.recv().unwrap();
    take_shards(&mut workers).unwrap();
    assert!(round.join().unwrap(), "the second worker was asked only after the first one's round");
    assert!(workers.iter().all(|worker| !worker.exchange.wanted.load(Ordering::Relaxed)));
}

#[test]
fn failure_of_a_worker_leaves_no_other_worker_waiting() {
    let mut workers = [worker(), worker()];
    workers[0].exchange.fail();
    take_shards(&mut workers).unwrap_err();
    assert!(!workers[1].exchange.wanted.load(Ordering::Relaxed));
}

/// Part of a card whose first VF floods the last worker in each round, and whose second VF sends a frame to it.
#[derive(Debug, Default)]
struct FloodingPart {
    trunk: Option<Box<dyn FrameTrunk>>,
    /// Frames of the second VF that had room in the trunk.
    sent: usize,
}

impl FloodingPart {
    fn send(&mut self) -> bool {
        let header = TrunkFrameHeader::to_uplink(None);
        let trunk = self.trunk.as_mut().unwrap();
        trunk.batch(header.port, 1_514).is_some_and(|batch| batch.put(&header, &[0; 1_514]))
    }
}

impl DivisibleCard for FloodingPart {
    type Device = ();

    fn new_part() -> Self {
        Self::default()
    }

    fn set_trunk(&mut self, trunk: Box<dyn FrameTrunk>) {
        self.trunk = Some(trunk);
    }

    fn may_detach(&self, _: u8) -> bool {
        false
    }

    fn detach(&mut self, _: u8) -> Option<()> {
        None
    }

    fn attach(&mut self, (): ()) {}

    fn follow(&mut self, _: &Self) {}

    fn leave_trunk<B: Bus>(&mut self, _: &mut CardPlane, _: &mut TrunkBatch, _: &mut B) {}

    fn flush_trunk(&mut self) -> bool {
        self.trunk.as_mut().unwrap().flush()
    }

    fn give_back<B: Bus>(&mut self, _: &mut CardPlane, _: &mut B) {}

    fn move_frames<B: Bus, W: UplinkWire>(
        &mut self,
        _: &mut CardPlane,
        _: &mut B,
        _: &mut W,
        mut after_vf: impl FnMut(),
    ) -> ShardRoundOutcome {
        (0..160).for_each(|_| _ = self.send());
        self.flush_trunk();
        after_vf();
        self.sent += usize::from(self.send());
        let more = self.flush_trunk();
        after_vf();
        ShardRoundOutcome { more, deadline: None }
    }

    fn look<B: Bus>(&mut self, _: &mut B) -> bool {
        false
    }
}

#[test]
fn part_with_a_flooding_vf_sends_each_frame_of_another() {
    const ROUNDS: usize = 200;
    let (trunks, _) = trunk::connect(3).unwrap();
    trunks[0].shared().homes.iter().for_each(|home| home.store(2, Ordering::Relaxed));
    let mut shards = trunks.into_iter().filter_map(CardShard::<FloodingPart>::new);
    let (mut from, mut to) = (shards.next().unwrap(), shards.next().unwrap());
    for _ in 0..ROUNDS {
        from.round(Time::ZERO);
        to.receiver.take(|_| ());
    }
    assert_eq!(from.card.sent, ROUNDS);
}
