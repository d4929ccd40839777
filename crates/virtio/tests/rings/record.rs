//! Tests the record of a packed ring: a device that dies at any of its accesses, and a successor that continues the ring.
//! The driver runs on meanwhile, at any point between two accesses.

use crate::driver::TestDriver;
use crate::memory::{DEVICE, GuestMemory, SIZE};
use crate::queue::ADDRESSES;
use virtio::RingMemory;
use virtio::chain::{ChainBurst, UsedChain};
use virtio::layout::{RingAddresses, RingFeatures};
use virtio::memory::MemoryFault;
use virtio::packed::record::{self, FirstPosition, RingOwner, WORDS};
use virtio::packed::{PackedLayout, PackedPosition, PackedQueue};

const OWNER: RingOwner = RingOwner { memory: 7, features: 0x4_0000_0000 };
const START: FirstPosition = FirstPosition::Given(PackedPosition::START);
const NEVER: usize = usize::MAX;
/// Word of a record that holds the state.
const STATE: usize = 0;
/// End of the memory that holds the ring.
const END: usize = DEVICE as usize + 4;
/// Base address of the buffers. The token of a chain follows from its first buffer's address.
const BUFFERS: u64 = 0x10_0000;
const BUFFER: u32 = 0x1000;

/// Driver that follows the standard, and checks what it gets back: every chain once, in order, with the right length.
struct CheckedDriver {
    driver: TestDriver,
    shapes: &'static [usize],
    writable: bool,
    /// Token of the next chain to add, and of the next chain to get back.
    next: u32,
    back: u32,
}

impl CheckedDriver {
    fn new(size: u16, in_order: bool, (shapes, writable): (&'static [usize], bool)) -> Self {
        Self { driver: TestDriver::new(true, size, in_order), shapes, writable, next: 0, back: 0 }
    }

    fn collect(&mut self, memory: &mut GuestMemory) {
        for (chain, written) in self.driver.collect(memory) {
            assert_eq!(chain.token, self.back);
            assert_eq!(written, if self.writable { written_to(chain.token) } else { 0 });
            self.back += 1;
        }
    }

    /// Fills the ring with chains.
    fn fill(&mut self, memory: &mut GuestMemory) {
        loop {
            let shape = self.shapes[self.next as usize % self.shapes.len()];
            let address = BUFFERS + u64::from(self.next) * u64::from(BUFFER);
            if !self.driver.add(memory, self.next, &vec![(address, BUFFER, self.writable); shape], false) {
                break;
            }
            self.next += 1;
        }
        self.driver.publish(memory);
    }
}

/// Returns the number of bytes that the device writes into the chain with a token.
fn written_to(token: u32) -> u32 {
    100 + token % 64
}

/// Guest memory and record of a device that dies at one of its accesses. The driver acts once before another access.
struct MortalMemory<'a> {
    memory: GuestMemory,
    record: [u64; WORDS],
    driver: &'a mut CheckedDriver,
    /// Number of accesses before the device dies, and before the driver acts.
    dies: usize,
    acts: usize,
    /// Number of accesses so far. A store of several words counts as several accesses.
    accesses: usize,
}

impl MortalMemory<'_> {
    /// Counts an access. Returns false if the device is dead.
    fn access(&mut self) -> bool {
        if self.accesses == self.acts && self.accesses < self.dies {
            self.driver.collect(&mut self.memory);
            self.driver.fill(&mut self.memory);
        }
        self.accesses += 1;
        self.accesses <= self.dies
    }

    fn is_dead(&self) -> bool {
        self.accesses > self.dies
    }
}

impl RingMemory for MortalMemory<'_> {
    fn read(&mut self, address: u64, into: &mut [u8]) -> Result<(), MemoryFault> {
        self.access();
        self.memory.read(address, into)
    }

    fn write(&mut self, address: u64, from: &[u8]) -> Result<(), MemoryFault> {
        // The host stores whole words of eight bytes in the order of their addresses.
        for (word, at) in from.chunks(8).zip((address..).step_by(8)) {
            if self.access() {
                self.memory.write(at, word)?;
            }
        }
        Ok(())
    }

    fn record(&mut self, first: usize, words: &[u64]) {
        for (word, at) in words.iter().zip(first..) {
            if self.access() {
                self.record[at] = *word;
            }
        }
    }

    fn recorded(&mut self, first: usize, into: &mut [u64]) {
        into.copy_from_slice(&self.record[first..first + into.len()]);
    }
}

