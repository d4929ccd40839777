//! Tests of the watch, with a clock that the test's accesses move.

use super::*;
use crate::clock::TimeSource;
use crate::config::HostConfig;
use crate::config::file::CardFamily;
use crate::confine::ThreadSandboxes;
use crate::port::engine::bus::GuestBus;
use host::dma::DmaPermissions;
use host::eventfd::EventFd;
use pcie::burst::{FrameCopyBatch, HEAD};
use pcie::{Bus, HintedMemory, MemoryHint};
use rustix::fs::{MemfdFlags, ftruncate, memfd_create};
use std::path::Path;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use vfio_user::wire::pci_irq;

const SIZE: u64 = 1 << 20;
const SENDER: Function = Function::Vf(0);
const RECEIVER: Function = Function::Vf(1);

/// Clock on which each access takes the next of these times, in turn: an access reads the clock at its begin and at its end.
#[derive(Debug, Default)]
struct AccessClock {
    now_ns: AtomicU64,
    readings: AtomicUsize,
    times: Mutex<Vec<Duration>>,
}

impl AccessClock {
    fn set(&self, times: &[Duration]) {
        self.readings.store(0, Ordering::Relaxed);
        *self.times.lock().unwrap() = times.to_vec();
    }
}

impl TimeSource for AccessClock {
    fn now(&self) -> Time {
        let times = self.times.lock().unwrap();
        let reading = self.readings.fetch_add(1, Ordering::Relaxed);
        if reading % 2 == 1 && !times.is_empty() {
            self.now_ns.fetch_add(times[reading / 2 % times.len()].as_nanos() as u64, Ordering::Relaxed);
        }
        Time::from_nanos(self.now_ns.load(Ordering::Relaxed))
    }
}

/// Accounts that record what each port is charged: counted cost, and measured cost with the number of accesses.
#[derive(Debug, Default, PartialEq, Eq)]
struct RecordedShares {
    counted: Vec<(u8, u32)>,
    measured: Vec<(u8, u32, u32)>,
    /// Counted cost of the round.
    round: u32,
    has_surcharge: bool,
}

impl MeasuredShares for RecordedShares {
    fn charge_measured(&mut self, port: PortIndex, cost: WorkCost, accesses: u32, _: Time) {
        self.measured.push((port.get(), cost.0, accesses));
    }

    fn charge_counted(&mut self, port: PortIndex, cost: WorkCost) {
        self.counted.push((port.get(), cost.0));
    }

    fn take_counted(&mut self) -> WorkCost {
        WorkCost(std::mem::take(&mut self.round))
    }

    fn age_surcharges(&mut self, _: Time) -> bool {
        self.has_surcharge
    }

    fn forget_debts(&mut self) {}
}

/// Bus of two VFs with memory, and the clock of their accesses.
struct WatchedBus {
    bus: GuestBus,
    clock: Arc<AccessClock>,
    shares: RecordedShares,
}

impl WatchedBus {
    fn new() -> Self {
        let file = HostConfig::parse("").unwrap();
        let threads = ThreadSandboxes::prepare(&HostConfig::check(file, Path::new("/run")).unwrap()).unwrap();
        let mut bus = GuestBus::new(("pf0", &[CardFamily::Virtio; 2]), SIZE, &threads.helper).unwrap();
        let clock = Arc::new(AccessClock::default());
        bus.set_clock(clock.clone());
        for function in [SENDER, RECEIVER] {
            let file = memfd_create("guest", MemfdFlags::CLOEXEC).unwrap();
            ftruncate(&file, SIZE).unwrap();
            let memory = bus.reach_mut(function).memory_mut();
            let region = memory.admit(0, SIZE, DmaPermissions::READ_WRITE, Some(0)).unwrap().unwrap();
            memory.insert(region.map(file).unwrap()).unwrap();
        }
        Self { bus, clock, shares: RecordedShares::default() }
    }

    /// Ends a round that took this time, and begins the next one.
    fn round(&mut self, took: Duration) {
        self.bus.watch.settle(&mut self.shares, Time::ZERO);
        self.bus.watch.end_round(took, &mut self.shares, Time::ZERO);
        self.bus.watch.begin_round();
        self.clock.set(&[]);
    }

    /// Copies 8 frames of 60 bytes from the sender to the receiver.
    fn carry(&mut self) {
        let (mut heads, mut sums) = ([[0x5a; HEAD]; 8], [0; 8]);
        let places: [u64; 8] = std::array::from_fn(|n| n as u64 * 4096);
        let run = FrameCopyBatch {
            heads: &mut heads,
            sources: &places,
            lengths: &[60; 8],
            targets: &places,
            sums: &mut sums,
        };
        let [mut from, mut to] = [MemoryHint::default(), MemoryHint::default()];
        let from = HintedMemory { function: SENDER, hint: &mut from };
        let to = HintedMemory { function: RECEIVER, hint: &mut to };
        assert_eq!(self.bus.carry(from, to, run, None), 8);
    }

