//! Model drivers of split and packed rings, each at an address in its guest's memory.

use std::collections::{HashMap, VecDeque};
use virtio::descriptor::{PackedDescriptor, SplitDescriptor, flag};
use virtio::layout::{RingAddresses, RingFeatures};
use virtio::packed::PackedPosition;

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

/// Ring of a model driver.
#[derive(Debug, Clone)]
pub(crate) struct DriverRing {
    pub(crate) packed: bool,
    pub(crate) base: u64,
    pub(crate) size: u16,
    features: RingFeatures,
    free: VecDeque<u16>,
    /// Buffers and descriptors of the chains that the device has not returned, by head index or buffer id.
    sent: HashMap<u16, (Vec<Buffer>, Vec<u16>)>,
    /// Head indexes or buffer ids of the chains that the device has not returned, in the order in which the driver made
    /// them available.
    order: VecDeque<u16>,
    available: u16,
    used: u16,
    next: PackedPosition,
    returned: PackedPosition,
    /// Number of ring entries made available since the driver last checked if the device requests a notification.
    added: u16,
}

impl DriverRing {
    pub(crate) fn new(packed: bool, base: u64, size: u16, features: RingFeatures) -> Self {
        // Drivers use descriptors in any order, unless chains are returned in order (VIRTIO 1.2, 2.7.9).
        let free = (0..size).map(|n| if packed || features.in_order { n } else { n.wrapping_mul(37) % size });
        let (free, sent, order) = (free.collect(), HashMap::new(), VecDeque::new());
        let (next, returned) = (PackedPosition::START, PackedPosition::START);
        let (available, used, added) = (0, 0, 0);
        Self { packed, base, size, features, free, sent, order, available, used, next, returned, added }
    }

    /// Returns the addresses of the ring's parts.
    pub(crate) fn addresses(&self) -> RingAddresses {
        let [descriptors, driver, device] = PARTS.map(|part| self.base + part);
        RingAddresses { descriptors, driver, device }
    }

    /// Returns the position of a new ring, as vhost-user's ring base.
    pub(crate) fn first_position(&self) -> u32 {
        if self.packed { PackedPosition::START.vhost_base() } else { 0 }
    }

    /// Returns the number of chains that the device has not returned.
    pub(crate) fn outstanding(&self) -> usize {
        self.sent.len()
    }

    /// Makes a chain available, in an indirect table if tables are negotiated and the chain fits one. Returns false if
    /// too few descriptors are free.
    pub(crate) fn add(&mut self, memory: &mut [u8], buffers: &[Buffer]) -> bool {
        let table = self.features.indirect && (2..=TABLE).contains(&buffers.len());
        let needed = if table { 1 } else { buffers.len() };
        if self.free.len() < needed {
            return false;
        }
        let taken: Vec<_> = self.free.drain(..needed).collect();
        let id = taken[0];
        if table {
            let address = self.base + TABLES + (16 * TABLE as u64) * u64::from(id);
            self.write_table(memory, address, buffers);
            self.add_list(memory, &taken, &[(address, 16 * buffers.len() as u32, false)], flag::INDIRECT);
        } else {
            self.add_list(memory, &taken, buffers, 0);
        }
        self.sent.insert(id, (buffers.to_vec(), taken));
        self.order.push_back(id);
        true
    }

