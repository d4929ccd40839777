//! Entries of an AF_XDP ring in the model's memory.

use super::memory::XdpMemoryMapping;
use std::marker::PhantomData;
use std::sync::Arc;

/// Entry that fits the model's memory.
pub(super) trait XdpEntry: Copy {
    fn from_number(number: u64) -> Self;
    fn number(self) -> u64;
}

impl XdpEntry for u64 {
    fn from_number(number: u64) -> Self {
        number
    }

    fn number(self) -> u64 {
        self
    }
}

/// Entries of one AF_XDP ring.
#[derive(Debug)]
pub(super) struct XdpEntries<T> {
    memory: Arc<XdpMemoryMapping>,
    entry: PhantomData<T>,
}

impl<T: XdpEntry> XdpEntries<T> {
    pub(super) fn new(memory: Arc<XdpMemoryMapping>, _: usize, size: u32) -> Option<Self> {
        size.is_power_of_two().then_some(Self { memory, entry: PhantomData })
    }

    pub(super) fn write(&self, index: u32, entry: T) {
        self.memory.entry(index).set(entry.number());
    }

    pub(super) fn read(&self, index: u32) -> T {
        T::from_number(self.memory.entry(index).get())
    }
}
