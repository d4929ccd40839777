//! Device serial number (PCIe base specification, 7.9.3). Left out: numbers that are not made from a MAC
//! address.

use super::ExtendedCapability;
use crate::config::Register;
use alloc::vec;

/// Extended capability id.
pub const ID: u16 = 0x0003;
/// The EUI-64, least significant byte first.
pub const SERIAL: u16 = 4;

/// The capability of a card whose first port has this MAC address: company id, ff ff, the rest.
#[must_use]
pub fn from_mac(mac: [u8; 6]) -> ExtendedCapability {
    let [a, b, c, d, e, f] = mac;
    let body = vec![
        Register::dword(SERIAL, u32::from_le_bytes([f, e, d, 0xff])),
        Register::dword(SERIAL + 4, u32::from_le_bytes([0xff, c, b, a])),
    ];
    ExtendedCapability { id: ID, version: 1, body }
}
