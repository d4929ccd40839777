//! Addresses of PCI functions: domain, bus, device, function, in Linux's notation.

use std::fmt;
use std::str::FromStr;

/// Address of a PCI function, such as `0000:01:10.0` (domain, bus, device, function).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PciAddress {
    domain: u32,
    bus: u8,
    device: u8,
    function: u8,
}

/// Error for a text that is no PCI address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("invalid PCI address (format: 0000:01:10.0)")]
pub struct InvalidPciAddress;

impl FromStr for PciAddress {
    type Err = InvalidPciAddress;

    /// Parses a PCI address. Without a domain, the domain is 0.
    fn from_str(text: &str) -> Result<Self, InvalidPciAddress> {
        let (rest, function) = text.rsplit_once('.').ok_or(InvalidPciAddress)?;
        let (rest, device) = rest.rsplit_once(':').ok_or(InvalidPciAddress)?;
        let (domain, bus) = rest.rsplit_once(':').unwrap_or(("0", rest));
        Ok(Self {
            domain: hexadecimal(domain, 0xffff_ffff)?,
            bus: hexadecimal(bus, 0xff)? as u8,
            device: hexadecimal(device, 0x1f)? as u8,
            function: hexadecimal(function, 7)? as u8,
        })
    }
}

fn hexadecimal(text: &str, most: u32) -> Result<u32, InvalidPciAddress> {
    let digits = text.bytes().all(|byte| byte.is_ascii_hexdigit());
    let value = u32::from_str_radix(text, 16).ok().filter(|value| digits && *value <= most);
    value.ok_or(InvalidPciAddress)
}

impl fmt::Display for PciAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:04x}:{:02x}:{:02x}.{:x}", self.domain, self.bus, self.device, self.function)
    }
}