/// Ring, its features, the chains of its driver, and the numbers of chains that its device returns at once, in turn.
#[derive(Debug, Clone, Copy)]
struct CrashScenario {
    size: u16,
    features: RingFeatures,
    chains: (&'static [usize], bool),
    batches: &'static [usize],
}

/// Accesses at which devices die, one after the other, and the access of the first device at which the driver acts.
#[derive(Debug, Clone, Copy)]
struct CrashMoments {
    dies: [usize; 2],
    acts: usize,
    /// True if the driver acts before the successor starts, too.
    between: bool,
}

fn open(
    scenario: &CrashScenario,
    memory: &mut impl RingMemory,
    (first, owner): (FirstPosition, RingOwner),
) -> (PackedQueue, bool) {
    let layout = PackedLayout::new(scenario.size.into(), ADDRESSES).unwrap();
    PackedQueue::open(layout, scenario.features, (first, owner), memory).unwrap()
}

/// Processes available chains until none is left, or the device is dead.
fn serve(queue: &mut PackedQueue, memory: &mut MortalMemory<'_>, scenario: &CrashScenario) {
    let mut burst = ChainBurst::default();
    let mut batches = scenario.batches.iter().copied().cycle();
    queue.disable_notifications(memory).unwrap();
    while !memory.is_dead() && queue.fetch(memory, &mut burst, 32).unwrap() > 0 {
        let used: Vec<UsedChain> = burst
            .chains()
            .iter()
            .map(|chain| match burst.writable(chain) {
                [] => chain.used(0),
                [first, ..] => chain.used(written_to(((first.address - BUFFERS) / u64::from(BUFFER)) as u32)),
            })
            .collect();
        let mut rest = &used[..];
        while !rest.is_empty() && !memory.is_dead() {
            let (now, later) = rest.split_at(batches.next().unwrap_or(1).min(rest.len()));
            queue.complete(memory, now).unwrap();
            rest = later;
        }
    }
    queue.enable_notifications(memory).unwrap();
}

/// Runs a ring whose devices die at these moments. The last device lives, and returns all chains. Returns true if the
/// first device died.
fn crash(scenario: &CrashScenario, moments: CrashMoments) -> bool {
    let CrashMoments { dies, acts, between } = moments;
    let mut driver = CheckedDriver::new(scenario.size, scenario.features.in_order, scenario.chains);
    let (mut guest, mut words) = (GuestMemory::new(), [0; WORDS]);
    // Small memory makes many runs fast.
    guest.bytes.truncate(END);
    driver.fill(&mut guest);
    let mut died = false;
    for (turn, dies) in dies.into_iter().chain([NEVER]).enumerate() {
        let acts = if turn == 0 { acts } else { NEVER };
        let mut memory =
            MortalMemory { memory: guest, record: words, driver: &mut driver, dies, acts, accesses: 0 };
        let (mut queue, resumed) = open(scenario, &mut memory, (START, OWNER));
        let position = queue.base();
        for _ in 0..3 {
            serve(&mut queue, &mut memory, scenario);
            if !memory.is_dead() {
                memory.driver.collect(&mut memory.memory);
                memory.driver.fill(&mut memory.memory);
            }
        }
        if turn > 0 && !resumed {
            // The former device died before its first write to the ring.
            assert_eq!(position, PackedPosition::START);
        }
        died |= turn == 0 && memory.is_dead();
        (guest, words) = (memory.memory, memory.record);
        if between {
            driver.collect(&mut guest);
            driver.fill(&mut guest);
        }
    }
    let mut last = MortalMemory {
        memory: guest,
        record: words,
        driver: &mut driver,
        dies: NEVER,
        acts: NEVER,
        accesses: 0,
    };
    let (mut queue, _) = open(scenario, &mut last, (START, OWNER));
    serve(&mut queue, &mut last, scenario);
    last.driver.collect(&mut last.memory);
    assert_eq!(driver.back, driver.next, "a chain is lost: {scenario:?}, {moments:?}");
    died
}

/// Rings of different shapes.
fn scenarios() -> Vec<CrashScenario> {
    let features = |in_order, event_index| RingFeatures { indirect: false, event_index, in_order };
    let mut all = Vec::new();
    for (shapes, size, writable) in
        [(&[1][..], 4, true), (&[1, 2], 5, false), (&[1, 2], 5, true), (&[3, 1, 1], 7, false)]
    {
        for (in_order, event_index) in [(false, false), (false, true), (true, false)] {
            for batches in [&[32][..], &[1, 2]] {
                let (features, chains) = (features(in_order, event_index), (shapes, writable));
                all.push(CrashScenario { size, features, chains, batches });
            }
        }
    }
    all
}

#[test]
fn ring_survives_a_crash_at_any_access() {
    let mut crashes = 0;
    for scenario in scenarios() {
        for dies in 0_usize.. {
            let acts = (dies.saturating_sub(24)..dies).chain([NEVER]);
            let mut died = false;
            for acts in acts {
                for between in [false, true] {
                    died |= crash(&scenario, CrashMoments { dies: [dies, NEVER], acts, between });
                    crashes += 1;
                }
            }
            if !died {
                break;
            }
        }
    }
    assert!(crashes > 50_000, "{crashes}");
}

#[test]
fn ring_survives_a_crash_of_the_successor_at_any_access() {
    for scenario in scenarios() {
        for first in 0.. {
            let died = (0..40).fold(false, |died, second| {
                let moments = CrashMoments { dies: [first, second], acts: NEVER, between: false };
                crash(&scenario, moments) | died
            });
            if !died {
                break;
            }
        }
    }
}

/// Returns a scenario, and the memory and record of a device that has returned one round and a half.
fn half_used<'a>(driver: &'a mut CheckedDriver, scenario: &CrashScenario) -> (PackedQueue, MortalMemory<'a>) {
    let (memory, record) = (GuestMemory::new(), [0; WORDS]);
    let mut memory = MortalMemory { memory, record, driver, dies: NEVER, acts: NEVER, accesses: 0 };
    let (mut queue, resumed) = open(scenario, &mut memory, (START, OWNER));
    assert!(!resumed);
    for _ in 0..2 {
        memory.driver.fill(&mut memory.memory);
        serve(&mut queue, &mut memory, scenario);
        memory.driver.collect(&mut memory.memory);
    }
    (queue, memory)
}

