//! Chains of buffers that a queue has fetched in a burst, copied to private memory, and the record by which a chain
//! returns to the driver. Split and packed rings fill a [`ChainBurst`] in the same way.

use crate::descriptor::SIZE;
use crate::memory::{MemoryFault, RingMemory};
use core::ops::Range;

/// Maximum number of chains in a burst.
pub const BURST: usize = 32;
/// Maximum number of buffers in a chain. A device may limit them (sections 2.7.4.1 and 2.8.18); Linux needs 19 for a packet of
/// 64 KB.
pub const MAX_CHAIN: usize = 128;
/// Maximum number of buffers in a burst: room for a chain of maximum length in an empty burst, and for three buffers
/// per chain in a full one.
const STORAGE: usize = 2 * MAX_CHAIN;
/// Number of descriptors of an indirect table that are read at once.
const BLOCK: usize = 16;

/// Buffer of a chain, in the guest's memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ChainBuffer {
    /// Guest address of the chain's buffer.
    pub address: u64,
    /// Length of the chain's buffer in bytes, at least 1.
    pub length: u32,
}

/// Reason why a chain cannot be used. The device returns the chain without a written byte, and the ring continues.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ChainError {
    /// The chain has more buffers than the ring has descriptors, or more than [`MAX_CHAIN`]. A loop ends here too.
    #[error("the chain has too many buffers, or a loop")]
    TooLong,
    /// The index of a following descriptor is outside the descriptor table (section 2.7.5).
    #[error("the chain continues outside its descriptor table")]
    NextOutside,
    /// A buffer of the chain is empty.
    #[error("the chain has a buffer of zero bytes")]
    EmptyBuffer,
    /// A buffer of the chain goes beyond the end of the address space.
    #[error("a buffer of the chain goes beyond the end of the address space")]
    Address,
    /// The chain's buffers have 2^32 bytes or more (section 2.7.5.2).
    #[error("the buffers of the chain have 2^32 bytes or more")]
    Bytes,
    /// A buffer that the device reads follows a buffer that the device writes (sections 2.7.4.2 and 2.8.17).
    #[error("a device-readable buffer follows a device-writable one")]
    Order,
    /// A descriptor refers to an indirect table, and the feature was not negotiated (sections 2.7.5.3.1 and 2.8.19).
    #[error("the chain has an indirect table, which was not negotiated")]
    IndirectNotNegotiated,
    /// The chain continues after an indirect table (section 2.7.5.3.1), or mixes an indirect table with other
    /// descriptors (section 2.8.19).
    #[error("the chain has an indirect table among other descriptors")]
    IndirectInList,
    /// A descriptor in an indirect table refers to another table (section 2.7.5.3.1).
    #[error("an indirect table refers to another one")]
    NestedTable,
    /// The length of an indirect table is zero, or no multiple of a descriptor's 16 bytes.
    #[error("an indirect table has an invalid length")]
    TableLength,
    /// An indirect table is not in the guest's memory.
    #[error("an indirect table is not in the guest's memory")]
    TableUnreadable,
}

/// Chain of buffers that the driver made available: first the buffers that the device reads, then those that it writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Chain {
    id: u16,
    slots: u16,
    first: u16,
    readable: u16,
    writable: u16,
    readable_bytes: u32,
    writable_bytes: u32,
    fault: Option<ChainError>,
}

impl Chain {
    /// Returns the number by which the driver identifies the chain: the head descriptor's index, or the buffer id in a
    /// packed ring.
    #[must_use]
    #[inline]
    pub fn id(&self) -> u16 {
        self.id
    }

    /// Returns the number of ring entries that the chain occupies; 1 in a split ring.
    #[must_use]
    #[inline]
    pub fn slots(&self) -> u16 {
        self.slots
    }

    /// Returns the number of the chain's bytes that the device reads.
    #[must_use]
    #[inline]
    pub fn readable_bytes(&self) -> u32 {
        self.readable_bytes
    }

    /// Returns the number of the chain's bytes that the device may write.
    #[must_use]
    #[inline]
    pub fn writable_bytes(&self) -> u32 {
        self.writable_bytes
    }

    /// Returns the reason why the chain cannot be used, or `None` if it is valid. A malformed chain has no buffers.
    #[must_use]
    #[inline]
    pub fn fault(&self) -> Option<ChainError> {
        self.fault
    }

    /// Returns the record that returns the chain to the driver, after the device wrote the first `written` bytes of its
    /// writable buffers.
    #[must_use]
    #[inline]
    pub fn used(&self, written: u32) -> UsedChain {
        let written = written.min(self.writable_bytes);
        let skippable = self.writable_bytes == 0 && self.fault.is_none();
        UsedChain { id: self.id, slots: self.slots, written, skippable }
    }
}

