//! IP prefixes: an address and the number of its leading bits that count.

use core::fmt;
use core::net::IpAddr;
use core::str::FromStr;

/// Prefix of IPv4 or IPv6 addresses; a prefix of full length is one address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IpPrefix {
    first: IpAddr,
    length: u8,
}

/// Reason why a text is no IP prefix.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IpPrefixError {
    /// The text before the slash is no IPv4 or IPv6 address.
    Address,
    /// The length after the slash is no number up to 32 (IPv4) or 128 (IPv6).
    Length,
    /// The address has bits behind the prefix.
    BitsBehind,
}

impl fmt::Display for IpPrefixError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Address => "is neither an IPv4 nor an IPv6 address",
            Self::Length => "has a prefix length that is not 0 to 32 (IPv4) or 0 to 128 (IPv6)",
            Self::BitsBehind => "has bits set behind its prefix length; clear them, or leave the length out",
        })
    }
}

impl IpPrefix {
    /// Returns `true` if an IPv4 address has this prefix.
    #[must_use]
    pub fn has_v4(self, address: [u8; 4]) -> bool {
        let shift = 32 - u32::from(self.length.min(32));
        let IpAddr::V4(first) = self.first else { return false };
        let differs = first.to_bits() ^ u32::from_be_bytes(address);
        differs.checked_shr(shift).unwrap_or(0) == 0
    }

    /// Returns `true` if an IPv6 address has this prefix.
    #[must_use]
    pub fn has_v6(self, address: [u8; 16]) -> bool {
        let shift = 128 - u32::from(self.length.min(128));
        let IpAddr::V6(first) = self.first else { return false };
        let differs = first.to_bits() ^ u128::from_be_bytes(address);
        differs.checked_shr(shift).unwrap_or(0) == 0
    }
}

impl FromStr for IpPrefix {
    type Err = IpPrefixError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (address, length) =
            text.split_once('/').map_or((text, None), |(address, length)| (address, Some(length)));
        let first: IpAddr = address.parse().map_err(|_| IpPrefixError::Address)?;
        let most = if first.is_ipv4() { 32 } else { 128 };
        let digits = length.filter(|text| !text.starts_with('+'));
        let length = match length {
            None => most,
            Some(_) => digits
                .and_then(|text| text.parse().ok())
                .filter(|n| *n <= most)
                .ok_or(IpPrefixError::Length)?,
        };
        let behind = match first {
            IpAddr::V4(first) => first.to_bits().checked_shl(length.into()).unwrap_or(0) != 0,
            IpAddr::V6(first) => first.to_bits().checked_shl(length.into()).unwrap_or(0) != 0,
        };
        if behind { Err(IpPrefixError::BitsBehind) } else { Ok(Self { first, length }) }
    }
}

impl fmt::Display for IpPrefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let whole = if self.first.is_ipv4() { 32 } else { 128 };
        match self.length {
            length if length == whole => self.first.fmt(f),
            length => write!(f, "{}/{length}", self.first),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{IpPrefix, IpPrefixError};
    extern crate std;
    use std::string::ToString;

    #[test]
    fn ip_prefix_has_the_addresses_that_begin_with_it() {
        let of = |text: &str| text.parse::<IpPrefix>().unwrap();
        assert!(of("10.0.0.0/24").has_v4([10, 0, 0, 255]) && !of("10.0.0.0/24").has_v4([10, 0, 1, 0]));
        assert!(of("10.0.0.7").has_v4([10, 0, 0, 7]) && !of("10.0.0.7").has_v4([10, 0, 0, 6]));
        assert!(of("0.0.0.0/0").has_v4([9; 4]) && !of("0.0.0.0/0").has_v6([0; 16]));
        assert!(of("::/0").has_v6([9; 16]) && !of("::/0").has_v4([0; 4]));
        let mut address = [0; 16];
        (address[0], address[1], address[15]) = (0xfd, 1, 9);
        assert!(of("fd01::/64").has_v6(address) && of("fd01::9").has_v6(address));
        assert!(!of("fd01::8").has_v6(address) && !of("fd02::/16").has_v6(address));
    }

    #[test]
    fn ip_prefix_prints_as_it_parses_and_errors_are_told_apart() {
        for text in ["10.0.0.7", "10.0.0.0/24", "0.0.0.0/0", "fd01::9", "fd01::/64", "::/0"] {
            assert_eq!(text.parse::<IpPrefix>().unwrap().to_string(), text);
        }
        for (text, error) in [
            ("", IpPrefixError::Address),
            ("10.0.0", IpPrefixError::Address),
            ("10.0.0.0/33", IpPrefixError::Length),
            ("10.0.0.0/+8", IpPrefixError::Length),
            ("fd01::/129", IpPrefixError::Length),
            ("10.0.0.1/24", IpPrefixError::BitsBehind),
            ("fd01::1/64", IpPrefixError::BitsBehind),
        ] {
            assert_eq!(text.parse::<IpPrefix>(), Err(error), "{text}");
        }
    }
}
