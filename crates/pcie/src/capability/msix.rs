//! MSI-X capability in configuration space: number of vectors, location of the table, enable and function mask
//! (PCIe base specification, 7.7.2). The table itself is [`crate::msix::MsiXTable`].

use super::Capability;
use crate::config::ConfigRegister;
use alloc::vec;

/// Capability id of MSI-X.
pub const ID: u8 = 0x11;
/// Offset of the MSI-X control word within its capability.
pub const CONTROL: u16 = 2;
/// Offset of the MSI-X table's location: BAR number in bits 2:0, offset above.
pub const TABLE: u16 = 4;
/// Offset of the pending bits' location: BAR number in bits 2:0, offset above.
pub const PBA: u16 = 8;

/// MSI-X control field: number of vectors minus one.
pub const CONTROL_SIZE: u16 = 0x7ff;
/// MSI-X control bit: function mask, which masks all vectors.
pub(crate) const CONTROL_MASK: u16 = 1 << 14;
/// MSI-X control bit: MSI-X enable.
pub const CONTROL_ENABLE: u16 = 1 << 15;

/// MSI-X settings in a function's MSI-X control word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct MsiXControl {
    /// True if the function signals by MSI-X messages.
    pub enabled: bool,
    /// True if every vector of the function is masked.
    pub masked: bool,
}

impl MsiXControl {
    /// Extracts the MSI-X settings from the control word.
    #[must_use]
    pub(crate) const fn from_word(control: u16) -> Self {
        Self { enabled: control & CONTROL_ENABLE != 0, masked: control & CONTROL_MASK != 0 }
    }
}

/// Size of the MSI-X table, and the location of the table and of the pending bits.
#[derive(Debug, Clone, Copy)]
pub struct MsiXCapability {
    /// Number of MSI-X vectors, 1 to 2048.
    pub vectors: u16,
    /// Number of the BAR with the MSI-X table and the pending bits.
    pub bar: u8,
    /// Offset of the MSI-X table in its BAR, a multiple of 8.
    pub table: u32,
    /// Offset of the MSI-X pending bits in their BAR, a multiple of 8.
    pub pba: u32,
}

impl MsiXCapability {
    /// Returns the MSI-X capability.
    #[must_use]
    pub fn capability(self) -> Capability {
        let size = self.vectors.wrapping_sub(1) & CONTROL_SIZE;
        let bar = u32::from(self.bar & 7);
        let body = vec![
            ConfigRegister::word(CONTROL, size).writable((CONTROL_ENABLE | CONTROL_MASK).into()),
            ConfigRegister::dword(TABLE, self.table & !7 | bar),
            ConfigRegister::dword(PBA, self.pba & !7 | bar),
        ];
        Capability { id: ID, body }
    }
}
