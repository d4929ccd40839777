//! Bit fields of NVM and PHY access.

/// Bits of the NVM's access control (EECD).
pub mod eecd {
    /// EECD: software requests access to the NVM.
    pub const REQ: u32 = 1 << 6;
    /// EECD: software has access to the NVM.
    pub const GNT: u32 = 1 << 7;
}

/// Bits of the NVM's read and write registers (EERD and EEWR).
pub mod eerw {
    /// EERD, EEWR: start reading or writing the NVM word.
    pub const START: u32 = 1 << 0;
    /// EERD, EEWR: the NVM word was read or written.
    pub const DONE: u32 = 1 << 1;
    /// EERD, EEWR: position of the NVM word's address, 14 bits.
    pub const ADDRESS_SHIFT: u32 = 2;
    /// EERD, EEWR: mask of the NVM word's address.
    pub const ADDRESS_MASK: u32 = 0xfffc;
    /// EERD, EEWR: position of the NVM word's data.
    pub const DATA_SHIFT: u32 = 16;
}

/// Bits of the access to PHY registers (MDIC).
pub mod mdic {
    /// MDIC: mask of the PHY register's contents.
    pub const DATA: u32 = 0xffff;
    /// MDIC: position of the PHY register's address, 5 bits.
    pub const REGISTER_SHIFT: u32 = 16;
    /// MDIC: position of the PHY address, 5 bits.
    pub const PHY_SHIFT: u32 = 21;
    /// MDIC: mask of the PHY operation.
    pub const OPERATION: u32 = 3 << 26;
    /// MDIC operation: write the PHY register.
    pub const WRITE: u32 = 1 << 26;
    /// MDIC operation: read the PHY register.
    pub const READ: u32 = 2 << 26;
    /// MDIC: the access to the PHY is complete.
    pub const READY: u32 = 1 << 28;
    /// MDIC: interrupt when the PHY access is complete.
    pub const INTERRUPT: u32 = 1 << 29;
    /// MDIC: no PHY responded to the access.
    pub const ERROR: u32 = 1 << 30;
}