    /// Makes a chain available that refers to an indirect table at `address`, whose descriptors the test has written.
    pub(crate) fn add_table(&mut self, memory: &mut [u8], address: u64, descriptors: u32) {
        let id = self.free.pop_front().expect("a free descriptor");
        self.add_list(memory, &[id], &[(address, 16 * descriptors, false)], flag::INDIRECT);
        self.sent.insert(id, (Vec::new(), vec![id]));
        self.order.push_back(id);
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

    fn add_list(&mut self, memory: &mut [u8], taken: &[u16], buffers: &[Buffer], extra: u16) {
        if self.packed {
            self.add_packed(memory, taken[0], buffers, extra);
        } else {
            self.add_split(memory, taken, buffers, extra);
        }
    }

    fn add_split(&mut self, memory: &mut [u8], taken: &[u16], buffers: &[Buffer], extra: u16) {
        for (at, (address, length, writable)) in buffers.iter().enumerate() {
            let next = taken.get(at + 1).copied();
            let more = if next.is_some() { flag::NEXT } else { 0 };
            let flags = extra | more | if *writable { flag::WRITE } else { 0 };
            let raw = SplitDescriptor { address: *address, length: *length, flags, next: next.unwrap_or(0) };
            store(memory, self.base + 16 * u64::from(taken[at]), &raw.emit());
        }
        let driver = self.base + PARTS[1];
        store(memory, driver + 4 + 2 * u64::from(self.available % self.size), &taken[0].to_le_bytes());
        self.available = self.available.wrapping_add(1);
        self.added = self.added.wrapping_add(1);
        store(memory, driver + 2, &self.available.to_le_bytes());
    }

    fn add_packed(&mut self, memory: &mut [u8], id: u16, buffers: &[Buffer], extra: u16) {
        for (at, (address, length, writable)) in buffers.iter().enumerate() {
            let more = if at + 1 < buffers.len() { flag::NEXT } else { 0 };
            let flags = extra | more | if *writable { flag::WRITE } else { 0 } | self.next.available_flags();
            let raw = PackedDescriptor { address: *address, length: *length, id, flags };
            store(memory, self.base + 16 * u64::from(self.next.index()), &raw.emit());
            self.next = self.next.after(1, self.size);
        }
        self.added = self.added.wrapping_add(buffers.len() as u16);
    }

    /// Collects the chains that the device has returned, each with the number of bytes that the device wrote.
    pub(crate) fn collect(&mut self, memory: &[u8]) -> Vec<ReturnedChain> {
        let mut collected = Vec::new();
        while let Some((last, written)) =
            if self.packed { self.next_packed(memory) } else { self.next_split(memory) }
        {
            // In order, an entry returns all chains up to its own, those before it with all their bytes written.
            while let Some(id) = self.order.pop_front() {
                assert!(id == last || self.features.in_order, "chain {last} is returned before {id}");
                let (buffers, taken) = self.sent.remove(&id).expect("each chain is returned once");
                self.used = self.used.wrapping_add(1);
                self.returned =
                    self.returned.after(if self.packed { taken.len() as u16 } else { 0 }, self.size);
                self.free.extend(taken);
                let all = buffers.iter().filter(|buffer| buffer.2).map(|buffer| buffer.1).sum();
                collected.push((buffers, if id == last { written } else { all }));
                if id == last {
                    break;
                }
            }
        }
        collected
    }

    fn next_split(&self, memory: &[u8]) -> Option<(u16, u32)> {
        let device = self.base + PARTS[2];
        let index = u16::from_le_bytes(load(memory, device + 2));
        if index == self.used {
            return None;
        }
        let element = device + 4 + 8 * u64::from(self.used % self.size);
        let id = u32::from_le_bytes(load(memory, element)) as u16;
        assert!(self.sent.contains_key(&id), "the device returned chain {id}, which it does not have");
        Some((id, u32::from_le_bytes(load(memory, element + 4))))
    }

    fn next_packed(&self, memory: &[u8]) -> Option<(u16, u32)> {
        let raw = PackedDescriptor::parse(&load(memory, self.base + 16 * u64::from(self.returned.index())));
        let used = raw.flags & (flag::AVAIL | flag::USED) == self.returned.used_flags();
        (used && !self.sent.is_empty())
            .then_some((raw.id, if raw.flags & flag::WRITE == 0 { 0 } else { raw.length }))
    }

    /// Returns true if the device requests a notification of the chains made available since the last call.
    pub(crate) fn needs_kick(&mut self, memory: &[u8]) -> bool {
        let (added, device) = (std::mem::take(&mut self.added), self.base + PARTS[2]);
        let passes = |event: u16, now: u16| now.wrapping_sub(event).wrapping_sub(1) < added;
        if self.packed {
            let [event, wish] = [0, 2].map(|at| u16::from_le_bytes(load(memory, device + at)));
            let same_round = (event >> 15 != 0) == self.next.wrap();
            let index = (event & 0x7fff).wrapping_sub(if same_round { 0 } else { self.size });
            added > 0 && (wish == 0 || wish == 2 && passes(index, self.next.index()))
        } else if self.features.event_index {
            passes(u16::from_le_bytes(load(memory, device + 4 + 8 * u64::from(self.size))), self.available)
        } else {
            added > 0 && u16::from_le_bytes(load(memory, device)) & 1 == 0
        }
    }

    /// Requests no interrupts, an interrupt per burst, or (with event indexes) one for the chain that is `after` chains
    /// ahead.
    pub(crate) fn ask_interrupts(&self, memory: &mut [u8], on: bool, after: Option<u16>) {
        let (driver, after) = (self.base + PARTS[1], after.filter(|_| self.features.event_index));
        let used_event = driver + 4 + 2 * u64::from(self.size);
        if self.packed {
            let position = self.returned.after(after.unwrap_or(0).min(self.size), self.size).bits();
            let wish: u16 = if after.is_some() { 2 } else { u16::from(!on) };
            store(memory, driver, &position.to_le_bytes());
            store(memory, driver + 2, &wish.to_le_bytes());
        } else if self.features.event_index {
            let event =
                if on { self.used.wrapping_add(after.unwrap_or(0)) } else { self.used.wrapping_sub(1) };
            store(memory, used_event, &event.to_le_bytes());
        } else {
            store(memory, driver, &u16::from(!on).to_le_bytes());
        }
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
