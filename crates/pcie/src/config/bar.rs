//! A base address register: its type bits and the mask by which software learns its size. Left out: what is
//! behind it, and BARs of more than 2 GiB.

use super::register::Register;

/// What a BAR decodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BarKind {
    /// Memory anywhere below 4 GiB.
    Memory32,
    /// Memory anywhere; takes the next BAR for its upper half.
    Memory64,
    /// I/O ports.
    Io,
}

/// A base address register.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bar {
    /// What it decodes.
    pub kind: BarKind,
    /// Memory whose reads have no side effects.
    pub prefetchable: bool,
    /// Bytes: a power of two, at least 16 of memory or 4 of I/O.
    pub size: u32,
}

impl Bar {
    /// Non-prefetchable memory below 4 GiB.
    #[must_use]
    pub const fn memory32(size: u32) -> Self {
        Self { kind: BarKind::Memory32, prefetchable: false, size }
    }

    /// Non-prefetchable memory anywhere.
    #[must_use]
    pub const fn memory64(size: u32) -> Self {
        Self { kind: BarKind::Memory64, prefetchable: false, size }
    }

    /// I/O ports.
    #[must_use]
    pub const fn io(size: u32) -> Self {
        Self { kind: BarKind::Io, prefetchable: false, size }
    }

    /// The read-only low bits that tell software what it decodes.
    #[must_use]
    pub const fn type_bits(self) -> u32 {
        let kind = match self.kind {
            BarKind::Memory32 => 0,
            BarKind::Memory64 => 4,
            BarKind::Io => 1,
        };
        if self.prefetchable { kind | 8 } else { kind }
    }

    /// The registers at `offset`: one, or two for 64 bits.
    pub(crate) fn registers(self, offset: u16) -> impl Iterator<Item = Register> {
        assert!(self.size.is_power_of_two() && self.size >= 4, "a BAR's size is a power of two");
        let low = Register::dword(offset, self.type_bits()).writable(!(self.size - 1));
        let high = Register::dword(offset + 4, 0).writable(u32::MAX);
        [low].into_iter().chain((self.kind == BarKind::Memory64).then_some(high))
    }

    /// The BAR that answered `low` (and `high`, its neighbour) after all ones were written to both. None if
    /// it decodes nothing, or more than 2 GiB.
    #[must_use]
    pub fn from_sizing(low: u32, high: u32) -> Option<Self> {
        let kind = match low & 7 {
            0 | 2 => BarKind::Memory32,
            4 => BarKind::Memory64,
            bits if bits & 1 == 1 => BarKind::Io,
            _ => return None,
        };
        let mask = if kind == BarKind::Io { low & !3 } else { low & !0xf };
        if mask == 0 || (kind == BarKind::Memory64 && high != u32::MAX) {
            return None;
        }
        let size = 1 << mask.trailing_zeros();
        Some(Self { kind, prefetchable: kind != BarKind::Io && low & 8 != 0, size })
    }
}
