//! Alternative routing-id interpretation capability (PCIe base specification, 7.8.8), without function groups.

use super::ExtendedCapability;
use crate::config::ConfigRegister;
use alloc::vec;

/// Extended capability id of ARI.
pub const ID: u16 = 0x000e;
/// Offset of the ARI capability word: next function in bits 15:8.
pub(crate) const CAPABILITY: u16 = 4;
/// Offset of the ARI control word within its capability.
pub const CONTROL: u16 = 6;

/// Returns the ARI capability of a function; `next_function` is 0 on the last function.
#[must_use]
pub fn capability(next_function: u8) -> ExtendedCapability {
    let body = vec![
        ConfigRegister::word(CAPABILITY, u16::from(next_function) << 8),
        ConfigRegister::word(CONTROL, 0),
    ];
    ExtendedCapability { id: ID, version: 1, body }
}
