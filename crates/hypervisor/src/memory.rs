//! The host's memory: bytes from address 0 on, all zero at first. Left out: who may use which of them, which is
//! the IOMMU's and the page tables' to say, and what reaching them costs.
//!
//! Frames in a model carry headers and then zeros. Memory remembers which blocks hold nothing else and touches
//! the bytes of the others only: to readers and writers there is no difference, but sixty guests' buffers do not
//! go through the caches of whoever runs the model.

use alloc::vec;
use alloc::vec::Vec;
use core::ops::Range;

/// Bytes of a block: a cache line.
const BLOCK: usize = 64;

/// Memory from address 0 on.
#[derive(Debug, Clone, Default)]
pub struct HostMemory {
    bytes: Vec<u8>,
    /// A bit for each block whose bytes count. The others read as zeros, whatever their bytes are.
    filled: Vec<u64>,
}

/// There is no memory there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("no memory of {length} bytes at {address:#x}")]
pub struct Absent {
    /// Where.
    pub address: u64,
    /// How much was asked for.
    pub length: usize,
}

impl HostMemory {
    /// Memory of so many bytes.
    #[must_use]
    pub fn new(bytes: usize) -> Self {
        let blocks = bytes.div_ceil(BLOCK);
        Self { bytes: vec![0; blocks * BLOCK], filled: vec![0; blocks.div_ceil(64)] }
    }

    /// Reads bytes.
    ///
    /// # Errors
    /// [`Absent`]; nothing was read then.
    pub fn read(&self, address: u64, into: &mut [u8]) -> Result<(), Absent> {
        let range = self.range(address, into.len())?;
        let (mut at, mut rest) = (range.start, into);
        while !rest.is_empty() {
            let (filled, blocks) = self.run(at / BLOCK);
            let length = (blocks * BLOCK - at % BLOCK).min(rest.len());
            let (part, later) = rest.split_at_mut(length);
            if filled {
                part.copy_from_slice(&self.bytes[at..at + length]);
            } else {
                part.fill(0);
            }
            (at, rest) = (at + length, later);
        }
        Ok(())
    }

    /// Writes bytes.
    ///
    /// # Errors
    /// [`Absent`]; nothing was written then.
    pub fn write(&mut self, address: u64, from: &[u8]) -> Result<(), Absent> {
        let range = self.range(address, from.len())?;
        let before = (range.start.next_multiple_of(BLOCK) - range.start).min(from.len());
        let (first, rest) = from.split_at(before);
        self.write_part(range.start, first);
        let (whole, last) = rest.as_chunks();
        let at = range.start + before;
        for (block, bytes) in (at / BLOCK..).zip(whole) {
            self.write_block(block, bytes);
        }
        self.write_part(range.end - last.len(), last);
        Ok(())
    }

    #[inline]
    fn write_block(&mut self, block: usize, from: &[u8; BLOCK]) {
        let (word, bit) = place(block);
        if is_zero(from) {
            self.filled[word] &= !bit;
            return;
        }
        self.filled[word] |= bit;
        self.bytes[block * BLOCK..][..BLOCK].copy_from_slice(from);
    }

    /// Writes bytes that are all in one block.
    #[inline]
    fn write_part(&mut self, at: usize, from: &[u8]) {
        let (word, bit) = place(at / BLOCK);
        if from.iter().all(|byte| *byte == 0) && self.filled.get(word).is_none_or(|bits| bits & bit == 0) {
            return;
        }
        if self.filled[word] & bit == 0 {
            self.bytes[at / BLOCK * BLOCK..][..BLOCK].fill(0);
            self.filled[word] |= bit;
        }
        self.bytes[at..at + from.len()].copy_from_slice(from);
    }

    /// Whether a block's bytes count, and how many blocks from it on are like it, as far as its word goes.
    #[inline]
    fn run(&self, block: usize) -> (bool, usize) {
        let bits = self.filled[block / 64] >> (block % 64);
        let like = if bits & 1 == 0 { bits.trailing_zeros() } else { bits.trailing_ones() };
        (bits & 1 != 0, (like as usize).min(64 - block % 64))
    }

    fn range(&self, address: u64, length: usize) -> Result<Range<usize>, Absent> {
        let end = usize::try_from(address).ok().and_then(|first| first.checked_add(length));
        let end = end.filter(|end| *end <= self.bytes.len()).ok_or(Absent { address, length })?;
        Ok(end - length..end)
    }
}

/// The word and the bit of a block.
#[inline]
fn place(block: usize) -> (usize, u64) {
    (block / 64, 1 << (block % 64))
}

#[inline]
fn is_zero(block: &[u8; BLOCK]) -> bool {
    let words = block.as_chunks().0.iter().map(|word| u64::from_ne_bytes(*word));
    words.fold(0, |any, word| any | word) == 0
}

#[cfg(test)]
mod tests {
    use super::{Absent, HostMemory};
    use alloc::vec;
    use alloc::vec::Vec;
    use proptest::prelude::{any, prop, proptest};

    fn read(memory: &HostMemory, address: u64, length: usize) -> Vec<u8> {
        let mut into = vec![0xaa; length];
        memory.read(address, &mut into).unwrap();
        into
    }

    #[test]
    fn memory_is_zero_and_then_what_was_written() {
        let mut memory = HostMemory::new(4096);
        assert_eq!(read(&memory, 60, 100), [0; 100]);
        memory.write(60, &[1; 10]).unwrap();
        assert_eq!(read(&memory, 58, 14), [0, 0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0]);
    }

    #[test]
    fn zeros_over_something_are_zeros_and_nothing_old_comes_back() {
        let mut memory = HostMemory::new(256);
        memory.write(0, &[7; 256]).unwrap();
        memory.write(64, &[0; 64]).unwrap();
        memory.write(70, &[5]).unwrap();
        assert_eq!(read(&memory, 63, 8), [7, 0, 0, 0, 0, 0, 0, 5]);
        assert_eq!(read(&memory, 71, 58), [&[0; 57][..], &[7]].concat());
    }

    #[test]
    fn beyond_the_end_there_is_nothing() {
        let mut memory = HostMemory::new(128);
        assert_eq!(memory.write(120, &[1; 9]), Err(Absent { address: 120, length: 9 }));
        assert_eq!(memory.read(u64::MAX, &mut [0; 2]), Err(Absent { address: u64::MAX, length: 2 }));
        assert_eq!(read(&memory, 120, 8), [0; 8]);
        assert_eq!(memory.write(128, &[]), Ok(()));
    }

    proptest! {
        #[test]
        fn it_is_no_different_from_bytes_in_a_row(
            writes in prop::collection::vec((0usize..1024, 0usize..300, any::<bool>(), any::<u8>()), 0..40),
        ) {
            let (mut memory, mut plain) = (HostMemory::new(1024), vec![0; 1024]);
            for (at, length, zeros, value) in writes {
                let length = length.min(1024 - at);
                let from = vec![if zeros { 0 } else { value }; length];
                memory.write(at as u64, &from).unwrap();
                plain[at..at + length].copy_from_slice(&from);
            }
            assert_eq!(read(&memory, 0, 1024), plain);
        }
    }
}
