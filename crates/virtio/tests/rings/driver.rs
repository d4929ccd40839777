//! Driver of a test: the driver's side of a ring, with the chains that a test has sent.

use crate::memory::{GuestMemory, TABLE, TABLES};
use crate::queue::ADDRESSES;
use std::collections::HashMap;
use virtio::descriptor::{PackedDescriptor, SplitDescriptor, flag};
use virtio::driver::{DriverBuffer, DriverRing, ReturnedChain};
use virtio::layout::RingFeatures;
use virtio::{MemoryFault, RingMemory};

/// Buffer of a chain: address, length, and true if the device writes it.
pub(crate) type Buffer = (u64, u32, bool);

/// Memory of the modelled guest, as its driver accesses it: the record has the device's accesses only.
pub(crate) struct DriverMemory<'a>(pub(crate) &'a mut GuestMemory);

impl RingMemory for DriverMemory<'_> {
    fn read(&mut self, address: u64, into: &mut [u8]) -> Result<(), MemoryFault> {
        into.copy_from_slice(&self.0.bytes[address as usize..][..into.len()]);
        Ok(())
    }

    fn write(&mut self, address: u64, from: &[u8]) -> Result<(), MemoryFault> {
        self.0.store(address, from);
        Ok(())
    }
}

/// Chain that a test's driver made available.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SentChain {
    /// Number by which a test identifies the chain.
    pub(crate) token: u32,
    pub(crate) buffers: Vec<Buffer>,
}

/// Driver of a split or packed ring.
pub(crate) struct TestDriver {
    is_packed: bool,
    pub(crate) ring: DriverRing,
    sent: HashMap<u16, SentChain>,
    /// Number of the next indirect table, each of which has a place of its own until the ring has wrapped.
    table: u64,
}

impl TestDriver {
    pub(crate) fn new(is_packed: bool, size: u16, in_order: bool) -> Self {
        let features = RingFeatures { in_order, ..RingFeatures::default() };
        // Ids that are no positions in the packed ring show that the device uses the id.
        let id = |nth| if is_packed { size - 1 - nth } else { nth };
        let ring = DriverRing::with_ids(is_packed, size, ADDRESSES, features, id).unwrap();
        Self { is_packed, ring, sent: HashMap::new(), table: 0 }
    }

    /// Adds a chain, in an indirect table if `indirect`. Returns false if too few descriptors are free.
    pub(crate) fn add(
        &mut self,
        memory: &mut GuestMemory,
        token: u32,
        buffers: &[Buffer],
        indirect: bool,
    ) -> bool {
        let added = if indirect {
            let table = TABLES + self.table * TABLE;
            if self.ring.free() > 0 {
                self.write_table(memory, table, buffers);
                self.table = (self.table + 1) % u64::from(self.ring.size());
            }
            self.ring.add_table(&mut DriverMemory(memory), table, buffers.len() as u32)
        } else {
            let list: Vec<_> = buffers
                .iter()
                .map(|&(address, length, writable)| DriverBuffer { address, length, writable })
                .collect();
            self.ring.add(&mut DriverMemory(memory), &list)
        };
        let Some(id) = added.unwrap() else { return false };
        let before = self.sent.insert(id, SentChain { token, buffers: buffers.to_vec() });
        assert_eq!(before, None, "the id of a chain is its own until the chain is collected");
        true
    }

    fn write_table(&self, memory: &mut GuestMemory, table: u64, buffers: &[Buffer]) {
        for (at, &(address, length, writable)) in buffers.iter().enumerate() {
            let write = if writable { flag::WRITE } else { 0 };
            let raw = if self.is_packed {
                PackedDescriptor { address, length, id: 0xdead, flags: write }.emit()
            } else {
                let next = if at + 1 < buffers.len() { at as u16 + 1 } else { 0 };
                let flags = write | if next > 0 { flag::NEXT } else { 0 };
                SplitDescriptor { address, length, flags, next }.emit()
            };
            memory.store(table + 16 * at as u64, &raw);
        }
    }

    /// Publishes all chains that were added.
    pub(crate) fn publish(&mut self, memory: &mut GuestMemory) {
        self.ring.publish(&mut DriverMemory(memory)).unwrap();
    }

    /// Collects used chains, each with the number of bytes that the device wrote.
    pub(crate) fn collect(&mut self, memory: &mut GuestMemory) -> Vec<(SentChain, u32)> {
        let mut collected = Vec::new();
        loop {
            // A batch may be longer than the place for it.
            let mut returned = [ReturnedChain::default(); 5];
            let count = self.ring.collect(&mut DriverMemory(memory), &mut returned).unwrap();
            if count == 0 {
                return collected;
            }
            for chain in &returned[..count] {
                let sent = self.sent.remove(&chain.id).expect("each chain is returned once");
                collected.push((sent, chain.written));
            }
        }
    }
}