/// Record of a chain that the device returns to the driver, made by [`Chain::used`].
// In this order the first three fields are loaded as the word that a packed ring's record has for the chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C, align(8))]
pub struct UsedChain {
    pub(crate) id: u16,
    pub(crate) slots: u16,
    pub(crate) written: u32,
    /// True if an in-order batch may skip the chain: the device writes nothing to it. A batch could skip completely written
    /// chains too, but DPDK's driver reads the length of every receive buffer from its own element.
    pub(crate) skippable: bool,
}

/// Returns the number of chains, from the first on, that one used element returns if chains are used in order. All
/// before the last are skipped, and the driver assumes that the device used them completely (sections 2.7.9 and 2.8.8).
#[inline]
pub(crate) fn batch(returned: &[UsedChain]) -> usize {
    let skipped = returned.iter().take_while(|chain| chain.skippable).count();
    returned.len().min(skipped + 1)
}

/// Chain that consists of one buffer, in one entry of the ring.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SingleBufferChain {
    pub(crate) id: u16,
    pub(crate) address: u64,
    pub(crate) length: u32,
    pub(crate) writable: bool,
}

/// Private copies of fetched chains and their buffers. Reuse the value for many fetches: it is large, and each fetch
/// overwrites it.
#[derive(Debug, Clone)]
pub struct ChainBurst {
    chains: [Chain; BURST],
    count: usize,
    buffers: [ChainBuffer; STORAGE],
    stored: usize,
    /// Entries of a split ring's available ring that the current fetch has read.
    pub(crate) heads: [[u8; 2]; BURST],
    /// Descriptors that the current fetch has read from the ring, for several chains together.
    pub(crate) raw: [[u8; SIZE]; BURST],
    /// Block of consecutive descriptors that was read last, for a chain of several descriptors.
    pub(crate) block: DescriptorBlock,
}

impl Default for ChainBurst {
    fn default() -> Self {
        Self {
            chains: [Chain::default(); BURST],
            count: 0,
            buffers: [ChainBuffer::default(); STORAGE],
            stored: 0,
            heads: [[0; 2]; BURST],
            raw: [[0; SIZE]; BURST],
            block: DescriptorBlock::default(),
        }
    }
}

impl ChainBurst {
    /// Returns the fetched chains, in the order in which the driver made them available.
    #[must_use]
    #[inline]
    pub fn chains(&self) -> &[Chain] {
        &self.chains[..self.count]
    }

    /// Returns the buffers of a chain of this burst that the device reads.
    #[must_use]
    #[inline]
    pub fn readable(&self, chain: &Chain) -> &[ChainBuffer] {
        let first = usize::from(chain.first);
        self.buffers.get(first..first + usize::from(chain.readable)).unwrap_or_default()
    }

    /// Returns the first buffer of a chain of this burst, if that is the chain's only buffer and the device reads it:
    /// the usual packet.
    #[must_use]
    #[inline]
    pub fn only_readable(&self, chain: &Chain) -> Option<ChainBuffer> {
        (chain.readable == 1 && chain.writable == 0).then(|| self.buffers[usize::from(chain.first) % STORAGE])
    }

    /// Returns the first buffer of a chain of this burst, if that is the chain's only buffer and the device writes it.
    #[must_use]
    #[inline]
    pub fn only_writable(&self, chain: &Chain) -> Option<ChainBuffer> {
        (chain.readable == 0 && chain.writable == 1).then(|| self.buffers[usize::from(chain.first) % STORAGE])
    }

    /// Returns the buffers of a chain of this burst that the device may write.
    #[must_use]
    #[inline]
    pub fn writable(&self, chain: &Chain) -> &[ChainBuffer] {
        let first = usize::from(chain.first) + usize::from(chain.readable);
        self.buffers.get(first..first + usize::from(chain.writable)).unwrap_or_default()
    }

    /// Removes all chains from the burst.
    #[inline]
    pub(crate) fn clear(&mut self) {
        (self.count, self.stored) = (0, 0);
    }

    /// Returns true if the burst has room for a chain of [`MAX_CHAIN`] buffers.
    #[inline]
    pub(crate) fn has_room(&self) -> bool {
        self.count < BURST && STORAGE - self.stored >= MAX_CHAIN
    }

    /// Adds the chains of the ring's descriptors in `range` to the burst, up to the first that is not a single valid
    /// buffer: the usual chain of most drivers. `describe` returns the buffer of a descriptor, given its bytes and its
    /// entry in the available ring, or `None` if the chain has more buffers. Returns the number of added chains.
    #[inline(always)]
    pub(crate) fn push_plain(
        &mut self,
        range: Range<usize>,
        describe: impl Fn(&[u8; SIZE], &[u8; 2]) -> Option<SingleBufferChain>,
    ) -> usize {
        let first = self.stored;
        let descriptors = self.raw[range.clone()].iter().zip(&self.heads[range]);
        let places = self.chains[self.count..].iter_mut().zip(&mut self.buffers[first..]);
        let mut added = 0;
        for ((raw, head), (chain, slot)) in descriptors.zip(places) {
            let Some(SingleBufferChain { id, address, length, writable }) = describe(raw, head) else {
                break;
            };
            if check_buffer(address, length).is_err() {
                break;
            }
            *slot = ChainBuffer { address, length };
            let (readable, written) = (u16::from(!writable), if writable { length } else { 0 });
            *chain = Chain {
                id,
                slots: 1,
                first: (first + added) as u16,
                readable,
                writable: 1 - readable,
                readable_bytes: length - written,
                writable_bytes: written,
                fault: None,
            };
            added += 1;
        }
        (self.count, self.stored) = (self.count + added, first + added);
        added
    }

