//! Model drivers of rings of both formats, at an address of their guest's memory.

use std::collections::HashMap;
use virtio::descriptor::{PackedDescriptor, SplitDescriptor, flag};
use virtio::layout::RingAddresses;
use virtio::packed::PackedPosition;

/// Offsets of a ring's three parts from the ring's address.
const PARTS: [u64; 3] = [0, 0x2000, 0x3000];

/// Buffer of a chain: address, length, and true if the device writes it.
pub(crate) type Buffer = (u64, u32, bool);

/// Ring of a model driver, which returns chains in any order.
#[derive(Debug, Clone)]
pub(crate) struct DriverRing {
    pub(crate) packed: bool,
    pub(crate) base: u64,
    pub(crate) size: u16,
    free: Vec<u16>,
    /// Buffers and descriptors of the chains that the device has, by their head or id.
    sent: HashMap<u16, (Vec<Buffer>, Vec<u16>)>,
    available: u16,
    used: u16,
    next: PackedPosition,
    returned: PackedPosition,
}

impl DriverRing {
    pub(crate) fn new(packed: bool, base: u64, size: u16) -> Self {
        let (free, sent) = ((0..size).rev().collect(), HashMap::new());
        let (next, returned) = (PackedPosition::START, PackedPosition::START);
        Self { packed, base, size, free, sent, available: 0, used: 0, next, returned }
    }

    /// Returns the addresses of the ring's parts.
    pub(crate) fn addresses(&self) -> RingAddresses {
        let [descriptors, driver, device] = PARTS.map(|part| self.base + part);
        RingAddresses { descriptors, driver, device }
    }

    /// Makes a chain available. Returns false if descriptors are missing.
    pub(crate) fn add(&mut self, memory: &mut [u8], buffers: &[Buffer]) -> bool {
        if self.free.len() < buffers.len() {
            return false;
        }
        let taken = self.free.split_off(self.free.len() - buffers.len());
        let id = taken[0];
        if self.packed {
            self.add_packed(memory, id, buffers);
        } else {
            self.add_split(memory, &taken, buffers);
        }
        self.sent.insert(id, (buffers.to_vec(), taken));
        true
    }

    fn add_split(&mut self, memory: &mut [u8], taken: &[u16], buffers: &[Buffer]) {
        for (at, (address, length, writable)) in buffers.iter().enumerate() {
            let next = taken.get(at + 1).copied();
            let flags = if next.is_some() { flag::NEXT } else { 0 } | if *writable { flag::WRITE } else { 0 };
            let raw = SplitDescriptor { address: *address, length: *length, flags, next: next.unwrap_or(0) };
            store(memory, self.base + 16 * u64::from(taken[at]), &raw.emit());
        }
        let [_, driver, _] = PARTS.map(|part| self.base + part);
        store(memory, driver + 4 + 2 * u64::from(self.available % self.size), &taken[0].to_le_bytes());
        self.available = self.available.wrapping_add(1);
        store(memory, driver + 2, &self.available.to_le_bytes());
    }

    fn add_packed(&mut self, memory: &mut [u8], id: u16, buffers: &[Buffer]) {
        for (at, (address, length, writable)) in buffers.iter().enumerate() {
            let more = if at + 1 < buffers.len() { flag::NEXT } else { 0 };
            let flags = more | if *writable { flag::WRITE } else { 0 } | self.next.available_flags();
            let raw = PackedDescriptor { address: *address, length: *length, id, flags };
            store(memory, self.base + 16 * u64::from(self.next.index()), &raw.emit());
            self.next = self.next.after(1, self.size);
        }
    }

    /// Collects the chains that the device has returned, each with the number of bytes that it wrote.
    pub(crate) fn collect(&mut self, memory: &[u8]) -> Vec<(Vec<Buffer>, u32)> {
        let mut collected = Vec::new();
        while let Some((id, written)) =
            if self.packed { self.next_packed(memory) } else { self.next_split(memory) }
        {
            let (buffers, taken) = self.sent.remove(&id).expect("each chain is returned once");
            if self.packed {
                self.returned = self.returned.after(taken.len() as u16, self.size);
            }
            self.free.extend(taken);
            collected.push((buffers, written));
        }
        collected
    }

    fn next_split(&mut self, memory: &[u8]) -> Option<(u16, u32)> {
        let device = self.base + PARTS[2];
        let index = u16::from_le_bytes(load(memory, device + 2));
        if index == self.used {
            return None;
        }
        let element = device + 4 + 8 * u64::from(self.used % self.size);
        self.used = self.used.wrapping_add(1);
        Some((
            u32::from_le_bytes(load(memory, element)) as u16,
            u32::from_le_bytes(load(memory, element + 4)),
        ))
    }

    fn next_packed(&mut self, memory: &[u8]) -> Option<(u16, u32)> {
        let raw = PackedDescriptor::parse(&load(memory, self.base + 16 * u64::from(self.returned.index())));
        let used = raw.flags & (flag::AVAIL | flag::USED) == self.returned.used_flags();
        (used && !self.sent.is_empty())
            .then_some((raw.id, if raw.flags & flag::WRITE == 0 { 0 } else { raw.length }))
    }
}

/// Stores bytes as the guest.
pub(crate) fn store(memory: &mut [u8], address: u64, bytes: &[u8]) {
    memory[address as usize..][..bytes.len()].copy_from_slice(bytes);
}

/// Loads bytes as the guest.
pub(crate) fn load<const N: usize>(memory: &[u8], address: u64) -> [u8; N] {
    memory[address as usize..][..N].try_into().unwrap()
}
