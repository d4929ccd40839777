//! Compiles the primitives `host` and `net`: comparisons of addresses of IPv4, IPv6, ARP, RARP, DECnet and Ethernet.

use crate::error::{FilterError, refuse};
use crate::layers::{LayerOffsets, ethernet};
use crate::node::{ComputedNumber, FieldSize, FilterNode, FrameOffset};
use crate::qualifiers::{DirectionQualifier, PrimitiveQualifiers, ProtocolQualifier};
use core::net::Ipv6Addr;

/// An IPv4 address, and the mask of the bits to compare.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct MaskedIpv4Address {
    pub(crate) address: u32,
    pub(crate) mask: u32,
}

impl MaskedIpv4Address {
    /// Parses an IPv4 address of one to four numbers; a test does not compare missing numbers.
    pub(crate) fn parse(text: &str) -> Result<Self, FilterError> {
        let mut address = Self { address: 0, mask: 0 };
        let mut bits = 32;
        for part in text.split('.') {
            let part = match part.parse::<u8>() {
                Ok(part) if bits > 0 => part,
                _ => refuse!("{text} is not an IPv4 address"),
            };
            bits -= 8;
            address.address |= u32::from(part) << bits;
            address.mask |= 0xff << bits;
        }
        Ok(address)
    }

    /// Converts a number to an IPv4 network: `net 10` is 10.0.0.0/8.
    pub(crate) fn network(number: u32) -> Self {
        let (mut address, mut mask) = (number, u32::MAX);
        while address != 0 && address & 0xff00_0000 == 0 {
            (address, mask) = (address << 8, mask << 8);
        }
        Self { address, mask }
    }

    /// Restricts the comparison of an IPv4 address to the bits of `mask`. An address with bits outside the mask is an
    /// error.
    pub(crate) fn under(self, mask: u32, text: &str) -> Result<Self, FilterError> {
        if self.address & !mask != 0 {
            let network = core::net::Ipv4Addr::from(self.address & mask);
            refuse!("{text} has bits outside its mask; write the network as {network}");
        }
        Ok(Self { mask, ..self })
    }
}

impl LayerOffsets {
    /// Compiles a test of a packet's IPv4 addresses, those in ARP and RARP included.
    pub(crate) fn has_ipv4(
        &self,
        ipv4: MaskedIpv4Address,
        q: PrimitiveQualifiers,
    ) -> Result<FilterNode, FilterError> {
        let of = |kind, source, destination| -> Result<FilterNode, FilterError> {
            let compare = |offset| -> Result<FilterNode, FilterError> {
                let address =
                    self.network_field(offset, FieldSize::Word).equals_under(ipv4.mask, ipv4.address);
                Ok(self.has_type(kind)?.and(address))
            };
            Ok(q.direction.join(compare(source)?, compare(destination)?))
        };
        match q.proto {
            ProtocolQualifier::Any if self.is_labelled => of(ethernet::IP, 12, 16),
            ProtocolQualifier::Any => {
                Ok(of(ethernet::IP, 12, 16)?.or(of(ethernet::ARP, 14, 24)?).or(of(ethernet::RARP, 14, 24)?))
            }
            ProtocolQualifier::Ip => of(ethernet::IP, 12, 16),
            ProtocolQualifier::Arp => of(ethernet::ARP, 14, 24),
            ProtocolQualifier::Rarp => of(ethernet::RARP, 14, 24),
            ProtocolQualifier::Link => refuse!("an IPv4 address is not an Ethernet address"),
            _ => refuse!("{} has no IPv4 addresses; ip, arp and rarp have", q.proto.word()),
        }
    }

    /// Compiles a test of a packet's IPv6 addresses.
    pub(crate) fn has_ipv6(
        &self,
        address: Ipv6Addr,
        prefix: u32,
        q: PrimitiveQualifiers,
    ) -> Result<FilterNode, FilterError> {
        if prefix > 128 {
            refuse!("prefix length {prefix} is out of range (0-128)");
        }
        let mask = u128::MAX.checked_shl(128 - prefix).unwrap_or(0);
        if address.to_bits() & !mask != 0 {
            let network = Ipv6Addr::from_bits(address.to_bits() & mask);
            refuse!("{address}/{prefix} has bits outside its mask; write the network as {network}/{prefix}");
        }
        if !matches!(q.proto, ProtocolQualifier::Any | ProtocolQualifier::Ipv6) {
            refuse!("{} has no IPv6 addresses; ip6 has", q.proto.word());
        }
        let compare = |start: u32| -> Result<FilterNode, FilterError> {
            let words = [0, 4, 8, 12].map(|offset| {
                let word = |of: u128| (of >> (96 - 8 * offset)) as u32;
                let field = self.network_field(start + offset, FieldSize::Word);
                field.equals_under(word(mask), word(address.to_bits()))
            });
            Ok(words.into_iter().fold(self.has_type(ethernet::IPV6)?, FilterNode::and))
        };
        Ok(q.direction.join(compare(8)?, compare(24)?))
    }

    /// Compiles a test of a packet's DECnet addresses, at four offsets: with a short or a long header, padded or not.
    /// Numbers are little-endian.
    pub(crate) fn has_decnet(
        &self,
        address: u16,
        direction: DirectionQualifier,
    ) -> Result<FilterNode, FilterError> {
        let address = u32::from(address.swap_bytes());
        let compare = |short: u32, long: u32| -> Result<FilterNode, FilterError> {
            let padded = |flags, offset| {
                let header = self.network_field(2, FieldSize::Half).equals_under(0xff07, flags);
                header.and(self.network_field(3 + offset, FieldSize::Half).equals(address))
            };
            let bare = |flags, offset| {
                let header = self.network_field(2, FieldSize::Byte).equals_under(7, flags);
                header.and(self.network_field(2 + offset, FieldSize::Half).equals(address))
            };
            let forms = [bare(2, short), padded(0x8102, short), bare(6, long), padded(0x8106, long)];
            Ok(self.has_type(ethernet::DECNET)?.and(FilterNode::Any(forms.into())))
        };
        Ok(direction.join(compare(3, 15)?, compare(1, 7)?))
    }
}

/// Compiles a test of the Ethernet addresses in a header. The test compares an address's last bytes first.
pub(crate) fn ethernet_address(
    header: FrameOffset,
    address: [u8; 6],
    direction: DirectionQualifier,
) -> FilterNode {
    let [a, b, c, d, e, f] = address.map(u32::from);
    let compare = |offset| {
        let end = ComputedNumber::field(header.plus(offset + 2), FieldSize::Word)
            .equals(c << 24 | d << 16 | e << 8 | f);
        end.and(ComputedNumber::field(header.plus(offset), FieldSize::Half).equals(a << 8 | b))
    };
    direction.join(compare(6), compare(0))
}
