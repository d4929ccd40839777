//! Allocates blocks of a range of bytes: first fit, any power-of-two alignment, free neighbours merged.
//!
//! Meant for rings and buffer pools, which are allocated once: simple rather than fast.

/// Allocated block of a range of shared memory. Not `Clone`, which prevents a second free.
#[derive(Debug, PartialEq, Eq)]
pub struct SharedMemoryBlock {
    offset: u64,
    len: u64,
}

impl SharedMemoryBlock {
    /// Returns the offset of the allocated block's first byte in the range of shared memory.
    #[must_use]
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// Returns the length of the allocated block in bytes.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Returns false: no allocated block is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
}

/// Allocator of a range of shared memory, with the free gaps in order of address, no two adjacent.
#[derive(Debug)]
pub struct SharedMemoryAllocator {
    gaps: Vec<SharedMemoryBlock>,
}

impl SharedMemoryAllocator {
    /// Creates an allocator for `len` bytes of shared memory, all free.
    #[must_use]
    pub fn new(len: u64) -> Self {
        let gaps = if len == 0 { Vec::new() } else { vec![SharedMemoryBlock { offset: 0, len }] };
        Self { gaps }
    }

    /// Returns the number of free bytes in all gaps of the shared memory.
    #[must_use]
    pub fn free_bytes(&self) -> u64 {
        self.gaps.iter().map(|gap| gap.len).sum()
    }

    /// Allocates `len` bytes of shared memory at a multiple of `align`, a power of two. Returns `None` if no gap is
    /// large enough, `len` is zero, or `align` is not a power of two.
    pub fn allocate(&mut self, len: u64, align: u64) -> Option<SharedMemoryBlock> {
        if len == 0 || !align.is_power_of_two() {
            return None;
        }
        let (index, offset) = self.gaps.iter().enumerate().find_map(|(index, gap)| {
            let offset = gap.offset.checked_next_multiple_of(align)?;
            let end = offset.checked_add(len)?;
            (end <= gap.offset + gap.len).then_some((index, offset))
        })?;
        let gap = self.gaps.remove(index);
        let before = SharedMemoryBlock { offset: gap.offset, len: offset - gap.offset };
        let after = SharedMemoryBlock { offset: offset + len, len: gap.offset + gap.len - (offset + len) };
        for rest in [after, before] {
            if rest.len > 0 {
                self.gaps.insert(index, rest);
            }
        }
        Some(SharedMemoryBlock { offset, len })
    }

    /// Frees a block of shared memory that this allocator has allocated.
    pub fn free(&mut self, piece: SharedMemoryBlock) {
        let index = self.gaps.partition_point(|gap| gap.offset < piece.offset);
        self.gaps.insert(index, piece);
        self.merge_with_next(index);
        if let Some(previous) = index.checked_sub(1) {
            self.merge_with_next(previous);
        }
    }

    fn merge_with_next(&mut self, index: usize) {
        let end = self.gaps[index].offset + self.gaps[index].len;
        if self.gaps.get(index + 1).is_some_and(|next| next.offset == end) {
            let next = self.gaps.remove(index + 1);
            self.gaps[index].len += next.len;
        }
    }
}
