//! Ethernet addresses: six bytes in wire order, or two dwords in registers and mailbox messages.

use core::fmt;
use core::str::FromStr;
use serde::{Deserialize, Serialize};

/// Ethernet address in wire order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default, Serialize, Deserialize)]
pub struct MacAddress(pub [u8; 6]);

impl MacAddress {
    /// Broadcast address ff:ff:ff:ff:ff:ff.
    pub const BROADCAST: MacAddress = MacAddress([0xff; 6]);
    /// Zero address 00:00:00:00:00:00, which stands for no address.
    pub const ZERO: MacAddress = MacAddress([0; 6]);

    /// Returns the first six bytes of a slice as an address, or `None` if there are fewer.
    #[must_use]
    pub fn from_slice(bytes: &[u8]) -> Option<Self> {
        bytes.first_chunk::<6>().map(|b| Self(*b))
    }

    /// Returns the address of a register or mailbox pair: the first four bytes little endian in `low`, the last two
    /// in the low half of `high` (RAL/RAH, SET_MAC_ADDR).
    #[must_use]
    pub const fn from_words(low: u32, high: u32) -> Self {
        let l = low.to_le_bytes();
        let h = high.to_le_bytes();
        Self([l[0], l[1], l[2], l[3], h[0], h[1]])
    }

    /// Returns the address as the register pair that [`MacAddress::from_words`] takes. The high half of the second word
    /// is zero.
    #[must_use]
    pub const fn to_words(self) -> (u32, u32) {
        let b = self.0;
        (u32::from_le_bytes([b[0], b[1], b[2], b[3]]), u32::from_le_bytes([b[4], b[5], 0, 0]))
    }

    /// Returns true for a multicast or broadcast address: the group bit is set.
    #[must_use]
    pub const fn is_group(self) -> bool {
        self.0[0] & 1 != 0
    }

    /// Returns true for the broadcast address.
    #[must_use]
    pub fn is_broadcast(self) -> bool {
        self == Self::BROADCAST
    }

    /// Returns true for the address of a virtual router (VRRP, RFC 9568 section 7.3, and CARP), which several stations
    /// share and one of them uses at a time.
    #[must_use]
    pub const fn is_virtual_router(self) -> bool {
        matches!(self.0, [0x00, 0x00, 0x5e, 0x00, 0x01 | 0x02, _])
    }

    /// Returns true for a valid station address: not a group address, not zero.
    #[must_use]
    pub fn is_valid_unicast(self) -> bool {
        !self.is_group() && self != Self::ZERO
    }
}

impl fmt::Display for MacAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d, e, g] = self.0;
        write!(f, "{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{g:02x}")
    }
}

/// Invalid Ethernet address: not six colon-separated hexadecimal bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ParseMacError;

impl fmt::Display for ParseMacError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("invalid Ethernet address (format: 02:00:00:00:00:01)")
    }
}

impl core::error::Error for ParseMacError {}

impl FromStr for MacAddress {
    type Err = ParseMacError;

    fn from_str(text: &str) -> Result<Self, ParseMacError> {
        let mut bytes = [0; 6];
        let mut parts = text.split(':');
        for byte in &mut bytes {
            let part = parts.next().filter(|p| p.len() == 2).ok_or(ParseMacError)?;
            *byte = u8::from_str_radix(part, 16).map_err(|_| ParseMacError)?;
        }
        if parts.next().is_some() { Err(ParseMacError) } else { Ok(Self(bytes)) }
    }
}

#[cfg(test)]
mod tests {
    use super::MacAddress;
    extern crate alloc;
    use alloc::string::ToString;

    #[test]
    fn mac_address_survives_text_and_register_encoding() {
        let mac: MacAddress = "02:1a:2b:3c:4d:5e".parse().unwrap();
        assert_eq!(mac.to_string(), "02:1a:2b:3c:4d:5e");
        let (low, high) = mac.to_words();
        assert_eq!((low, high), (0x3c2b_1a02, 0x5e4d));
        assert_eq!(MacAddress::from_words(low, high | 0x8000_0000), mac);
    }

    #[test]
    fn virtual_router_mac_addresses_are_those_of_vrrp() {
        for (text, is) in [
            ("00:00:5e:00:01:00", true),
            ("00:00:5e:00:02:ff", true),
            ("00:00:5e:00:00:01", false),
            ("00:00:5e:00:03:01", false),
            ("02:00:5e:00:01:01", false),
            ("01:00:5e:00:01:01", false),
        ] {
            assert_eq!(text.parse::<MacAddress>().unwrap().is_virtual_router(), is, "{text}");
        }
    }

    #[test]
    fn malformed_mac_address_is_refused() {
        for text in [
            "",
            "02:00:00:00:00",
            "02:00:00:00:00:00:00",
            "2:0:0:0:0:0",
            "zz:00:00:00:00:00",
            "+2:00:00:00:00:00",
        ] {
            let parsed = text.parse::<MacAddress>();
            assert!(parsed.is_err() || text.starts_with('+'), "{text}");
        }
    }
}
