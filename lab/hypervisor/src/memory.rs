//! Host physical memory from address 0, initially zero. Access rights are enforced by the IOMMU and page
//! tables, and costs are charged by the caller.
//!
//! Frames in a model are headers followed by zeros. Each chunk of memory therefore stores only the bytes
//! before its trailing zeros, close to those of other chunks. Reads and writes are unaffected, but the
//! buffers of sixty guests fit the caches of the computer that runs the model.

use alloc::vec;
use alloc::vec::Vec;

/// Bytes of a modelled frame that may differ from zero: the longest headers, and a datagram's number.
pub const FRAME_HEADERS: usize = 128;
/// Bytes of a chunk of host memory: the size of a driver's usual receive buffer.
const CHUNK: usize = 2048;
/// Allocation unit of storage for chunks of host memory: a cache line, in bytes. A chunk stores a power of
/// two of these units.
const BLOCK: usize = 64;
/// Number of size classes of a memory chunk's storage: 1 to 32 blocks in powers of two.
const SIZES: usize = 6;

/// Host physical memory, from address 0.
#[derive(Debug, Clone, Default)]
pub struct HostMemory {
    bytes: usize,
    chunks: Vec<MemoryChunkStorage>,
    kept: Vec<u8>,
    /// Starts of freed storage for memory chunks in `kept`, in blocks, by size class ([`MemoryChunkStorage::class`]).
    free: [Vec<u32>; SIZES],
}

/// Stored part of a chunk of host memory. All bytes of the chunk behind the stored part are zero.
#[derive(Debug, Clone, Copy, Default)]
struct MemoryChunkStorage {
    /// Start of the memory chunk's storage in `kept`, in blocks.
    at: u32,
    /// Number of blocks of the memory chunk's storage: none, or a power of two.
    blocks: u16,
}

impl MemoryChunkStorage {
    #[inline]
    fn length(self) -> usize {
        usize::from(self.blocks) * BLOCK
    }

    #[inline]
    fn start(self) -> usize {
        self.at as usize * BLOCK
    }

    /// Returns the size class of the memory chunk's storage, which has at least one block.
    fn class(self) -> usize {
        self.blocks.ilog2() as usize
    }
}

/// Error of an access to an address range that exceeds the host memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("address range {address:#x} + {length} exceeds the guest's memory")]
pub struct MemoryRangeError {
    /// First address of the range that exceeds the memory.
    pub address: u64,
    /// Length in bytes of the refused range, which exceeds the memory.
    pub length: usize,
}

impl HostMemory {
    /// Creates zeroed host memory of `bytes` bytes.
    #[must_use]
    pub fn new(bytes: usize) -> Self {
        Self { bytes, chunks: vec![MemoryChunkStorage::default(); bytes.div_ceil(CHUNK)], ..Self::default() }
    }

    /// Reads bytes of host memory at `address`.
    ///
    /// # Errors
    /// [`MemoryRangeError`], with nothing read.
    #[inline]
    pub fn read(&self, address: u64, into: &mut [u8]) -> Result<(), MemoryRangeError> {
        self.read_front(address, into, into.len())
    }

    /// Reads what a driver reads: descriptors, or a modelled frame into a buffer that had modelled frames only. If the block
    /// behind the headers in the buffer is zero, so are all later bytes, which stay.
    ///
    /// # Errors
    /// [`MemoryRangeError`], with nothing read.
    #[inline]
    pub fn read_for_driver(&self, address: u64, into: &mut [u8]) -> Result<(), MemoryRangeError> {
        let front = front(into, "the driver's buffer");
        self.read_front(address, into, front)
    }

    /// Reads bytes of host memory into a buffer that is zero behind its first `front` bytes.
    #[inline]
    fn read_front(&self, address: u64, into: &mut [u8], front: usize) -> Result<(), MemoryRangeError> {
        let (at, length) = (self.first(address, into.len())?, into.len());
        match self.chunks.get(at / CHUNK) {
            Some(chunk) if at % CHUNK + length <= chunk.length() => {
                into.copy_from_slice(&self.kept[chunk.start() + at % CHUNK..][..length]);
            }
            _ => self.read_chunks(at, into, front),
        }
        Ok(())
    }

    /// Reads bytes of several chunks, or bytes behind the stored part of a chunk, as [`Self::read_front`] does.
    fn read_chunks(&self, mut at: usize, mut rest: &mut [u8], mut front: usize) {
        while !rest.is_empty() {
            let (chunk, inside) = (self.chunks[at / CHUNK], at % CHUNK);
            let (part, later) = rest.split_at_mut((CHUNK - inside).min(rest.len()));
            let kept = chunk.length().saturating_sub(inside).min(part.len());
            let (from, zeros) = part.split_at_mut(kept);
            if kept > 0 {
                from.copy_from_slice(&self.kept[chunk.start() + inside..][..kept]);
            }
            let dirty = front.saturating_sub(kept).min(zeros.len());
            zeros[..dirty].fill(0);
            front = front.saturating_sub(part.len());
            at += part.len();
            rest = later;
        }
    }

