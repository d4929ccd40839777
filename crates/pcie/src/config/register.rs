//! Register of configuration space as data: reset value and the effect of writes on each bit. Side effects belong
//! to the device.

/// Register of configuration space, of one, two or four bytes. Bits in no mask are read-only.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConfigRegister {
    pub(super) offset: u16,
    pub(super) size: u8,
    pub(super) reset: u32,
    pub(super) writable: u32,
    pub(super) clearable: u32,
    pub(super) sticky: u32,
}

impl ConfigRegister {
    /// Creates a read-only configuration byte.
    #[must_use]
    pub const fn byte(offset: u16, reset: u8) -> Self {
        Self::new(offset, 1, reset as u32)
    }

    /// Creates a read-only 16-bit configuration word.
    #[must_use]
    pub const fn word(offset: u16, reset: u16) -> Self {
        Self::new(offset, 2, reset as u32)
    }

    /// Creates a read-only configuration dword.
    #[must_use]
    pub const fn dword(offset: u16, reset: u32) -> Self {
        Self::new(offset, 4, reset)
    }

    const fn new(offset: u16, size: u8, reset: u32) -> Self {
        Self { offset, size, reset, writable: 0, clearable: 0, sticky: 0 }
    }

    /// Sets the mask of the register's writable bits.
    #[must_use]
    pub const fn writable(mut self, mask: u32) -> Self {
        self.writable = mask;
        self
    }

    /// Sets the mask of bits that the device sets and software clears by writing one.
    #[must_use]
    pub(crate) const fn write_1_to_clear(mut self, mask: u32) -> Self {
        self.clearable = mask;
        self
    }

    /// Sets the mask of bits that a function level reset keeps (PCIe base specification, 6.6.2).
    #[must_use]
    pub const fn sticky(mut self, mask: u32) -> Self {
        self.sticky = mask;
        self
    }

    /// Moves the register `base` bytes up in the configuration space: a capability's registers are relative to the
    /// capability's offset.
    #[must_use]
    pub const fn at(mut self, base: u16) -> Self {
        self.offset += base;
        self
    }
}
