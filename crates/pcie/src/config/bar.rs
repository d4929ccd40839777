//! Base address register (BAR): its type bits and the mask by which software learns its size, up to 2 GiB.

use super::register::ConfigRegister;

/// Address space of a BAR: 32-bit memory, 64-bit memory or I/O ports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BarKind {
    /// Address space of memory below 4 GiB.
    Memory32,
    /// Address space of memory at any address; the BAR uses the next BAR for its upper half.
    Memory64,
    /// Address space of I/O ports.
    Io,
}

/// Base address register of a function: address space and size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bar {
    /// Address space of the BAR.
    pub kind: BarKind,
    /// True if reads of the BAR's memory have no side effects.
    pub prefetchable: bool,
    /// Size of the BAR in bytes: a power of two, at least 16 of memory or 4 of I/O.
    pub size: u32,
}

impl Bar {
    /// Creates a BAR of non-prefetchable memory below 4 GiB.
    #[must_use]
    pub const fn memory32(size: u32) -> Self {
        Self { kind: BarKind::Memory32, prefetchable: false, size }
    }

    /// Creates a BAR of non-prefetchable memory at any address.
    #[must_use]
    pub const fn memory64(size: u32) -> Self {
        Self { kind: BarKind::Memory64, prefetchable: false, size }
    }

    /// Creates a BAR of I/O ports.
    #[must_use]
    pub const fn io(size: u32) -> Self {
        Self { kind: BarKind::Io, prefetchable: false, size }
    }

    /// Returns the read-only low bits that identify the address space.
    #[must_use]
    pub(crate) const fn type_bits(self) -> u32 {
        let kind = match self.kind {
            BarKind::Memory32 => 0,
            BarKind::Memory64 => 4,
            BarKind::Io => 1,
        };
        if self.prefetchable { kind | 8 } else { kind }
    }

    /// Returns the BAR's registers at `offset`: one, or two for 64 bits.
    pub(crate) fn registers(self, offset: u16) -> impl Iterator<Item = ConfigRegister> {
        assert!(self.size.is_power_of_two() && self.size >= 4, "a BAR's size must be a power of two");
        let low = ConfigRegister::dword(offset, self.type_bits()).writable(!(self.size - 1));
        let high = ConfigRegister::dword(offset + 4, 0).writable(u32::MAX);
        [low].into_iter().chain((self.kind == BarKind::Memory64).then_some(high))
    }

    /// Decodes the values read from a BAR (and its neighbour) after software wrote all ones to both. Returns `None` for
    /// an unused BAR, or one of more than 2 GiB.
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