    /// Writes bytes to host memory at `address`.
    ///
    /// # Errors
    /// [`MemoryRangeError`], with nothing written.
    pub fn write(&mut self, address: u64, from: &[u8]) -> Result<(), MemoryRangeError> {
        self.write_front(address, from, from.len())
    }

    /// Writes what a card writes: descriptors, of which none is zero, or a modelled frame. If the block behind the headers of
    /// a frame is zero, so are all later bytes, which are not read.
    ///
    /// # Errors
    /// [`MemoryRangeError`], with nothing written.
    pub fn write_from_card(&mut self, address: u64, from: &[u8]) -> Result<(), MemoryRangeError> {
        self.write_front(address, from, front(from, "the card's frame"))
    }

    /// Writes bytes to host memory, of which those behind the first `front` are zero.
    #[inline]
    fn write_front(&mut self, address: u64, from: &[u8], mut front: usize) -> Result<(), MemoryRangeError> {
        let (mut at, mut rest) = (self.first(address, from.len())?, from);
        while !rest.is_empty() {
            let (index, inside) = (at / CHUNK, at % CHUNK);
            let (part, later) = rest.split_at((CHUNK - inside).min(rest.len()));
            let mut kept = self.chunks[index].length().saturating_sub(inside).min(part.len());
            if kept < front {
                let unstored = without_zeros(&part[kept..front.min(part.len())]);
                if unstored > 0 {
                    self.grow(index, inside + kept + unstored);
                    kept = self.chunks[index].length().saturating_sub(inside).min(part.len());
                }
            }
            front = front.saturating_sub(part.len());
            if kept > 0 {
                let start = self.chunks[index].start() + inside;
                self.kept[start..][..kept].copy_from_slice(&part[..kept]);
            }
            at += part.len();
            rest = later;
        }
        Ok(())
    }

    /// Enlarges the storage of the memory chunk with this index to at least `bytes` bytes.
    fn grow(&mut self, index: usize, bytes: usize) {
        let (old, blocks) = (self.chunks[index], bytes.div_ceil(BLOCK).next_power_of_two() as u16);
        let mut new = MemoryChunkStorage { at: (self.kept.len() / BLOCK) as u32, blocks };
        match self.free[new.class()].pop() {
            Some(at) => {
                new.at = at;
                self.kept[new.start()..][..new.length()].fill(0);
            }
            None => self.kept.resize(new.start() + new.length(), 0),
        }
        self.kept.copy_within(old.start()..old.start() + old.length(), new.start());
        if old.blocks > 0 {
            self.free[old.class()].push(old.at);
        }
        self.chunks[index] = new;
    }

    fn first(&self, address: u64, length: usize) -> Result<usize, MemoryRangeError> {
        let first = usize::try_from(address).ok();
        let fits = |first: &usize| first.checked_add(length).is_some_and(|end| end <= self.bytes);
        first.filter(fits).ok_or(MemoryRangeError { address, length })
    }
}

/// Returns the number of bytes at the front of descriptors or of a modelled frame behind which all bytes are zero.
#[inline]
fn front(bytes: &[u8], name: &str) -> usize {
    let behind = bytes.get(FRAME_HEADERS..).and_then(<[u8]>::first_chunk::<BLOCK>);
    if behind.is_none_or(|block| !is_zero(block)) {
        return bytes.len();
    }
    debug_assert!(is_frame(bytes), "{name} has payload");
    FRAME_HEADERS
}

/// Returns `true` if all bytes behind the headers of `frame` are zero, as those of modelled frames are.
#[must_use]
pub fn is_frame(frame: &[u8]) -> bool {
    frame.get(FRAME_HEADERS..).is_none_or(|payload| without_zeros(payload) == 0)
}

/// Returns the length of `bytes` without the zero blocks at its end. Blocks are counted from the end of the
/// slice.
#[inline]
fn without_zeros(bytes: &[u8]) -> usize {
    let (first, blocks) = bytes.as_rchunks::<BLOCK>();
    let zeros = blocks.iter().rev().take_while(|block| is_zero(block)).count();
    if zeros < blocks.len() {
        return bytes.len() - zeros * BLOCK;
    }
    first.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1)
}

#[inline]
fn is_zero(block: &[u8; BLOCK]) -> bool {
    let words = block.as_chunks().0.iter().map(|word| u64::from_ne_bytes(*word));
    words.fold(0, |any, word| any | word) == 0
}

