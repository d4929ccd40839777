//! Fetches chains of a packed ring (sections 2.8.1 and 2.8.6): lists of descriptors in following slots, and indirect tables.

use super::{FLAGS, PackedQueue};
use crate::chain::{BURST, ChainBurst, ChainError, MAX_CHAIN, SingleBufferChain, table_entries};
use crate::descriptor::{PackedDescriptor, SIZE, flag};
use crate::error::RingError;
use crate::memory::{MemoryFault, RingMemory, acquire, read_u16};

/// Descriptors of one chain in a packed ring, in consecutive slots.
struct DescriptorList {
    id: u16,
    slots: u16,
    fault: Option<ChainError>,
}

impl PackedQueue {
    /// Fetches up to `most` chains of a packed ring, at most [`BURST`], into `burst`. Returns their number. A malformed
    /// chain is the last of its burst, so that a fetch has a bounded cost.
    ///
    /// # Errors
    /// [`RingError`] if the ring is malformed or not accessible. The chains before the fault were fetched by an earlier call.
    pub fn fetch<M: RingMemory>(
        &mut self,
        memory: &mut M,
        burst: &mut ChainBurst,
        most: usize,
    ) -> Result<usize, RingError> {
        burst.clear();
        let free = self.layout.size - self.fetched;
        let most = most.min(BURST);
        if most == 0 || !self.has_chain(memory)? {
            return Ok(0);
        }
        let ready = self.read_ready(memory, burst, usize::from(free).min(most))?;
        let mut taken = burst.push_plain(0..ready, plain);
        while taken < ready {
            match self.take(memory, burst, (taken, ready)) {
                Ok(Some((slots, good))) => {
                    taken += slots;
                    if !good {
                        break;
                    }
                }
                Ok(None) => break,
                Err(error) if taken == 0 => return Err(error),
                Err(_) => break,
            }
            taken += burst.push_plain(taken.min(ready)..ready, plain);
        }
        self.fetched += taken as u16;
        self.available = self.available.after(taken as u16, self.layout.size);
        Ok(burst.chains().len())
    }

    /// Returns true if the packed ring has a chain to fetch: its next descriptor is available. Reads only that
    /// descriptor, so that a device that polls an idle ring does not take cache lines from a driver that is about to
    /// write them.
    ///
    /// # Errors
    /// [`RingError`] if the ring is not accessible.
    #[inline]
    pub fn has_chain<M: RingMemory>(&self, memory: &mut M) -> Result<bool, RingError> {
        if self.fetched == self.layout.size {
            return Ok(false);
        }
        let flags = read_u16(memory, self.layout.slot(self.available) + FLAGS)?;
        Ok(self.available.is_available(flags))
    }

    /// Reads up to `most` available descriptors, at most up to the packed ring's end. Returns their number, at least 1.
    ///
    /// They are read twice: a descriptor's flags publish the rest of it, which therefore has to be read after them.
    #[inline]
    fn read_ready<M: RingMemory>(
        &self,
        memory: &mut M,
        burst: &mut ChainBurst,
        most: usize,
    ) -> Result<usize, RingError> {
        let slot = self.layout.slot(self.available);
        let mut ready = 1;
        let looked = self.layout.contiguous(self.available, most);
        if looked > 1 {
            memory.read(slot, burst.raw[..looked].as_flattened_mut())?;
            let later = burst.raw[1..looked].iter();
            let available =
                later.take_while(|raw| self.available.is_available(u16::from_le_bytes([raw[14], raw[15]])));
            ready += available.count();
        }
        acquire();
        memory.read(slot, burst.raw[..ready].as_flattened_mut())?;
        Ok(ready)
    }

    /// Adds the chain that begins `at` slots after the device's position to the burst; `ready` descriptors have been
    /// read. Returns the chain's number of slots, and false if the chain is malformed. Returns `None` if the burst has
    /// no room for the chain.
    #[inline(never)]
    fn take<M: RingMemory>(
        &self,
        memory: &mut M,
        burst: &mut ChainBurst,
        (at, ready): (usize, usize),
    ) -> Result<Option<(usize, bool)>, RingError> {
        if !burst.has_room() {
            return Ok(None);
        }
        burst.open();
        let list = self.walk(memory, burst, (at, ready))?;
        burst.close(list.id, list.slots, list.fault);
        Ok(Some((list.slots.into(), list.fault.is_none())))
    }

    /// Adds the buffers of a list that begins `at` slots after the device's position. A malformed list is followed to
    /// its end too: only its last descriptor has the buffer id, and marks the start of the next list.
    fn walk<M: RingMemory>(
        &self,
        memory: &mut M,
        burst: &mut ChainBurst,
        (at, ready): (usize, usize),
    ) -> Result<DescriptorList, RingError> {
        let free = usize::from(self.layout.size - self.fetched);
        let mut fault = None;
        for slot in at..free {
            let raw = if slot < ready { burst.raw[slot] } else { self.read_slot(memory, burst, slot)? };
            let PackedDescriptor { address, length, id, flags } = PackedDescriptor::parse(&raw);
            if fault.is_none() {
                let added = match flags & flag::INDIRECT != 0 {
                    true if flags & flag::NEXT != 0 || slot > at => Err(ChainError::IndirectInList),
                    true => self.add_table(memory, burst, (address, length)),
                    false => burst.add(address, length, flags & flag::WRITE != 0),
                };
                fault = added.err();
            }
            if flags & flag::NEXT == 0 {
                return Ok(DescriptorList { id, slots: (slot - at + 1) as u16, fault });
            }
        }
        Err(RingError::EndlessList { free: free as u16 })
    }

    /// Reads the descriptor that is `ahead` slots after the device's position, together with those behind it.
    fn read_slot<M: RingMemory>(
        &self,
        memory: &mut M,
        burst: &mut ChainBurst,
        ahead: usize,
    ) -> Result<[u8; SIZE], MemoryFault> {
        let position = self.available.after(ahead as u16, self.layout.size);
        let rest = self.layout.contiguous(position, usize::from(self.layout.size - self.fetched) - ahead);
        burst.block.at(memory, self.layout.slot(position), rest)
    }

    /// Adds the buffers of an indirect table to the chain. Only the write flag of the table's descriptors counts
    /// (section 2.8.7), and in a ring whose buffers the device only reads, no flag.
    fn add_table<M: RingMemory>(
        &self,
        memory: &mut M,
        burst: &mut ChainBurst,
        (table, length): (u64, u32),
    ) -> Result<(), ChainError> {
        if !self.features.indirect {
            return Err(ChainError::IndirectNotNegotiated);
        }
        let entries = table_entries(table, length)?;
        if entries > MAX_CHAIN {
            return Err(ChainError::TooLong);
        }
        for index in 0..entries {
            let raw = burst.block.at(memory, table + (SIZE * index) as u64, entries - index);
            let raw = raw.map_err(|_| ChainError::TableUnreadable)?;
            let PackedDescriptor { address, length, flags, .. } = PackedDescriptor::parse(&raw);
            burst.add(address, length, flags & flag::WRITE != 0 && !self.read_only)?;
        }
        Ok(())
    }
}

/// Returns the chain of a packed descriptor that stands alone. Returns `None` for a list or an indirect table.
#[inline(always)]
fn plain(raw: &[u8; SIZE], _: &[u8; 2]) -> Option<SingleBufferChain> {
    let PackedDescriptor { address, length, id, flags } = PackedDescriptor::parse(raw);
    let chain = SingleBufferChain { id, address, length, writable: flags & flag::WRITE != 0 };
    (flags & (flag::NEXT | flag::INDIRECT) == 0).then_some(chain)
}
