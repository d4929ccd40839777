//! MSI-X in configuration space: how many vectors, where the table is, enable and function mask (PCIe base
//! specification, 7.7.2). Left out: the table itself, [`crate::msix::Table`].

use super::Capability;
use crate::config::Register;
use alloc::vec;

/// Capability id.
pub const ID: u8 = 0x11;
/// Control, 16 bits.
pub const CONTROL: u16 = 2;
/// Table: BAR number in bits 2:0, offset above.
pub const TABLE: u16 = 4;
/// Pending bits: BAR number in bits 2:0, offset above.
pub const PBA: u16 = 8;

/// Control: vectors minus one.
pub const CONTROL_SIZE: u16 = 0x7ff;
/// Control: all vectors are masked, whatever their own mask bit says.
pub const CONTROL_MASK: u16 = 1 << 14;
/// Control: the function signals by MSI-X.
pub const CONTROL_ENABLE: u16 = 1 << 15;

/// What the control word tells the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Control {
    /// The function signals by MSI-X.
    pub enabled: bool,
    /// Every vector is masked.
    pub masked: bool,
}

impl Control {
    /// The control word's two bits.
    #[must_use]
    pub const fn from_word(control: u16) -> Self {
        Self { enabled: control & CONTROL_ENABLE != 0, masked: control & CONTROL_MASK != 0 }
    }
}

/// Where table and pending bits are.
#[derive(Debug, Clone, Copy)]
pub struct MsiX {
    /// Vectors, 1 to 2048.
    pub vectors: u16,
    /// The BAR both are in.
    pub bar: u8,
    /// Offset of the table in that BAR, a multiple of 8.
    pub table: u32,
    /// Offset of the pending bits in that BAR, a multiple of 8.
    pub pba: u32,
}

impl MsiX {
    /// The capability.
    #[must_use]
    pub fn capability(self) -> Capability {
        let size = self.vectors.wrapping_sub(1) & CONTROL_SIZE;
        let bar = u32::from(self.bar & 7);
        let body = vec![
            Register::word(CONTROL, size).writable((CONTROL_ENABLE | CONTROL_MASK).into()),
            Register::dword(TABLE, self.table & !7 | bar),
            Register::dword(PBA, self.pba & !7 | bar),
        ];
        Capability { id: ID, body }
    }
}
