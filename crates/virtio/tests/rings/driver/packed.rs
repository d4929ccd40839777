//! Model driver of a packed ring (sections 2.8.21 and 2.8.22).

use super::{Buffer, SentChain};
use crate::memory::{DESCRIPTORS, GuestMemory, TABLE, TABLES};
use std::collections::{HashMap, VecDeque};
use virtio::descriptor::{PackedDescriptor, flag};
use virtio::packed::PackedPosition;

pub(crate) struct PackedDriver {
    size: u16,
    in_order: bool,
    free_slots: u16,
    free_ids: VecDeque<u16>,
    /// Chains that are available or that the device has fetched, by their buffer id.
    sent: HashMap<u16, SentChain>,
    /// Buffer ids of the chains in `sent`, in the order in which the driver made the chains available.
    order: VecDeque<u16>,
    pub(crate) available: PackedPosition,
    pub(crate) used: PackedPosition,
    /// Address and flags of the first descriptor of a burst. Writing the flags publishes the whole burst.
    held: Option<(u64, u16)>,
}

impl PackedDriver {
    pub(crate) fn new(size: u16, in_order: bool) -> Self {
        Self {
            size,
            in_order,
            free_slots: size,
            // Ids that are no indices show that the device uses the id.
            free_ids: (0..size).map(|id| 0x100 + id).collect(),
            sent: HashMap::new(),
            order: VecDeque::new(),
            available: PackedPosition::START,
            used: PackedPosition::START,
            held: None,
        }
    }

    /// Writes a chain to the packed ring. The first chain since the last publication is not made available yet. Returns
    /// false if too few slots are free.
    pub(crate) fn add(
        &mut self,
        memory: &mut GuestMemory,
        token: u32,
        buffers: &[Buffer],
        indirect: bool,
    ) -> bool {
        let slots = if indirect { 1 } else { buffers.len() as u16 };
        if self.free_slots < slots {
            return false;
        }
        let id = self.free_ids.pop_front().unwrap();
        let table = TABLES + u64::from(id - 0x100) * TABLE;
        let write = |writable: bool| if writable { flag::WRITE } else { 0 };
        let list: Vec<PackedDescriptor> = if indirect {
            for (at, (address, length, writable)) in buffers.iter().enumerate() {
                let (address, length, flags) = (*address, *length, write(*writable));
                let descriptor = PackedDescriptor { address, length, id: 0xdead, flags };
                memory.store(table + 16 * at as u64, &descriptor.emit());
            }
            let length = 16 * buffers.len() as u32;
            vec![PackedDescriptor { address: table, length, id, flags: flag::INDIRECT }]
        } else {
            let list = buffers.iter().enumerate().map(|(at, (address, length, writable))| {
                let last = at + 1 == buffers.len();
                let flags = write(*writable) | if last { 0 } else { flag::NEXT };
                // Only the last descriptor of a list has the id.
                PackedDescriptor {
                    address: *address,
                    length: *length,
                    id: if last { id } else { 0xdead },
                    flags,
                }
            });
            list.collect()
        };
        for descriptor in list {
            let place = self.slot(self.available);
            let flags = descriptor.flags | self.available.available_flags();
            let first = self.held.is_none();
            // The flags of the first head keep their old value until the burst is published.
            let old = memory.load_u16(place + 14);
            let raw = PackedDescriptor { flags: if first { old } else { flags }, ..descriptor }.emit();
            memory.store(place, &raw);
            self.held.get_or_insert((place, flags));
            self.available = self.available.after(1, self.size);
        }
        self.free_slots -= slots;
        self.sent.insert(id, SentChain { token, buffers: buffers.to_vec(), slots });
        self.order.push_back(id);
        true
    }

    pub(crate) fn slot(&self, position: PackedPosition) -> u64 {
        DESCRIPTORS + 16 * u64::from(position.index())
    }

    /// Publishes all chains that were added to the packed ring, by one write.
    pub(crate) fn publish(&mut self, memory: &mut GuestMemory) {
        if let Some((place, flags)) = self.held.take() {
            memory.store(place + 14, &flags.to_le_bytes());
        }
    }

    /// Collects used chains of the packed ring, each with the number of bytes that the device wrote.
    pub(crate) fn collect(&mut self, memory: &mut GuestMemory) -> Vec<(SentChain, u32)> {
        let mut collected = Vec::new();
        loop {
            let used = PackedDescriptor::parse(&memory.load(self.slot(self.used)));
            if used.flags & (flag::AVAIL | flag::USED) != self.used.used_flags() || self.sent.is_empty() {
                return collected;
            }
            let written = if used.flags & flag::WRITE != 0 { used.length } else { 0 };
            loop {
                // In order, chains before the one in the descriptor are used completely.
                let next = if self.in_order { self.order[0] } else { used.id };
                let chain = self.sent.remove(&next).expect("each chain is returned once");
                self.order.retain(|other| *other != next);
                self.free_ids.push_back(next);
                self.free_slots += chain.slots;
                self.used = self.used.after(chain.slots, self.size);
                let whole = chain.writable();
                collected.push((chain, if next == used.id { written } else { whole }));
                if next == used.id {
                    break;
                }
            }
        }
    }
}
