//! Parses primitives of a filter: qualifiers with an operand, and words that stand for a test.

use super::{
    ComparisonRelation, CompiledPart, ComputedNumber, DirectionQualifier, FieldSize, FilterError, FilterNode,
    FilterParser, FilterToken, MaskedIpv4Address, PortComparison, PortTransport, PrimitiveQualifiers,
    ProtocolQualifier, ReservedWord, SymbolToken, TypeQualifier, port, protocol, refuse, token,
};
use crate::layers::ethernet;
use core::net::Ipv6Addr;

impl FilterParser<'_> {
    /// Parses a primitive that begins with a word.
    pub(super) fn term(&mut self) -> Result<CompiledPart, FilterError> {
        let proto = match self.peek() {
            Some(FilterToken::Word(ReservedWord::Proto(proto))) => {
                self.at += 1;
                Some(proto)
            }
            _ => None,
        };
        let of = proto.unwrap_or(ProtocolQualifier::Any);
        let Some(FilterToken::Word(word)) = self.peek() else {
            return match proto {
                Some(proto) => Ok((self.layers.has_protocol(proto)?, None)),
                None => self.unexpected(),
            };
        };
        let node = match word {
            ReservedWord::Src
            | ReservedWord::Dst
            | ReservedWord::Kind(_)
            | ReservedWord::ProtoKind
            | ReservedWord::ProtoChain
            | ReservedWord::Gateway => {
                let q = self.qualifiers(of)?;
                return Ok((self.operand(Some(q))?, Some(q)));
            }
            ReservedWord::Broadcast => {
                self.at += 1;
                self.layers.is_broadcast(of)?
            }
            ReservedWord::Multicast => {
                self.at += 1;
                self.layers.is_multicast(of)?
            }
            _ => match proto {
                Some(proto) => self.layers.has_protocol(proto)?,
                None => self.word(word)?,
            },
        };
        Ok((node, None))
    }

    /// Compiles a primitive that consists of a reserved word without qualifiers, and of its arguments.
    fn word(&mut self, word: ReservedWord) -> Result<FilterNode, FilterError> {
        let start = self.at;
        self.at += 1;
        match word {
            ReservedWord::Less => {
                let test = ComputedNumber::Length
                    .compare(ComparisonRelation::Greater, ComputedNumber::Number(self.plain_number()?));
                Ok(test.negated())
            }
            ReservedWord::Greater => Ok(ComputedNumber::Length
                .compare(ComparisonRelation::GreaterOrEqual, ComputedNumber::Number(self.plain_number()?))),
            ReservedWord::Byte => self.byte(),
            ReservedWord::Vlan => {
                let id = self.optional_number()?;
                self.layers.enter_vlan(id)
            }
            ReservedWord::Mpls => {
                let label = self.optional_number()?;
                self.layers.enter_mpls(label)
            }
            ReservedWord::Pppoed => self.layers.has_type(ethernet::PPPOE_DISCOVERY),
            ReservedWord::Pppoes => {
                let session = self.optional_number()?;
                self.layers.enter_pppoe_session(session)
            }
            ReservedWord::Geneve => {
                let vni = self.optional_number()?;
                self.layers.enter_geneve(vni)
            }
            ReservedWord::Llc => {
                let kind = match self.peek() {
                    Some(FilterToken::Name(kind)) => Some(kind),
                    Some(FilterToken::Word(ReservedWord::Rnr)) => Some("rnr"),
                    _ => None,
                };
                self.at += usize::from(kind.is_some());
                self.layers.is_llc(kind)
            }
            ReservedWord::Foreign => {
                let text = &self.text[self.tokens[start].0..];
                refuse!(
                    "at \"{text:.20}\": a captured Ethernet frame does not have this property; for its \
                     direction, read the packet's flags in the file"
                )
            }
            _ => {
                self.at = start;
                self.unexpected()
            }
        }
    }

    /// Parses `byte OFFSET RELATION NUMBER`, a test of one byte of the frame.
    fn byte(&mut self) -> Result<FilterNode, FilterError> {
        let offset = self.plain_number()?;
        let Some(FilterToken::Sign(sign)) = self.peek() else { return self.unexpected() };
        self.at += 1;
        let number = self.plain_number()?;
        let field = ComputedNumber::field(self.layers.header.plus(offset), FieldSize::Byte);
        match sign {
            SymbolToken::Equal => Ok(field.equals(number)),
            SymbolToken::Less => Ok(field
                .compare(ComparisonRelation::GreaterOrEqual, ComputedNumber::Number(number))
                .negated()),
            SymbolToken::Greater => {
                Ok(field.compare(ComparisonRelation::Greater, ComputedNumber::Number(number)))
            }
            // libpcap up to 1.10 does not load the byte.
            SymbolToken::BitAnd => {
                refuse!("`byte {offset} & {number}` is unsupported: write ether[{offset}] & {number} != 0")
            }
            SymbolToken::BitOr => {
                refuse!("`byte {offset} | {number}` is unsupported: write ether[{offset}] | {number} != 0")
            }
            _ => self.unexpected(),
        }
    }

    fn qualifiers(&mut self, proto: ProtocolQualifier) -> Result<PrimitiveQualifiers, FilterError> {
        let direction = if self.takes_word(ReservedWord::Src) {
            self.second_direction(ReservedWord::Dst, DirectionQualifier::Source)?
        } else if self.takes_word(ReservedWord::Dst) {
            self.second_direction(ReservedWord::Src, DirectionQualifier::Destination)?
        } else {
            DirectionQualifier::Any
        };
        let kind = match self.peek() {
            Some(FilterToken::Word(ReservedWord::Kind(kind))) => kind,
            Some(FilterToken::Word(ReservedWord::ProtoKind)) if direction == DirectionQualifier::Any => {
                TypeQualifier::Proto
            }
            Some(FilterToken::Word(ReservedWord::ProtoChain)) if direction == DirectionQualifier::Any => {
                TypeQualifier::ProtoChain
            }
            Some(FilterToken::Word(ReservedWord::Gateway)) => TypeQualifier::Gateway,
            _ => TypeQualifier::Any,
        };
        self.at += usize::from(kind != TypeQualifier::Any);
        Ok(PrimitiveQualifiers { proto, direction, kind })
    }

    /// Parses the rest of `src or dst` or `src and dst`.
    fn second_direction(
        &mut self,
        other: ReservedWord,
        one: DirectionQualifier,
    ) -> Result<DirectionQualifier, FilterError> {
        let both = if self.takes_word(ReservedWord::Or) {
            DirectionQualifier::Either
        } else if self.takes_word(ReservedWord::And) {
            DirectionQualifier::Both
        } else {
            return Ok(one);
        };
        if self.takes_word(other) { Ok(both) } else { self.unexpected() }
    }

    /// Parses an operand with its qualifiers: an address, a name, a number, or several in brackets.
    pub(super) fn operand(&mut self, q: Option<PrimitiveQualifiers>) -> Result<FilterNode, FilterError> {
        let Some(token) = self.next() else { return self.unexpected() };
        let Some(q) = q else {
            self.at -= 1;
            return self.unexpected();
        };
        match token {
            FilterToken::Word(ReservedWord::Not) => {
                Ok(self.deeper(|parser| parser.operand(Some(q)))?.negated())
            }
            FilterToken::Sign(SymbolToken::Open) => {
                let node = self.deeper(|parser| {
                    let first = (parser.operand(Some(q))?, Some(q));
                    parser.rest_of_operands(first)
                })?;
                self.expect(SymbolToken::Close)?;
                Ok(node.0)
            }
            FilterToken::Number(number) => self.number(number, Some(q)),
            FilterToken::Ipv4(text) => self.ipv4(text, q),
            FilterToken::Ipv6(address) => self.ipv6(address, q),
            FilterToken::Mac(address) => match (q.kind, q.proto) {
                (TypeQualifier::Any | TypeQualifier::Host, ProtocolQualifier::Link) => {
                    self.layers.has_ethernet_address(address, q.direction)
                }
                _ => refuse!(
                    "an Ethernet address needs `ether` before it, as in: ether host 02:00:00:00:00:01"
                ),
            },
            FilterToken::Name(name) => self.name(name, q),
            FilterToken::Word(_) | FilterToken::Sign(_) => {
                self.at -= 1;
                self.unexpected()
            }
        }
    }

    /// Compiles a number as an operand with the qualifiers `q`.
    pub(super) fn number(
        &self,
        number: u32,
        q: Option<PrimitiveQualifiers>,
    ) -> Result<FilterNode, FilterError> {
        let Some(q) = q else { refuse!("{number} needs a word before it, such as host, net or port") };
        match q.kind {
            TypeQualifier::Any | TypeQualifier::Host | TypeQualifier::Net
                if q.proto == ProtocolQualifier::Decnet =>
            {
                self.layers.has_decnet(number as u16, q.direction)
            }
            TypeQualifier::Any | TypeQualifier::Host => {
                self.layers.has_ipv4(MaskedIpv4Address { address: number, mask: u32::MAX }, q)
            }
            TypeQualifier::Net => self.layers.has_ipv4(MaskedIpv4Address::network(number), q),
            TypeQualifier::Port => {
                PortComparison::one(number, PortTransport::of(q.proto)?, q.direction).test(&self.layers)
            }
            TypeQualifier::PortRange => {
                PortComparison::range(number, number, PortTransport::of(q.proto)?, q.direction)
                    .test(&self.layers)
            }
            TypeQualifier::Proto => self.layers.carries(number, q.proto),
            TypeQualifier::ProtoChain => self.layers.has_in_chain(number, q.proto),
            TypeQualifier::Gateway => gateway(),
        }
    }

    /// Compiles an IPv4 address as an operand, with its mask if one follows, or a DECnet address of the same
    /// form.
    fn ipv4(&mut self, text: &str, q: PrimitiveQualifiers) -> Result<FilterNode, FilterError> {
        let mask = if self.takes_sign(SymbolToken::Divide) {
            match self.plain_number()? {
                length @ 0..=32 => Some(u32::MAX.checked_shl(32 - length).unwrap_or(0)),
                length => refuse!("prefix length {length} is out of range (0-32)"),
            }
        } else if self.takes_word(ReservedWord::Mask) {
            let Some(FilterToken::Ipv4(mask)) = self.peek() else { return self.unexpected() };
            self.at += 1;
            Some(MaskedIpv4Address::parse(mask)?.address)
        } else {
            None
        };
        match (q.kind, mask) {
            (TypeQualifier::Net, Some(mask)) => {
                self.layers.has_ipv4(MaskedIpv4Address::parse(text)?.under(mask, text)?, q)
            }
            (TypeQualifier::Any | TypeQualifier::Host | TypeQualifier::Net, None)
                if q.proto == ProtocolQualifier::Decnet =>
            {
                self.layers.has_decnet(decnet(text)?, q.direction)
            }
            (TypeQualifier::Any | TypeQualifier::Host | TypeQualifier::Net, None) => {
                self.layers.has_ipv4(MaskedIpv4Address::parse(text)?, q)
            }
            (TypeQualifier::Any | TypeQualifier::Host, Some(_)) => {
                refuse!("a mask needs `net` before the address, as in: net 10.0.0.0/8")
            }
            _ => refuse!("{text} is an address; a number or a name is needed"),
        }
    }

    fn ipv6(&mut self, address: Ipv6Addr, q: PrimitiveQualifiers) -> Result<FilterNode, FilterError> {
        let prefix = if self.takes_sign(SymbolToken::Divide) { Some(self.plain_number()?) } else { None };
        match q.kind {
            TypeQualifier::Net => {}
            TypeQualifier::Any | TypeQualifier::Host if prefix.is_none_or(|prefix| prefix == 128) => {}
            TypeQualifier::Any | TypeQualifier::Host => {
                refuse!("a prefix needs `net` before the address, as in: net 2001:db8::/32")
            }
            _ => refuse!("{address} is an address; a number or a name is needed"),
        }
        self.layers.has_ipv6(address, prefix.unwrap_or(128), q)
    }

    fn name(&self, name: &str, q: PrimitiveQualifiers) -> Result<FilterNode, FilterError> {
        match q.kind {
            TypeQualifier::Port => {
                let (port, transport) = port::named(name, PortTransport::of(q.proto)?, self.names)?;
                PortComparison::one(port, transport, q.direction).test(&self.layers)
            }
            TypeQualifier::PortRange => {
                let (one, other, transport) =
                    port::named_range(name, PortTransport::of(q.proto)?, self.names)?;
                PortComparison::range(one, other, transport, q.direction).test(&self.layers)
            }
            TypeQualifier::Proto => self.layers.carries(protocol::named(name, q.proto, self.names)?, q.proto),
            TypeQualifier::ProtoChain => {
                self.layers.has_in_chain(protocol::named(name, q.proto, self.names)?, q.proto)
            }
            TypeQualifier::Gateway => gateway(),
            TypeQualifier::Any | TypeQualifier::Host | TypeQualifier::Net => {
                refuse!(
                    "{name} is a name, and names of hosts and networks are not looked up: write the address"
                )
            }
        }
    }
}

fn gateway() -> Result<FilterNode, FilterError> {
    refuse!(
        "gateway needs a host's name, and names are not looked up: write ether host ADDRESS and not host \
         ADDRESS"
    )
}

/// Parses a DECnet address `AREA.NODE`.
fn decnet(text: &str) -> Result<u16, FilterError> {
    let parts = text.split_once('.').map(|(area, node)| (token::number(area), token::number(node)));
    match parts {
        Some((Ok(area), Ok(node))) => Ok((area << 10 & 0xfc00 | node & 0x3ff) as u16),
        _ => refuse!("{text} is not a DECnet address such as 10.15"),
    }
}
