//! Gives out pieces of a range: first fit, any power-of-two alignment, neighbours merged when given back.
//!
//! For rings and buffer pools, made once and kept: simplicity over speed. Left out: the bytes themselves.

/// A piece that was given out. Not `Clone`: what has been given back cannot be given back again.
#[derive(Debug, PartialEq, Eq)]
pub struct Piece {
    offset: u64,
    len: u64,
}

impl Piece {
    /// Bytes from the start of the range to the first byte of the piece.
    #[must_use]
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// Bytes in the piece.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Always false: no empty piece is given out.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
}

/// The free gaps of a range, in order, no two touching.
#[derive(Debug)]
pub struct PieceAllocator {
    gaps: Vec<Piece>,
}

impl PieceAllocator {
    /// A range of `len` bytes, all free.
    #[must_use]
    pub fn new(len: u64) -> Self {
        let gaps = if len == 0 { Vec::new() } else { vec![Piece { offset: 0, len }] };
        Self { gaps }
    }

    /// Bytes not given out, in whatever number of gaps.
    #[must_use]
    pub fn free_bytes(&self) -> u64 {
        self.gaps.iter().map(|gap| gap.len).sum()
    }

    /// Takes `len` bytes whose offset is a multiple of `align`, a power of two. `None` if no gap is large
    /// enough, `len` is zero, or `align` is not a power of two.
    pub fn allocate(&mut self, len: u64, align: u64) -> Option<Piece> {
        if len == 0 || !align.is_power_of_two() {
            return None;
        }
        let (index, offset) = self.gaps.iter().enumerate().find_map(|(index, gap)| {
            let offset = gap.offset.checked_next_multiple_of(align)?;
            let end = offset.checked_add(len)?;
            (end <= gap.offset + gap.len).then_some((index, offset))
        })?;
        let gap = self.gaps.remove(index);
        let before = Piece { offset: gap.offset, len: offset - gap.offset };
        let after = Piece { offset: offset + len, len: gap.offset + gap.len - (offset + len) };
        for rest in [after, before] {
            if rest.len > 0 {
                self.gaps.insert(index, rest);
            }
        }
        Some(Piece { offset, len })
    }

    /// Takes a piece of this allocator back.
    pub fn free(&mut self, piece: Piece) {
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
