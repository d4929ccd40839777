//! MSI capability with one message, 64-bit address and per-vector mask (PCIe base specification, 7.7.1).

use super::Capability;
use crate::config::ConfigRegister;
use alloc::vec;

/// Capability id of MSI.
pub const ID: u8 = 0x05;
/// Offset of the MSI control word within its capability.
pub const CONTROL: u16 = 2;
/// Offset of the 64-bit message address.
pub const ADDRESS: u16 = 4;
/// Offset of the MSI message data word.
pub const DATA: u16 = 0xc;
/// Offset of the MSI mask bits of the vectors.
pub const MASK: u16 = 0x10;
/// Offset of the MSI pending bits of the vectors.
pub const PENDING: u16 = 0x14;

/// MSI control bit: MSI enable.
pub const CONTROL_ENABLE: u16 = 1 << 0;
/// MSI control bit: 64-bit addresses.
pub(crate) const CONTROL_64BIT: u16 = 1 << 7;
/// MSI control bit: per-vector masking.
pub(crate) const CONTROL_MASKABLE: u16 = 1 << 8;

/// MSI settings in a function's MSI control word and mask bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct MsiControl {
    /// True if the function signals by MSI messages.
    pub enabled: bool,
    /// True if the function's MSI message is masked.
    pub masked: bool,
}

/// Returns the MSI capability.
#[must_use]
pub fn capability() -> Capability {
    let body = vec![
        ConfigRegister::word(CONTROL, CONTROL_64BIT | CONTROL_MASKABLE).writable(CONTROL_ENABLE.into()),
        ConfigRegister::dword(ADDRESS, 0).writable(!3),
        ConfigRegister::dword(ADDRESS + 4, 0).writable(u32::MAX),
        ConfigRegister::word(DATA, 0).writable(0xffff),
        ConfigRegister::dword(MASK, 0).writable(1),
        ConfigRegister::dword(PENDING, 0),
    ];
    Capability { id: ID, body }
}
