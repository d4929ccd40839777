//! Model driver of a split ring (section 2.7.13 and 2.7.14).

use super::{Buffer, SentChain};
use crate::memory::{DESCRIPTORS, DEVICE, DRIVER, GuestMemory, TABLE, TABLES};
use std::collections::{HashMap, VecDeque};
use virtio::descriptor::{SplitDescriptor, flag};

pub(crate) struct SplitDriver {
    size: u16,
    in_order: bool,
    /// Free descriptors of the split ring; taken from the front.
    free: VecDeque<u16>,
    /// Chains that are available or that the device has fetched, by their first descriptor.
    sent: HashMap<u16, (SentChain, Vec<u16>)>,
    /// First descriptors of the chains in `sent`, in the order in which the driver made the chains available.
    order: VecDeque<u16>,
    pub(crate) available: u16,
    pub(crate) used: u16,
}

impl SplitDriver {
    pub(crate) fn new(size: u16, in_order: bool) -> Self {
        let (sent, order) = (HashMap::new(), VecDeque::new());
        Self { size, in_order, free: (0..size).collect(), sent, order, available: 0, used: 0 }
    }

    /// Writes a chain to the split ring, with its entry in the available ring. Returns false if too few
    /// descriptors are free.
    pub(crate) fn add(
        &mut self,
        memory: &mut GuestMemory,
        token: u32,
        buffers: &[Buffer],
        indirect: bool,
    ) -> bool {
        let slots = if indirect { 1 } else { buffers.len() };
        if self.free.len() < slots {
            return false;
        }
        let taken: Vec<u16> = self.free.drain(..slots).collect();
        let table = TABLES + u64::from(taken[0]) * TABLE;
        for (at, (address, length, writable)) in buffers.iter().enumerate() {
            let last = at + 1 == buffers.len();
            let next = if indirect { at as u16 + 1 } else { *taken.get(at + 1).unwrap_or(&0) };
            let flags = if last { 0 } else { flag::NEXT } | if *writable { flag::WRITE } else { 0 };
            let next = if last { 0 } else { next };
            let place = if indirect { table + 16 * at as u64 } else { Self::descriptor(taken[at]) };
            let descriptor = SplitDescriptor { address: *address, length: *length, flags, next };
            memory.store(place, &descriptor.emit());
        }
        if indirect {
            let length = 16 * buffers.len() as u32;
            let descriptor = SplitDescriptor { address: table, length, flags: flag::INDIRECT, next: 0 };
            memory.store(Self::descriptor(taken[0]), &descriptor.emit());
        }
        let head = taken[0];
        memory.store(DRIVER + 4 + 2 * u64::from(self.available % self.size), &head.to_le_bytes());
        self.available = self.available.wrapping_add(1);
        let chain = SentChain { token, buffers: buffers.to_vec(), slots: 1 };
        self.sent.insert(head, (chain, taken));
        self.order.push_back(head);
        true
    }

    fn descriptor(index: u16) -> u64 {
        DESCRIPTORS + 16 * u64::from(index)
    }

    /// Publishes all chains that were added to the split ring.
    pub(crate) fn publish(&mut self, memory: &mut GuestMemory) {
        memory.store(DRIVER + 2, &self.available.to_le_bytes());
    }

    /// Collects used chains of the split ring, each with the number of bytes that the device wrote.
    pub(crate) fn collect(&mut self, memory: &mut GuestMemory) -> Vec<(SentChain, u32)> {
        let mut collected = Vec::new();
        let index = memory.load_u16(DEVICE + 2);
        assert!(index.wrapping_sub(self.used) <= self.size, "used index {index}, seen {}", self.used);
        while self.used != index {
            let element = DEVICE + 4 + 8 * u64::from(self.used % self.size);
            let head = u32::from_le_bytes(memory.load(element)) as u16;
            let written = u32::from_le_bytes(memory.load(element + 4));
            loop {
                // In order, chains before the one in the element are used completely.
                let next = if self.in_order { self.order[0] } else { head };
                let chain = self.finish(next);
                self.used = self.used.wrapping_add(1);
                let whole = chain.writable();
                collected.push((chain, if next == head { written } else { whole }));
                if next == head {
                    break;
                }
            }
        }
        collected
    }

    fn finish(&mut self, head: u16) -> SentChain {
        self.order.retain(|other| *other != head);
        let (chain, taken) = self.sent.remove(&head).expect("each chain is returned once");
        // In order, descriptors are taken in the order of the table (section 2.7.5).
        self.free.extend(taken);
        chain
    }
}