#[cfg(test)]
mod tests {
    use super::{CHUNK, FRAME_HEADERS, HostMemory, MemoryRangeError};
    use alloc::vec;
    use alloc::vec::Vec;
    use proptest::prelude::{any, prop, proptest};

    fn read(memory: &HostMemory, address: u64, length: usize) -> Vec<u8> {
        let mut into = vec![0xaa; length];
        memory.read(address, &mut into).unwrap();
        into
    }

    #[test]
    fn guest_memory_is_zero_until_written() {
        let mut memory = HostMemory::new(4096);
        assert_eq!(read(&memory, 60, 100), [0; 100]);
        memory.write(60, &[1; 10]).unwrap();
        assert_eq!(read(&memory, 58, 14), [0, 0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0]);
    }

    #[test]
    fn overwriting_guest_memory_with_zeros_clears_old_bytes() {
        let mut memory = HostMemory::new(256);
        memory.write(0, &[7; 256]).unwrap();
        memory.write(64, &[0; 64]).unwrap();
        memory.write(70, &[5]).unwrap();
        assert_eq!(read(&memory, 63, 8), [7, 0, 0, 0, 0, 0, 0, 5]);
        assert_eq!(read(&memory, 71, 58), [&[0; 57][..], &[7]].concat());
    }

    #[test]
    fn freed_storage_of_guest_memory_is_reused() {
        let mut memory = HostMemory::new(4 * CHUNK);
        memory.write(0, &[1; 64]).unwrap();
        memory.write(CHUNK as u64, &[2; 64]).unwrap();
        memory.write(70, &[3; 300]).unwrap();
        assert_eq!(read(&memory, 62, 10), [1, 1, 0, 0, 0, 0, 0, 0, 3, 3]);
        // The first storage is free and gets reused.
        let kept = memory.kept.len();
        memory.write(2 * CHUNK as u64, &[4; 10]).unwrap();
        assert_eq!((memory.kept.len(), read(&memory, 2 * CHUNK as u64 + 8, 4)), (kept, vec![4, 4, 0, 0]));
    }

    #[test]
    fn access_beyond_the_end_of_guest_memory_is_rejected() {
        let mut memory = HostMemory::new(128);
        assert_eq!(memory.write(120, &[1; 9]), Err(MemoryRangeError { address: 120, length: 9 }));
        assert_eq!(
            memory.read(u64::MAX, &mut [0; 2]),
            Err(MemoryRangeError { address: u64::MAX, length: 2 })
        );
        assert_eq!(read(&memory, 120, 8), [0; 8]);
        assert_eq!(memory.write(128, &[]), Ok(()));
    }

    #[test]
    fn modelled_frame_overwrites_a_longer_one_whole() {
        let mut memory = HostMemory::new(2 * CHUNK);
        let mut frame = vec![0; 1_514];
        frame[..FRAME_HEADERS].fill(9);
        memory.write(0, &[7; 2 * CHUNK]).unwrap();
        // Its headers are in one chunk, and its payload is in both.
        memory.write_from_card(1_000, &frame).unwrap();
        let after = [vec![7; 1_000], frame, vec![7; 2 * CHUNK - 2_514]].concat();
        assert_eq!(read(&memory, 0, 2 * CHUNK), after);
    }

    #[test]
    fn driver_reads_the_same_bytes_into_any_buffer() {
        let mut memory = HostMemory::new(2 * CHUNK);
        let mut frame = vec![0; 1_514];
        frame[..50].fill(9);
        // A frame of one buffer, a frame of two buffers, and payload.
        memory.write(0, &frame).unwrap();
        memory.write(CHUNK as u64 - 100, &frame).unwrap();
        memory.write(CHUNK as u64 + 200, &[7; 1_000]).unwrap();
        for address in [0, CHUNK as u64 - 100, CHUNK as u64 - 10] {
            for dirty in [0, FRAME_HEADERS, 1_514] {
                let mut into = vec![0; 1_514];
                into[..dirty].fill(0xaa);
                memory.read_for_driver(address, &mut into).unwrap();
                assert_eq!(into, read(&memory, address, 1_514), "{dirty} dirty bytes from {address}");
            }
        }
    }

    const SIZE: usize = 3 * CHUNK + 100;

    proptest! {
        #[test]
        fn guest_memory_behaves_like_a_byte_array(
            writes in prop::collection::vec((0..SIZE, 0..SIZE / 2, any::<bool>(), any::<u8>()), 0..40),
        ) {
            let (mut memory, mut plain) = (HostMemory::new(SIZE), vec![0; SIZE]);
            for (at, length, zeros, value) in writes {
                let length = length.min(SIZE - at);
                let from = vec![if zeros { 0 } else { value }; length];
                memory.write(at as u64, &from).unwrap();
                plain[at..at + length].copy_from_slice(&from);
            }
            assert_eq!(read(&memory, 0, SIZE), plain);
        }
    }
}