    fn readings(&self) -> usize {
        self.clock.readings.load(Ordering::Relaxed)
    }
}

const fn micros(us: u64) -> Duration {
    Duration::from_micros(us)
}

#[test]
fn clock_is_read_for_no_access_before_a_slow_round() {
    let mut world = WatchedBus::new();
    let begun = world.readings();
    for _ in 0..100 {
        world.carry();
        world.bus.dma_read(SENDER, 0, &mut [0; 64]).unwrap();
        world.bus.watch.settle(&mut world.shares, Time::ZERO);
        world.bus.watch.end_round(micros(99), &mut world.shares, Time::ZERO);
    }
    assert_eq!((world.readings(), world.shares), (begun, RecordedShares::default()));
}

#[test]
fn round_as_long_as_its_counted_cost_is_not_slow() {
    let mut world = WatchedBus::new();
    world.shares.round = 10_000;
    world.round(micros(4_000));
    world.bus.dma_read(SENDER, 0, &mut [0; 64]).unwrap();
    assert_eq!(world.readings(), 0);
    world.round(micros(4_000));
    world.bus.dma_read(SENDER, 0, &mut [0; 64]).unwrap();
    assert_eq!(world.readings(), 2);
}

#[test]
fn function_pays_for_the_time_of_its_own_memory() {
    let mut world = WatchedBus::new();
    world.round(micros(500));
    world.clock.set(&[micros(180)]);
    world.bus.dma_write(RECEIVER, 0, &[0; 60]).unwrap();
    world.clock.set(&[]);
    world.bus.dma_write(SENDER, 0, &[0; 60]).unwrap();
    world.round(micros(200));
    // 180 us less 0.53 us, in units of 0.1 us.
    assert_eq!(world.shares.measured, [(1, 1_794, 1)]);
}

#[test]
fn function_with_slow_memory_pays_for_copies_to_it() {
    let mut world = WatchedBus::new();
    world.round(micros(500));
    // The first slow copy shows only that one of the two is slow.
    world.clock.set(&[micros(100)]);
    world.carry();
    world.round(micros(500));
    assert_eq!(world.shares.measured, []);
    // Frames of 60 bytes have been read with their heads, so each is one write.
    world.clock.set(&[micros(10)]);
    world.carry();
    world.round(micros(500));
    assert_eq!(world.shares.measured, [(1, 757, 8)]);
}

#[test]
fn interrupts_cost_units_and_their_time_beyond_4_us() {
    let mut world = WatchedBus::new();
    world.bus.reach_mut(RECEIVER).set_eventfd(pci_irq::MSIX, 0, Some(EventFd::new().unwrap()));
    (0..3).for_each(|_| world.bus.msix(RECEIVER, 0));
    world.bus.msix(SENDER, 0);
    world.round(micros(3_000));
    let WorkCost(each) = WorkCost::INTERRUPT;
    assert_eq!((&world.shares.counted[..], &world.shares.measured[..]), (&[(1, 3 * each)][..], &[][..]));
    world.clock.set(&[micros(1_000)]);
    world.bus.msix(RECEIVER, 0);
    world.round(micros(1_000));
    assert_eq!(world.shares.measured, [(1, 9_960, 1)]);
}

#[test]
fn rounds_stay_watched_while_a_port_has_a_surcharge() {
    let mut world = WatchedBus::new();
    world.shares.has_surcharge = true;
    for (surcharge, readings) in [(true, 2), (true, 2), (false, 0)] {
        world.shares.has_surcharge = surcharge;
        world.round(micros(1));
        world.bus.dma_read(SENDER, 0, &mut [0; 64]).unwrap();
        assert_eq!(world.readings(), readings);
    }
}

#[test]
fn rounds_that_accesses_do_not_slow_become_usual() {
    let mut world = WatchedBus::new();
    let mut watched = 0;
    for _ in 0..1_000 {
        world.round(micros(300));
        world.bus.dma_read(SENDER, 0, &mut [0; 64]).unwrap();
        watched += usize::from(world.readings() > 0);
    }
    assert!((1..10).contains(&watched), "{watched} of 1,000 rounds");
    assert_eq!(world.shares.measured, []);
    // No round with more than a millisecond becomes usual.
    for _ in 0..10 {
        world.round(micros(3_000));
    }
    world.bus.dma_read(SENDER, 0, &mut [0; 64]).unwrap();
    assert!(world.readings() > 0);
}
