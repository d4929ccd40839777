//! Explores all orders of a device's accesses and a driver's steps in a memory with store buffers, as in x86 (TSO). A
//! store of device or driver reaches the memory later, after that side's earlier stores; until then only the side that
//! stored it sees it.
//!
//! The device is the real code, whose accesses let the driver proceed first.

use std::collections::VecDeque;
use virtio::memory::{MemoryFault, RingMemory};

/// Function by which a modelled driver makes a yes-or-no decision, given four bytes that it loads and a number of the
/// step.
pub(crate) type Decision = fn(&[u8; 4], u16) -> bool;

/// Step of a modelled driver in the exploration of memory orders.
#[derive(Clone)]
pub(crate) enum DriverMemoryOperation {
    /// The driver stores bytes.
    Store(u64, Vec<u8>),
    /// The driver waits until all its stores are in the memory.
    Fence,
    /// The driver loads four bytes and makes a yes-or-no decision. The run's outcome is true if any decision is yes.
    Decide(u64, Decision, u16),
}

/// Stores of driver or device that have not reached the memory.
type StoreBuffer = VecDeque<(u64, Vec<u8>)>;

/// Choices of the order of events in one run of the exploration: for each, the chosen alternative and the number of
/// alternatives.
#[derive(Default)]
struct ExplorationChoices {
    taken: Vec<(usize, usize)>,
    at: usize,
}

impl ExplorationChoices {
    fn choose(&mut self, of: usize) -> usize {
        if self.at == self.taken.len() {
            self.taken.push((0, of));
        }
        let (taken, known) = self.taken[self.at];
        assert_eq!(known, of, "a run is repeated exactly");
        self.at += 1;
        taken
    }

    /// Prepares the next run of the exploration. Returns false if all runs have been made.
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

/// Memory that device and driver share in one run of the exploration.
pub(crate) struct SharedMemory<'a> {
    bytes: Vec<u8>,
    device: StoreBuffer,
    driver: StoreBuffer,
    steps: VecDeque<&'a DriverMemoryOperation>,
    outcome: bool,
    fenced: bool,
    choices: &'a mut ExplorationChoices,
}

fn put(bytes: &mut [u8], (address, stored): &(u64, Vec<u8>)) {
    bytes[*address as usize..][..stored.len()].copy_from_slice(stored);
}

/// Loads bytes as device or driver sees them, given its stores that have not reached the memory.
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
    /// Lets any number of driver steps and arriving stores happen before the device's next access, as the exploration
    /// chooses.
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

    /// Returns true if the driver has a next step that may happen now: a fence waits until the driver's stores have
    /// reached the memory.
    fn may_step(&self) -> bool {
        match self.steps.front() {
            Some(DriverMemoryOperation::Fence) => self.driver.is_empty(),
            other => other.is_some(),
        }
    }

    fn step(&mut self) {
        match self.steps.pop_front() {
            Some(DriverMemoryOperation::Store(address, bytes)) => {
                self.driver.push_back((*address, bytes.clone()));
            }
            Some(DriverMemoryOperation::Decide(address, decide, number)) => {
                let mut loaded = [0; 4];
                load(&self.bytes, &self.driver, *address, &mut loaded);
                self.outcome |= decide(&loaded, *number);
            }
            Some(DriverMemoryOperation::Fence) | None => {}
        }
    }

    /// Ends the run: the driver makes its last steps, and pending stores reach the memory, in any order.
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

/// Makes the oldest store of driver or device reach the memory.
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

/// Runs a device and a driver's steps in all orders from the same memory. The device returns a function that checks the
/// outcome of its run, given the driver's outcome. Without `fenced`, the device's fences do nothing. Returns the number
/// of orders, and of those with a wrong outcome.
pub(crate) fn explore<'d>(
    bytes: &[u8],
    steps: &[DriverMemoryOperation],
    fenced: bool,
    device: impl Fn(&mut SharedMemory<'_>) -> Box<dyn Fn(bool) -> bool + 'd>,
) -> (usize, usize) {
    let mut choices = ExplorationChoices::default();
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
