//! One register of configuration space as data: reset value and what a write may do to each bit. Left out:
//! side effects; they belong to whoever sees the write.

/// One, two or four bytes of configuration space. Bits that no mask names are read-only.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Register {
    pub(super) offset: u16,
    pub(super) size: u8,
    pub(super) reset: u32,
    pub(super) writable: u32,
    pub(super) clearable: u32,
    pub(super) sticky: u32,
}

impl Register {
    /// A read-only byte.
    #[must_use]
    pub const fn byte(offset: u16, reset: u8) -> Self {
        Self::new(offset, 1, reset as u32)
    }

    /// A read-only 16-bit word.
    #[must_use]
    pub const fn word(offset: u16, reset: u16) -> Self {
        Self::new(offset, 2, reset as u32)
    }

    /// A read-only dword.
    #[must_use]
    pub const fn dword(offset: u16, reset: u32) -> Self {
        Self::new(offset, 4, reset)
    }

    const fn new(offset: u16, size: u8, reset: u32) -> Self {
        Self { offset, size, reset, writable: 0, clearable: 0, sticky: 0 }
    }

    /// The bits that software writes and reads back.
    #[must_use]
    pub const fn writable(mut self, mask: u32) -> Self {
        self.writable = mask;
        self
    }

    /// The bits that the device sets and software clears by writing one.
    #[must_use]
    pub const fn write_1_to_clear(mut self, mask: u32) -> Self {
        self.clearable = mask;
        self
    }

    /// The bits that a function level reset leaves alone (PCIe base specification, 6.6.2).
    #[must_use]
    pub const fn sticky(mut self, mask: u32) -> Self {
        self.sticky = mask;
        self
    }

    /// The same register `base` bytes further up: a capability's registers are stated relative to it.
    #[must_use]
    pub const fn at(mut self, base: u16) -> Self {
        self.offset += base;
        self
    }
}
