//! Bit fields of what the card has beside the MAC: NVM and PHY.

/// EECD.
pub mod eecd {
    /// Software asks for the NVM.
    pub const REQ: u32 = 1 << 6;
    /// Software has the NVM.
    pub const GNT: u32 = 1 << 7;
}

/// EERD and EEWR.
pub mod eerw {
    /// Read or write the word now.
    pub const START: u32 = 1 << 0;
    /// The word was read or written.
    pub const DONE: u32 = 1 << 1;
    /// Position of the word's number, 14 bits.
    pub const ADDRESS_SHIFT: u32 = 2;
    /// Mask of the word's number.
    pub const ADDRESS_MASK: u32 = 0xfffc;
    /// Position of the word.
    pub const DATA_SHIFT: u32 = 16;
}

/// MDIC.
pub mod mdic {
    /// The word.
    pub const DATA: u32 = 0xffff;
    /// Position of the register's number, 5 bits.
    pub const REGISTER_SHIFT: u32 = 16;
    /// Position of the PHY's address, 5 bits.
    pub const PHY_SHIFT: u32 = 21;
    /// What to do.
    pub const OPERATION: u32 = 3 << 26;
    /// Write the word.
    pub const WRITE: u32 = 1 << 26;
    /// Read the word.
    pub const READ: u32 = 2 << 26;
    /// Done.
    pub const READY: u32 = 1 << 28;
    /// Interrupt when done.
    pub const INTERRUPT: u32 = 1 << 29;
    /// No PHY answered.
    pub const ERROR: u32 = 1 << 30;
}
