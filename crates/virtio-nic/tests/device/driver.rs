//! Drivers of the guests: rings at an address in their guest's memory, with the buffers of each chain.

use std::collections::HashMap;
use virtio::descriptor::{PackedDescriptor, SplitDescriptor, flag};
use virtio::driver::{DriverBuffer, InterruptRequest, ReturnedChain as ReturnedId};
use virtio::layout::{RingAddresses, RingFeatures};
use virtio::{MemoryFault, RingMemory};

/// Offsets in bytes of a ring's descriptor, driver and device areas from the ring's address.
pub(crate) const PARTS: [u64; 3] = [0, 0x2000, 0x3000];
/// Offset of a ring's indirect tables from the ring's address, in bytes. The next constant is the number of descriptors
/// of each table.
const TABLES: u64 = 0x4000;
const TABLE: usize = 16;

/// Buffer of a chain: address, length, and true if the device writes it.
pub(crate) type Buffer = (u64, u32, bool);
/// Chain that the device has returned: its buffers, and the number of bytes that the device wrote.
pub(crate) type ReturnedChain = (Vec<Buffer>, u32);

/// Memory of a guest, as its driver accesses it.
struct OwnMemory<'a>(&'a mut [u8]);

impl RingMemory for OwnMemory<'_> {
    fn read(&mut self, address: u64, into: &mut [u8]) -> Result<(), MemoryFault> {
        into.copy_from_slice(&self.0[address as usize..][..into.len()]);
        Ok(())
    }

    fn write(&mut self, address: u64, from: &[u8]) -> Result<(), MemoryFault> {
        store(self.0, address, from);
        Ok(())
    }
}

/// Ring of a guest's driver.
#[derive(Debug, Clone)]
pub(crate) struct DriverRing {
    pub(crate) packed: bool,
    pub(crate) base: u64,
    pub(crate) size: u16,
    indirect: bool,
    ring: virtio::driver::DriverRing,
    /// Buffers of the chains that the device has not returned, by id.
    sent: HashMap<u16, Vec<Buffer>>,
    /// Number of the next indirect table.
    table: u64,
}

impl DriverRing {
    pub(crate) fn new(packed: bool, base: u64, size: u16, features: RingFeatures) -> Self {
        let [descriptors, driver, device] = PARTS.map(|part| base + part);
        let addresses = RingAddresses { descriptors, driver, device };
        // Drivers use descriptors of a split ring in any order, unless chains are returned in order (VIRTIO 1.2, 2.7.9).
        let id = |nth: u16| if packed || !size.is_multiple_of(2) { nth } else { nth.wrapping_mul(37) % size };
        let ring = virtio::driver::DriverRing::with_ids(packed, size, addresses, features, id).unwrap();
        Self { packed, base, size, indirect: features.indirect, ring, sent: HashMap::new(), table: 0 }
    }

    /// Returns the addresses of the ring's parts.
    pub(crate) fn addresses(&self) -> RingAddresses {
        self.ring.addresses()
    }

    /// Returns the position of a new ring, as vhost-user's ring base.
    pub(crate) fn first_position(&self) -> u32 {
        self.ring.first_base()
    }

    /// Returns the number of chains that the device has not returned.
    pub(crate) fn outstanding(&self) -> usize {
        self.ring.outstanding().into()
    }

    /// Makes a chain available, in an indirect table if tables are negotiated and the chain fits one. Returns false if
    /// too few descriptors are free.
    pub(crate) fn add(&mut self, memory: &mut [u8], buffers: &[Buffer]) -> bool {
        if self.indirect && (2..=TABLE).contains(&buffers.len()) {
            if self.ring.free() == 0 {
                return false;
            }
            let address = self.base + TABLES + (16 * TABLE as u64) * self.table;
            self.table = (self.table + 1) % u64::from(self.size);
            self.write_table(memory, address, buffers);
            return self.publish_table(memory, address, buffers.len() as u32, buffers);
        }
        let list: Vec<_> = buffers
            .iter()
            .map(|&(address, length, writable)| DriverBuffer { address, length, writable })
            .collect();
        let added = self.ring.add(&mut OwnMemory(memory), &list).unwrap();
        self.publish(memory, added, buffers)
    }

    /// Makes a chain available that refers to an indirect table at `address`, whose descriptors the test has written.
    pub(crate) fn add_table(&mut self, memory: &mut [u8], address: u64, descriptors: u32) {
        assert!(self.publish_table(memory, address, descriptors, &[]), "a free descriptor");
    }

    fn publish_table(&mut self, memory: &mut [u8], address: u64, count: u32, buffers: &[Buffer]) -> bool {
        let added = self.ring.add_table(&mut OwnMemory(memory), address, count).unwrap();
        self.publish(memory, added, buffers)
    }

    fn publish(&mut self, memory: &mut [u8], added: Option<u16>, buffers: &[Buffer]) -> bool {
        let Some(id) = added else { return false };
        assert_eq!(self.sent.insert(id, buffers.to_vec()), None, "chain {id} is outstanding already");
        self.ring.publish(&mut OwnMemory(memory)).unwrap();
        true
    }

    fn write_table(&self, memory: &mut [u8], address: u64, buffers: &[Buffer]) {
        for (at, (buffer, length, writable)) in buffers.iter().enumerate() {
            let write = if *writable { flag::WRITE } else { 0 };
            let last = at + 1 == buffers.len();
            let raw = if self.packed {
                PackedDescriptor { address: *buffer, length: *length, id: 0, flags: write }.emit()
            } else {
                let flags = write | if last { 0 } else { flag::NEXT };
                SplitDescriptor { address: *buffer, length: *length, flags, next: at as u16 + 1 }.emit()
            };
            store(memory, address + 16 * at as u64, &raw);
        }
    }

    /// Collects the chains that the device has returned, each with the number of bytes that the device wrote.
    pub(crate) fn collect(&mut self, memory: &mut [u8]) -> Vec<ReturnedChain> {
        let mut collected = Vec::new();
        loop {
            let mut returned = [ReturnedId::default(); 32];
            let count = self.ring.collect(&mut OwnMemory(memory), &mut returned).unwrap();
            if count == 0 {
                return collected;
            }
            for chain in &returned[..count] {
                let buffers = self.sent.remove(&chain.id).expect("each chain is returned once");
                collected.push((buffers, chain.written));
            }
        }
    }

    /// Returns true if the device requests a notification of the chains made available since the last call.
    pub(crate) fn needs_kick(&mut self, memory: &mut [u8]) -> bool {
        self.ring.needs_kick(&mut OwnMemory(memory)).unwrap()
    }

    /// Requests no interrupts, an interrupt per burst, or (with event indexes) one for the chain that is `after` chains
    /// ahead.
    pub(crate) fn ask_interrupts(&self, memory: &mut [u8], on: bool, after: Option<u16>) {
        let request = match (on, after) {
            (false, _) => InterruptRequest::None,
            (true, Some(after)) => InterruptRequest::After(after),
            (true, None) => InterruptRequest::Next,
        };
        self.ring.request_interrupts(&mut OwnMemory(memory), request).unwrap();
    }
}

/// Stores bytes in guest memory, on behalf of the guest.
pub(crate) fn store(memory: &mut [u8], address: u64, bytes: &[u8]) {
    memory[address as usize..][..bytes.len()].copy_from_slice(bytes);
}

/// Loads bytes from guest memory, on behalf of the guest.
pub(crate) fn load<const N: usize>(memory: &[u8], address: u64) -> [u8; N] {
    memory[address as usize..][..N].try_into().unwrap()
}