const USUAL: CrashScenario = CrashScenario {
    size: 6,
    features: RingFeatures { indirect: false, event_index: false, in_order: false },
    chains: (&[4], false),
    batches: &[32],
};

#[test]
fn record_of_another_ring_is_not_used() {
    let mut driver = CheckedDriver::new(6, false, USUAL.chains);
    let (queue, mut memory) = half_used(&mut driver, &USUAL);
    let position = queue.base();
    assert_eq!((position.index(), position.wrap()), (2, false));
    let record = memory.record;
    let other = PackedPosition::from_bits(0x8001);
    let elsewhere = RingAddresses { driver: ADDRESSES.driver + 16, ..ADDRESSES };
    let layout = |size, addresses| PackedLayout::new(size, addresses).unwrap();
    for (layout, first, owner, same) in [
        (layout(6, ADDRESSES), START, OWNER, true),
        (layout(6, ADDRESSES), FirstPosition::Paused(other), OWNER, true),
        (layout(7, ADDRESSES), START, OWNER, false),
        (layout(6, elsewhere), START, OWNER, false),
        (layout(6, ADDRESSES), FirstPosition::Given(other), OWNER, false),
        (layout(6, ADDRESSES), START, RingOwner { memory: 8, ..OWNER }, false),
        (layout(6, ADDRESSES), START, RingOwner { features: 0, ..OWNER }, false),
    ] {
        memory.record = record;
        let opened = PackedQueue::open(layout, USUAL.features, (first, owner), &mut memory).unwrap();
        let (FirstPosition::Given(given) | FirstPosition::Paused(given)) = first;
        assert_eq!((opened.0.base(), opened.1), (if same { position } else { given }, same));
    }
    memory.record = record;
    record::forget(&mut memory);
    assert!(!open(&USUAL, &mut memory, (START, OWNER)).1);
}

#[test]
fn ring_that_its_driver_created_anew_starts_as_told() {
    let mut driver = CheckedDriver::new(6, false, USUAL.chains);
    let (_, mut memory) = half_used(&mut driver, &USUAL);
    *memory.driver = CheckedDriver::new(6, false, USUAL.chains);
    memory.memory.bytes = vec![0; SIZE];
    memory.driver.fill(&mut memory.memory);
    let (mut queue, resumed) = open(&USUAL, &mut memory, (START, OWNER));
    assert!(!resumed);
    serve(&mut queue, &mut memory, &USUAL);
    memory.driver.collect(&mut memory.memory);
    assert_eq!(driver.back, 1);
}

#[test]
fn event_structure_of_a_used_ring_is_never_zero() {
    for event_index in [false, true] {
        let scenario = CrashScenario { features: RingFeatures { event_index, ..USUAL.features }, ..USUAL };
        let mut driver = CheckedDriver::new(6, false, USUAL.chains);
        let (mut queue, mut memory) = half_used(&mut driver, &scenario);
        assert_ne!(memory.memory.load::<4>(DEVICE), [0; 4]);
        queue.disable_notifications(&mut memory).unwrap();
        assert_ne!(memory.memory.load::<4>(DEVICE), [0; 4]);
    }
}

#[test]
fn damaged_record_starts_the_ring_at_the_given_position() {
    let mut driver = CheckedDriver::new(6, false, USUAL.chains);
    let (_, mut memory) = half_used(&mut driver, &USUAL);
    let record = memory.record;
    for state in [u64::MAX, 0x1_0000_7fff_8000, 0x1_0002_0000_8002, record[STATE] | 0x7f << 32] {
        memory.record = record;
        memory.record[STATE] = state;
        let _ = open(&USUAL, &mut memory, (START, OWNER));
    }
}
