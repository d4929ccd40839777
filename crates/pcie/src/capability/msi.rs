//! MSI: one message, 64-bit address, per-vector mask (PCIe base specification, 7.7.1). Left out: multiple
//! messages, and the messages themselves.

use super::Capability;
use crate::config::Register;
use alloc::vec;

/// Capability id.
pub const ID: u8 = 0x05;
/// Control, 16 bits.
pub const CONTROL: u16 = 2;
/// Message address, 64 bits.
pub const ADDRESS: u16 = 4;
/// Message data, 16 bits.
pub const DATA: u16 = 0xc;
/// Mask bits.
pub const MASK: u16 = 0x10;
/// Pending bits.
pub const PENDING: u16 = 0x14;

/// Control: the function signals by MSI.
pub const CONTROL_ENABLE: u16 = 1 << 0;
/// Control: 64-bit addresses.
pub const CONTROL_64BIT: u16 = 1 << 7;
/// Control: per-vector masking.
pub const CONTROL_MASKABLE: u16 = 1 << 8;

/// What the registers tell the function.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Control {
    /// The function signals by MSI.
    pub enabled: bool,
    /// Its message is held back.
    pub masked: bool,
}

/// The capability.
#[must_use]
pub fn capability() -> Capability {
    let body = vec![
        Register::word(CONTROL, CONTROL_64BIT | CONTROL_MASKABLE).writable(CONTROL_ENABLE.into()),
        Register::dword(ADDRESS, 0).writable(!3),
        Register::dword(ADDRESS + 4, 0).writable(u32::MAX),
        Register::word(DATA, 0).writable(0xffff),
        Register::dword(MASK, 0).writable(1),
        Register::dword(PENDING, 0),
    ];
    Capability { id: ID, body }
}
