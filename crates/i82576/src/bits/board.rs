//! Bit fields of NVM and PHY access.

/// Bits of the NVM's access control (EECD).
pub mod eecd {
    /// Software requests the NVM.
    pub const REQ: u32 = 1 << 6;
    /// Software has the NVM.
    pub const GNT: u32 = 1 << 7;
}

/// Bits of the NVM's read and write registers (EERD and EEWR).
pub mod eerw {
    /// Start reading or writing the word.
    pub const START: u32 = 1 << 0;
    /// The word was read or written.
    pub const DONE: u32 = 1 << 1;
    /// Position of the word address, 14 bits.
    pub const ADDRESS_SHIFT: u32 = 2;
    /// Mask of the word address.
    pub const ADDRESS_MASK: u32 = 0xfffc;
    /// Position of the data word.
    pub const DATA_SHIFT: u32 = 16;
}

/// Bits of the access to PHY registers (MDIC).
pub mod mdic {
    /// Data word.
    pub const DATA: u32 = 0xffff;
    /// Position of the register address, 5 bits.
    pub const REGISTER_SHIFT: u32 = 16;
    /// Position of the PHY address, 5 bits.
    pub const PHY_SHIFT: u32 = 21;
    /// Mask of the operation.
    pub const OPERATION: u32 = 3 << 26;
    /// Operation: write the word.
    pub const WRITE: u32 = 1 << 26;
    /// Operation: read the word.
    pub const READ: u32 = 2 << 26;
    /// The access to the PHY is complete.
    pub const READY: u32 = 1 << 28;
    /// Interrupt on completion.
    pub const INTERRUPT: u32 = 1 << 29;
    /// No PHY responded.
    pub const ERROR: u32 = 1 << 30;
}
