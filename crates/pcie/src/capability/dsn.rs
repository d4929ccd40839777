//! Device serial number capability (PCIe base specification, 7.9.3), derived from a MAC address.

use super::ExtendedCapability;
use crate::config::ConfigRegister;
use alloc::vec;

/// Extended capability id of the device serial number.
pub const ID: u16 = 0x0003;
/// Offset of the EUI-64, least significant byte first.
pub const SERIAL: u16 = 4;

/// Returns the serial number capability of a card whose first port has this MAC address: company id, ff ff, the rest.
#[must_use]
pub fn from_mac(mac: [u8; 6]) -> ExtendedCapability {
    let [a, b, c, d, e, f] = mac;
    let body = vec![
        ConfigRegister::dword(SERIAL, u32::from_le_bytes([f, e, d, 0xff])),
        ConfigRegister::dword(SERIAL + 4, u32::from_le_bytes([0xff, c, b, a])),
    ];
    ExtendedCapability { id: ID, version: 1, body }
}
