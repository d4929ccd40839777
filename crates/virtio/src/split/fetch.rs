//! Fetches chains of a split ring (section 2.7.13): indices, descriptors and indirect tables.

use super::{INDEX, SplitLayout, SplitQueue};
use crate::chain::{BURST, ChainBurst, ChainError, SingleBufferChain, table_entries};
use crate::descriptor::{SIZE, SplitDescriptor, flag};
use crate::error::RingError;
use crate::memory::{RingMemory, acquire, read_u16};

impl SplitQueue {
    /// Fetches up to `most` chains of a split ring, at most [`BURST`], into `burst`. Returns their number. A malformed
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
        let pending = self.pending(memory, most.min(BURST) as u16)?;
        if pending == 0 {
            return Ok(0);
        }
        self.read_heads(memory, burst, pending.into())?;
        let count = self.read_descriptors(memory, burst, pending.into())?;
        let mut at = burst.push_plain(0..count, plain);
        while at < count {
            match self.take(memory, burst, at) {
                Ok(true) => at += 1 + burst.push_plain(at + 1..count, plain),
                Ok(false) => break,
                Err(error) if at == 0 => return Err(error),
                Err(_) => break,
            }
        }
        self.available = self.available.wrapping_add(burst.chains().len() as u16);
        Ok(burst.chains().len())
    }

    /// Returns true if the split ring has a chain to fetch.
    ///
    /// # Errors
    /// [`RingError`] if the available ring is malformed or not accessible.
    #[inline]
    pub fn has_chain<M: RingMemory>(&mut self, memory: &mut M) -> Result<bool, RingError> {
        Ok(self.pending(memory, 1)? > 0)
    }

    /// Returns the number of available chains, at most `most`. Reads the driver's index only if fewer than `most` are
    /// known.
    #[inline]
    pub(super) fn pending<M: RingMemory>(&mut self, memory: &mut M, most: u16) -> Result<u16, RingError> {
        let known = self.known.wrapping_sub(self.available);
        if known >= most {
            return Ok(most);
        }
        let index = read_u16(memory, self.layout.addresses.driver + INDEX)?;
        acquire();
        // A chain occupies a descriptor until it is returned, so that no more chains than descriptors can be outstanding. The
        // index never decreases.
        let (pending, size) = (index.wrapping_sub(self.available), self.layout.size);
        if pending > size - self.fetched() || pending < known {
            return Err(RingError::AvailableIndex { pending, size });
        }
        self.known = index;
        Ok(pending.min(most))
    }

    /// Reads entries of the split ring's available ring.
    #[inline]
    fn read_heads<M: RingMemory>(
        &self,
        memory: &mut M,
        burst: &mut ChainBurst,
        count: usize,
    ) -> Result<(), RingError> {
        let place = self.layout.place(self.available);
        let before_wrap = count.min((self.layout.size - place).into());
        let (one, two) = burst.heads[..count].split_at_mut(before_wrap);
        memory.read(self.layout.available_entry(place), one.as_flattened_mut())?;
        if !two.is_empty() {
            memory.read(self.layout.available_entry(0), two.as_flattened_mut())?;
        }
        Ok(())
    }

    /// Reads the first descriptor of each chain; neighbours in the table are read by one access. Returns the number of
    /// descriptors before the first one that cannot be read.
    #[inline]
    fn read_descriptors<M: RingMemory>(
        &self,
        memory: &mut M,
        burst: &mut ChainBurst,
        count: usize,
    ) -> Result<usize, RingError> {
        let size = self.layout.size;
        let mut at = 0;
        while at < count {
            let head = u16::from_le_bytes(burst.heads[at]);
            let longest = (count - at).min(size.saturating_sub(head).into());
            let heads = burst.heads[at..at + longest].iter().zip(head..);
            let following = heads.take_while(|(raw, expected)| u16::from_le_bytes(**raw) == *expected);
            let run = at..at + following.count().max(1);
            let read = if head < size {
                let raw = burst.raw[run.clone()].as_flattened_mut();
                memory.read(self.layout.descriptor(head), raw).map_err(RingError::from)
            } else {
                Err(RingError::Head { head, size })
            };
            match read {
                Ok(()) => at = run.end,
                Err(error) if at == 0 => return Err(error),
                Err(_) => return Ok(at),
            }
        }
        Ok(count)
    }

    /// Adds the chain whose first descriptor is at index `at` of the burst. Returns false if the burst has no room for
    /// the chain, or ends with it because it is malformed.
    #[inline(never)]
    fn take<M: RingMemory>(
        &self,
        memory: &mut M,
        burst: &mut ChainBurst,
        at: usize,
    ) -> Result<bool, RingError> {
        if !burst.has_room() {
            return Ok(false);
        }
        let head = u16::from_le_bytes(burst.heads[at]);
        let first = SplitDescriptor::parse(&burst.raw[at]);
        burst.open();
        let walked = self.walk(memory, burst, first)?;
        burst.close(head, 1, walked.err());
        Ok(walked.is_ok())
    }

    /// Adds the buffers of a list of split descriptors to the chain. The list may end in an indirect table (section
    /// 2.7.5.3.2).
    fn walk<M: RingMemory>(
        &self,
        memory: &mut M,
        burst: &mut ChainBurst,
        first: SplitDescriptor,
    ) -> Result<Result<(), ChainError>, RingError> {
        let mut descriptor = first;
        loop {
            let SplitDescriptor { address, length, flags, next } = descriptor;
            if flags & flag::INDIRECT != 0 {
                return Ok(self.walk_table(memory, burst, descriptor));
            }
            if burst.length() >= self.layout.size.into() {
                return Ok(Err(ChainError::TooLong));
            }
            if let Err(fault) = burst.add(address, length, flags & flag::WRITE != 0) {
                return Ok(Err(fault));
            }
            if flags & flag::NEXT == 0 {
                return Ok(Ok(()));
            }
            if next >= self.layout.size {
                return Ok(Err(ChainError::NextOutside));
            }
            let raw = read_in_table(&self.layout, memory, burst, next)?;
            descriptor = SplitDescriptor::parse(&raw);
        }
    }

    /// Adds the buffers of an indirect table to the chain, in the order of their `next` fields. The device ignores the
    /// table's own write flag.
    fn walk_table<M: RingMemory>(
        &self,
        memory: &mut M,
        burst: &mut ChainBurst,
        table: SplitDescriptor,
    ) -> Result<(), ChainError> {
        if !self.features.indirect {
            return Err(ChainError::IndirectNotNegotiated);
        }
        if table.flags & flag::NEXT != 0 {
            return Err(ChainError::IndirectInList);
        }
        let entries = table_entries(table.address, table.length)?;
        burst.block.forget();
        let mut index = 0;
        loop {
            let place = table.address + (SIZE * index) as u64;
            let raw = burst.block.at(memory, place, entries - index);
            let raw = raw.map_err(|_| ChainError::TableUnreadable)?;
            let SplitDescriptor { address, length, flags, next } = SplitDescriptor::parse(&raw);
            if flags & flag::INDIRECT != 0 {
                return Err(ChainError::NestedTable);
            }
            burst.add(address, length, flags & flag::WRITE != 0)?;
            if flags & flag::NEXT == 0 {
                return Ok(());
            }
            index = next.into();
            if index >= entries {
                return Err(ChainError::NextOutside);
            }
        }
    }
}

/// Returns the chain of a split descriptor that stands alone, with its entry in the available ring as id. Returns
/// `None` for a list or an indirect table.
#[inline(always)]
fn plain(raw: &[u8; SIZE], head: &[u8; 2]) -> Option<SingleBufferChain> {
    let SplitDescriptor { address, length, flags, .. } = SplitDescriptor::parse(raw);
    let id = u16::from_le_bytes(*head);
    let chain = SingleBufferChain { id, address, length, writable: flags & flag::WRITE != 0 };
    (flags & (flag::NEXT | flag::INDIRECT) == 0).then_some(chain)
}

/// Reads a descriptor of the ring's table, together with those behind it: drivers chain neighbouring descriptors while
/// most of the table is free.
fn read_in_table<M: RingMemory>(
    layout: &SplitLayout,
    memory: &mut M,
    burst: &mut ChainBurst,
    index: u16,
) -> Result<[u8; SIZE], RingError> {
    let rest = usize::from(layout.size - index).min(4);
    Ok(burst.block.at(memory, layout.descriptor(index), rest)?)
}
