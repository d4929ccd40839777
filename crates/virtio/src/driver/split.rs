//! The driver's side of a split ring (sections 2.7.13 and 2.7.14).

use super::chains::ChainTable;
use super::types::{DriverBuffer, DriverRingError, InterruptRequest, USED_BURST, UsedEntry};
use crate::descriptor::{SplitDescriptor, flag};
use crate::layout::{LayoutError, RingAddresses};
use crate::memory::{MemoryFault, RingMemory, acquire, read_u16, release};
use crate::signal::passes;
use crate::split::{INDEX, NO_INTERRUPT, NO_NOTIFY, SplitLayout};

/// Position of a driver in its split ring.
#[derive(Debug, Clone)]
pub(super) struct SplitDriver {
    pub(super) layout: SplitLayout,
    /// Running index of the next chain to make available.
    available: u16,
    /// Available index at the last decision about a notification.
    notified: u16,
    /// Running index of the next used entry.
    used: u16,
}

impl SplitDriver {
    pub(super) fn new(size: u16, addresses: RingAddresses) -> Result<Self, LayoutError> {
        let layout = SplitLayout::new(size.into(), addresses)?;
        Ok(Self { layout, available: 0, notified: 0, used: 0 })
    }

    /// Writes the descriptors of a chain, and the chain's entry in the available ring.
    #[inline]
    pub(super) fn add<M: RingMemory>(
        &mut self,
        memory: &mut M,
        chains: &mut ChainTable,
        buffers: &[DriverBuffer],
        extra: u16,
    ) -> Result<u16, MemoryFault> {
        let head = chains.take_id();
        let (mut index, mut writable) = (head, 0_u32);
        for (at, buffer) in buffers.iter().enumerate() {
            let mut flags = extra | if buffer.writable { flag::WRITE } else { 0 };
            let mut next = 0;
            if at + 1 < buffers.len() {
                next = chains.take_id();
                chains.link(index, next);
                flags |= flag::NEXT;
            }
            writable = writable.wrapping_add(if buffer.writable { buffer.length } else { 0 });
            let DriverBuffer { address, length, .. } = *buffer;
            let raw = SplitDescriptor { address, length, flags, next }.emit();
            memory.write(self.layout.descriptor(index), &raw)?;
            index = next;
        }
        let entry = self.layout.available_entry(self.layout.place(self.available));
        memory.write(entry, &head.to_le_bytes())?;
        self.available = self.available.wrapping_add(1);
        chains.lend(head, buffers.len() as u16, writable);
        Ok(head)
    }

    #[inline]
    pub(super) fn publish<M: RingMemory>(&mut self, memory: &mut M) -> Result<(), MemoryFault> {
        release();
        memory.write(self.layout.addresses.driver + INDEX, &self.available.to_le_bytes())
    }

    #[inline]
    pub(super) fn needs_kick<M: RingMemory>(
        &mut self,
        memory: &mut M,
        events: bool,
    ) -> Result<bool, MemoryFault> {
        let added = self.available.wrapping_sub(self.notified);
        if added == 0 {
            return Ok(false);
        }
        self.notified = self.available;
        // The device states its wish and then looks for chains; the driver has to do the opposite in this order.
        memory.fence();
        if events {
            let event = read_u16(memory, self.layout.available_event())?;
            Ok(passes(event, self.available, added))
        } else {
            Ok(read_u16(memory, self.layout.addresses.device)? & NO_NOTIFY == 0)
        }
    }

    /// Reads used entries from the driver's position on. Returns their number.
    #[inline]
    pub(super) fn look<M: RingMemory>(
        &mut self,
        memory: &mut M,
        chains: &ChainTable,
        into: &mut [UsedEntry],
    ) -> Result<usize, DriverRingError> {
        let returned = read_u16(memory, self.layout.addresses.device + INDEX)?.wrapping_sub(self.used);
        if returned == 0 {
            return Ok(0);
        }
        let outstanding = chains.outstanding();
        if returned > outstanding {
            return Err(DriverRingError::UsedIndex { returned, outstanding });
        }
        acquire();
        let place = self.layout.place(self.used);
        let count = into.len().min(returned.into()).min((self.layout.size() - place).into());
        let mut raw = [[0; 8]; USED_BURST];
        memory.read(self.layout.used_entry(place), raw[..count].as_flattened_mut())?;
        for (entry, raw) in into.iter_mut().zip(&raw[..count]) {
            let element = u64::from_le_bytes(*raw);
            let id = element as u32;
            let unknown = DriverRingError::UnknownChain { id };
            *entry =
                UsedEntry { id: u16::try_from(id).map_err(|_| unknown)?, written: (element >> 32) as u32 };
        }
        Ok(count)
    }

    /// Takes a chain back, and passes its used entry. In order, a batch has one entry, at the place of its first chain,
    /// and the entries of its other chains are passed too.
    #[inline]
    pub(super) fn take(&mut self, chains: &mut ChainTable, id: u16) -> u32 {
        self.used = self.used.wrapping_add(1);
        chains.take_back(id, |slots| slots).1
    }

    pub(super) fn request_interrupts<M: RingMemory>(
        &self,
        memory: &mut M,
        request: InterruptRequest,
        events: bool,
    ) -> Result<(), MemoryFault> {
        if !events {
            let flags = if request == InterruptRequest::None { NO_INTERRUPT } else { 0 };
            return memory.write(self.layout.addresses.driver, &flags.to_le_bytes());
        }
        let event = match request {
            // The device must ignore the flag, so the event is as far away as possible.
            InterruptRequest::None => self.used.wrapping_sub(1),
            InterruptRequest::Next => self.used,
            InterruptRequest::After(chains) => self.used.wrapping_add(chains),
        };
        memory.write(self.layout.used_event(), &event.to_le_bytes())
    }
}
