//! Device of a packed ring that dies at any of its accesses, and successors that continue the ring. The driver runs on
//! meanwhile, at any point between two accesses.

use crate::driver::TestDriver;
use crate::memory::{DESCRIPTORS, DEVICE, GuestMemory};
use crate::queue::ADDRESSES;
use virtio::RingMemory;
use virtio::chain::{ChainBurst, UsedChain};
use virtio::descriptor::flag;
use virtio::layout::RingFeatures;
use virtio::memory::MemoryFault;
use virtio::packed::record::{FirstPosition, RingOwner, WORDS};
use virtio::packed::{PackedLayout, PackedPosition, PackedQueue};

pub(crate) const OWNER: RingOwner = RingOwner { memory: 7, features: 0x4_0000_0000 };
pub(crate) const START: FirstPosition = FirstPosition::Given(PackedPosition::START);
pub(crate) const NEVER: usize = usize::MAX;
/// End of the memory that holds the ring.
const END: usize = DEVICE as usize + 4;
/// Base address of the buffers. The token of a chain follows from its first buffer's address.
const BUFFERS: u64 = 0x10_0000;
const BUFFER: u32 = 0x1000;

/// Driver that follows the standard, and checks what it gets back: every chain once, in order, with the right length.
pub(crate) struct CheckedDriver {
    driver: TestDriver,
    shapes: &'static [usize],
    writable: bool,
    /// Token of the next chain to add, and of the next chain to get back.
    pub(crate) next: u32,
    pub(crate) back: u32,
}

impl CheckedDriver {
    pub(crate) fn new(size: u16, in_order: bool, (shapes, writable): (&'static [usize], bool)) -> Self {
        Self { driver: TestDriver::new(true, size, in_order), shapes, writable, next: 0, back: 0 }
    }

    pub(crate) fn collect(&mut self, memory: &mut GuestMemory) {
        for (chain, written) in self.driver.collect(memory) {
            assert_eq!(chain.token, self.back);
            assert_eq!(written, if self.writable { written_to(chain.token) } else { 0 });
            self.back += 1;
        }
    }

    /// Fills the ring with chains.
    pub(crate) fn fill(&mut self, memory: &mut GuestMemory) {
        self.add(memory, u32::MAX);
    }

    /// Adds chains until the ring is full, or `most` are added.
    pub(crate) fn add(&mut self, memory: &mut GuestMemory, most: u32) {
        for _ in 0..most {
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
pub(crate) struct MortalMemory<'a> {
    pub(crate) memory: GuestMemory,
    pub(crate) record: [u64; WORDS],
    pub(crate) driver: &'a mut CheckedDriver,
    /// Number of accesses before the device dies, and before the driver acts.
    pub(crate) dies: usize,
    pub(crate) acts: usize,
    /// Number of accesses so far. A store of several words counts as several accesses.
    pub(crate) accesses: usize,
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

    pub(crate) fn is_dead(&self) -> bool {
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
pub(crate) struct CrashScenario {
    pub(crate) size: u16,
    pub(crate) features: RingFeatures,
    pub(crate) chains: (&'static [usize], bool),
    pub(crate) batches: &'static [usize],
    /// Number of chains that the front end returns, one after each death.
    pub(crate) drops: usize,
}

/// Front end that uses the ring for a moment when its device has died, as QEMU does with a transmit ring.
#[derive(Debug)]
pub(crate) struct DroppingFrontEnd {
    /// Position at which the front end starts the ring: it knows of no chain that the device has returned.
    pub(crate) position: PackedPosition,
    /// Number of chains that the front end still returns.
    pub(crate) drops: usize,
}

impl DroppingFrontEnd {
    /// Returns the chain at the front end's position, if one is available, and asks for no notifications.
    pub(crate) fn lose_device(&mut self, memory: &mut GuestMemory, size: u16) {
        let slot = |slots| DESCRIPTORS + 16 * u64::from(self.position.after(slots, size).index());
        let flags = |memory: &mut GuestMemory, slots| memory.load_u16(slot(slots) + 14);
        if self.drops == 0 {
            return;
        }
        memory.store(DEVICE + 2, &[1, 0]);
        if self.position.is_available(flags(memory, 0)) {
            let slots = 1 + (0..size).find(|at| flags(memory, *at) & flag::NEXT == 0).unwrap();
            memory.store(slot(0) + 8, &[0; 4]);
            memory.store(slot(0) + 14, &self.position.used_flags().to_le_bytes());
            (self.position, self.drops) = (self.position.after(slots, size), self.drops - 1);
        }
    }
}

/// Accesses at which devices die, one after the other, and at which the driver acts while they live.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CrashMoments {
    pub(crate) dies: [usize; 2],
    pub(crate) acts: [usize; 2],
    /// True if the driver acts before the successor starts, too.
    pub(crate) between: bool,
}

pub(crate) fn open(
    scenario: &CrashScenario,
    memory: &mut impl RingMemory,
    (first, owner): (FirstPosition, RingOwner),
) -> (PackedQueue, bool) {
    let layout = PackedLayout::new(scenario.size.into(), ADDRESSES).unwrap();
    PackedQueue::open(layout, scenario.features, (first, owner), memory).unwrap()
}

/// Processes available chains until none is left, or the device is dead.
pub(crate) fn serve(queue: &mut PackedQueue, memory: &mut MortalMemory<'_>, scenario: &CrashScenario) {
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
pub(crate) fn crash(scenario: &CrashScenario, moments: CrashMoments) -> bool {
    let CrashMoments { dies, acts, between } = moments;
    let mut driver = CheckedDriver::new(scenario.size, scenario.features.in_order, scenario.chains);
    let (mut guest, mut words) = (GuestMemory::new(), [0; WORDS]);
    // Small memory makes many runs fast.
    guest.bytes.truncate(END);
    driver.fill(&mut guest);
    let mut front_end = DroppingFrontEnd { position: PackedPosition::START, drops: scenario.drops };
    let mut died = false;
    for (turn, dies) in dies.into_iter().chain([NEVER]).enumerate() {
        let acts = acts.get(turn).copied().unwrap_or(NEVER);
        let told = front_end.position;
        let mut memory =
            MortalMemory { memory: guest, record: words, driver: &mut driver, dies, acts, accesses: 0 };
        let (mut queue, resumed) =
            open(scenario, &mut memory, (FirstPosition::GivenForTransmit(told), OWNER));
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
            assert_eq!(position, told);
        }
        died |= turn == 0 && memory.is_dead();
        (guest, words) = (memory.memory, memory.record);
        front_end.lose_device(&mut guest, scenario.size);
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
    let (mut queue, _) =
        open(scenario, &mut last, (FirstPosition::GivenForTransmit(front_end.position), OWNER));
    serve(&mut queue, &mut last, scenario);
    last.driver.collect(&mut last.memory);
    assert_eq!(driver.back, driver.next, "a chain is lost: {scenario:?}, {moments:?}");
    died
}
