//! Explores all orders of a device's accesses and a driver's steps in a memory with store buffers: a store of either side
//! reaches the memory later, in the order of its side's stores, and that side alone sees it before. So does x86 (TSO).
//!
//! The device is the real code, whose accesses let the driver proceed first.

use std::collections::VecDeque;
use virtio::memory::{MemoryFault, RingMemory};

/// Function by which a driver decides: on four bytes that it loads, and a number of the step.
pub(crate) type Decision = fn(&[u8; 4], u16) -> bool;

/// Step of a driver.
#[derive(Clone)]
pub(crate) enum DriverStep {
    /// Stores bytes.
    Store(u64, Vec<u8>),
    /// Waits until all its stores are in the memory.
    Fence,
    /// Loads four bytes and decides; the driver's outcome is true if one of its decisions is.
    Decide(u64, Decision, u16),
}

/// Stores of one side that have not reached the memory.
type StoreBuffer = VecDeque<(u64, Vec<u8>)>;

/// Choices of a run: which were taken, of how many. The next run takes the next one at the last place.
#[derive(Default)]
struct Choices {
    taken: Vec<(usize, usize)>,
    at: usize,
}

impl Choices {
    fn choose(&mut self, of: usize) -> usize {
        if self.at == self.taken.len() {
            self.taken.push((0, of));
        }
        let (taken, known) = self.taken[self.at];
        assert_eq!(known, of, "a run is repeated exactly");
        self.at += 1;
        taken
    }

    /// Prepares the next run. Returns false if all have been made.
    fn advance(&mut self) -> bool {
        self.at = 0;
        while let Some((taken, of)) = self.taken.pop() {
            if taken + 1 < of {
                self.taken.push((taken + 1, of));
                return true;
            }
        }
        false
    }
}

/// Memory that device and driver share in one run.
pub(crate) struct SharedMemory<'a> {
    bytes: Vec<u8>,
    device: StoreBuffer,
    driver: StoreBuffer,
    steps: VecDeque<&'a DriverStep>,
    outcome: bool,
    fenced: bool,
    choices: &'a mut Choices,
}

fn put(bytes: &mut [u8], (address, stored): &(u64, Vec<u8>)) {
    bytes[*address as usize..][..stored.len()].copy_from_slice(stored);
}

/// Loads bytes as a side sees them that has these stores on the way.
fn load(bytes: &[u8], stores: &StoreBuffer, address: u64, into: &mut [u8]) {
    let start = address as usize;
    into.copy_from_slice(&bytes[start..start + into.len()]);
    for (address, stored) in stores {
        for (at, byte) in (*address as usize..).zip(stored) {
            if let Some(place) = at.checked_sub(start).and_then(|at| into.get_mut(at)) {
                *place = *byte;
            }
        }
    }
}

impl SharedMemory<'_> {
    /// Lets anything happen before the device's next access: any number of driver's steps and of stores that arrive.
    fn proceed(&mut self) {
        loop {
            let possible = [true, self.may_step(), !self.device.is_empty(), !self.driver.is_empty()];
            let events: Vec<usize> = (0..4).filter(|event| possible[*event]).collect();
            match events[self.choices.choose(events.len())] {
                0 => return,
                1 => self.step(),
                2 => arrive(&mut self.bytes, &mut self.device),
                _ => arrive(&mut self.bytes, &mut self.driver),
            }
        }
    }

    /// Returns true if the driver has a step that may happen now.
    fn may_step(&self) -> bool {
        match self.steps.front() {
            Some(DriverStep::Fence) => self.driver.is_empty(),
            other => other.is_some(),
        }
    }

    fn step(&mut self) {
        match self.steps.pop_front() {
            Some(DriverStep::Store(address, bytes)) => self.driver.push_back((*address, bytes.clone())),
            Some(DriverStep::Decide(address, decide, number)) => {
                let mut loaded = [0; 4];
                load(&self.bytes, &self.driver, *address, &mut loaded);
                self.outcome |= decide(&loaded, *number);
            }
            Some(DriverStep::Fence) | None => {}
        }
    }

    /// Lets the run end: the driver makes its last steps in any order with the stores.
    fn end(&mut self) {
        while !self.steps.is_empty() {
            if self.may_step() && self.device.is_empty() && self.driver.is_empty() {
                self.step();
                continue;
            }
            let possible = [self.may_step(), !self.device.is_empty(), !self.driver.is_empty()];
            let events: Vec<usize> = (0..3).filter(|event| possible[*event]).collect();
            match events[self.choices.choose(events.len())] {
                0 => self.step(),
                1 => arrive(&mut self.bytes, &mut self.device),
                _ => arrive(&mut self.bytes, &mut self.driver),
            }
        }
    }
}

/// Lets the oldest store of a side reach the memory.
fn arrive(bytes: &mut [u8], stores: &mut StoreBuffer) {
    if let Some(store) = stores.pop_front() {
        put(bytes, &store);
    }
}

impl RingMemory for SharedMemory<'_> {
    fn read(&mut self, address: u64, into: &mut [u8]) -> Result<(), MemoryFault> {
        self.proceed();
        load(&self.bytes, &self.device, address, into);
        Ok(())
    }

    fn write(&mut self, address: u64, from: &[u8]) -> Result<(), MemoryFault> {
        self.proceed();
        self.device.push_back((address, from.to_vec()));
        Ok(())
    }

    fn fence(&mut self) {
        self.proceed();
        if self.fenced {
            self.device.drain(..).for_each(|store| put(&mut self.bytes, &store));
        }
    }
}

/// Runs a device and a driver's steps in all orders from the same memory. The device returns a function that says whether
/// its run was right, given the driver's outcome. Without `fenced`, the device's fences do nothing. Returns the number of
/// orders, and of those that were wrong.
pub(crate) fn explore<'d>(
    bytes: &[u8],
    steps: &[DriverStep],
    fenced: bool,
    device: impl Fn(&mut SharedMemory<'_>) -> Box<dyn Fn(bool) -> bool + 'd>,
) -> (usize, usize) {
    let mut choices = Choices::default();
    let (mut orders, mut wrong) = (0, 0);
    loop {
        let mut memory = SharedMemory {
            bytes: bytes.to_vec(),
            device: StoreBuffer::new(),
            driver: StoreBuffer::new(),
            steps: steps.iter().collect(),
            outcome: false,
            fenced,
            choices: &mut choices,
        };
        let judge = device(&mut memory);
        memory.end();
        orders += 1;
        wrong += usize::from(!judge(memory.outcome));
        if !choices.advance() {
            return (orders, wrong);
        }
    }
}