    /// Starts a chain without buffers in the burst. The caller has made sure that the burst [has room](Self::has_room).
    #[inline]
    pub(crate) fn open(&mut self) {
        self.chains[self.count] = Chain { first: self.stored as u16, ..Chain::default() };
        self.block.forget();
    }

    /// Adds a buffer to the open chain, the one that [`open`](Self::open) started.
    #[inline]
    pub(crate) fn add(&mut self, address: u64, length: u32, writable: bool) -> Result<(), ChainError> {
        let chain = &mut self.chains[self.count];
        let at = usize::from(chain.first + chain.readable + chain.writable);
        check_buffer(address, length)?;
        let bytes = chain.readable_bytes.checked_add(chain.writable_bytes);
        if bytes.and_then(|bytes| bytes.checked_add(length)).is_none() {
            return Err(ChainError::Bytes);
        }
        let slot = self.buffers.get_mut(at).filter(|_| at < usize::from(chain.first) + MAX_CHAIN);
        let Some(slot) = slot else { return Err(ChainError::TooLong) };
        if writable {
            (chain.writable, chain.writable_bytes) = (chain.writable + 1, chain.writable_bytes + length);
        } else if chain.writable > 0 {
            return Err(ChainError::Order);
        } else {
            (chain.readable, chain.readable_bytes) = (chain.readable + 1, chain.readable_bytes + length);
        }
        *slot = ChainBuffer { address, length };
        Ok(())
    }

    /// Returns the number of buffers of the open chain, the one that [`open`](Self::open) started.
    #[inline]
    pub(crate) fn length(&self) -> usize {
        let chain = &self.chains[self.count];
        usize::from(chain.readable) + usize::from(chain.writable)
    }

    /// Completes the open chain, the one that [`open`](Self::open) started. A malformed chain loses its buffers.
    #[inline]
    pub(crate) fn close(&mut self, id: u16, slots: u16, fault: Option<ChainError>) {
        let chain = &mut self.chains[self.count];
        if fault.is_some() {
            *chain = Chain { first: chain.first, fault, ..Chain::default() };
        }
        (chain.id, chain.slots) = (id, slots);
        self.stored += usize::from(chain.readable) + usize::from(chain.writable);
        self.count += 1;
    }
}

/// Checks that a buffer is not empty and ends within the address space.
#[inline(always)]
fn check_buffer(address: u64, length: u32) -> Result<(), ChainError> {
    if length == 0 {
        return Err(ChainError::EmptyBuffer);
    }
    match address.checked_add(u64::from(length)) {
        Some(_) => Ok(()),
        None => Err(ChainError::Address),
    }
}

/// Consecutive descriptors of a table that were read by one access, since most chains use neighbouring descriptors.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct DescriptorBlock {
    raw: [[u8; SIZE]; BLOCK],
    address: u64,
    count: usize,
}

impl DescriptorBlock {
    /// Discards the descriptors that were read, since the driver may have changed them.
    #[inline]
    pub(crate) fn forget(&mut self) {
        self.count = 0;
    }

    /// Returns the descriptor at `address`, from memory or from the block read last. Reads it together with the
    /// following ones; the table has `rest` descriptors from `address` on.
    pub(crate) fn at<M: RingMemory>(
        &mut self,
        memory: &mut M,
        address: u64,
        rest: usize,
    ) -> Result<[u8; SIZE], MemoryFault> {
        let index = (address.wrapping_sub(self.address) / SIZE as u64) as usize;
        if address >= self.address && index < self.count {
            return Ok(self.raw[index]);
        }
        let count = rest.clamp(1, BLOCK);
        self.count = 0;
        memory.read(address, self.raw[..count].as_flattened_mut())?;
        (self.address, self.count) = (address, count);
        Ok(self.raw[0])
    }
}

/// Returns the number of descriptors in an indirect table.
pub(crate) fn table_entries(address: u64, length: u32) -> Result<usize, ChainError> {
    if length == 0 || !(length as usize).is_multiple_of(SIZE) {
        return Err(ChainError::TableLength);
    }
    match address.checked_add(u64::from(length)) {
        Some(_) => Ok(length as usize / SIZE),
        None => Err(ChainError::Address),
    }
}
