//! Primitives: qualifiers with an operand, and words that stand for a test.

use super::{
    Direction, FilterError, Ipv4, Kind, Node, Parser, Part, Ports, Proto, Qualifiers, Relation, Sign, Size,
    Token, Transport, Value, Word, port, protocol, refuse, token,
};
use crate::layers::ethernet;
use core::net::Ipv6Addr;

impl Parser<'_> {
    /// Parses a primitive that begins with a word.
    pub(super) fn term(&mut self) -> Result<Part, FilterError> {
        let proto = match self.peek() {
            Some(Token::Word(Word::Proto(proto))) => {
                self.at += 1;
                Some(proto)
            }
            _ => None,
        };
        let of = proto.unwrap_or(Proto::Any);
        let Some(Token::Word(word)) = self.peek() else {
            return match proto {
                Some(proto) => Ok((self.layers.has_protocol(proto)?, None)),
                None => self.unexpected(),
            };
        };
        let node = match word {
            Word::Src | Word::Dst | Word::Kind(_) | Word::ProtoKind | Word::ProtoChain | Word::Gateway => {
                let q = self.qualifiers(of)?;
                return Ok((self.operand(Some(q))?, Some(q)));
            }
            Word::Broadcast => {
                self.at += 1;
                self.layers.is_broadcast(of)?
            }
            Word::Multicast => {
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

    /// Compiles a primitive without qualifiers.
    fn word(&mut self, word: Word) -> Result<Node, FilterError> {
        let start = self.at;
        self.at += 1;
        match word {
            Word::Less => {
                let test = Value::Length.compare(Relation::Greater, Value::Number(self.plain_number()?));
                Ok(test.negated())
            }
            Word::Greater => {
                Ok(Value::Length.compare(Relation::GreaterOrEqual, Value::Number(self.plain_number()?)))
            }
            Word::Byte => self.byte(),
            Word::Vlan => {
                let id = self.optional_number()?;
                self.layers.enter_vlan(id)
            }
            Word::Mpls => {
                let label = self.optional_number()?;
                self.layers.enter_mpls(label)
            }
            Word::Pppoed => self.layers.has_type(ethernet::PPPOE_DISCOVERY),
            Word::Pppoes => {
                let session = self.optional_number()?;
                self.layers.enter_pppoe_session(session)
            }
            Word::Geneve => {
                let vni = self.optional_number()?;
                self.layers.enter_geneve(vni)
            }
            Word::Llc => {
                let kind = match self.peek() {
                    Some(Token::Name(kind)) => Some(kind),
                    Some(Token::Word(Word::Rnr)) => Some("rnr"),
                    _ => None,
                };
                self.at += usize::from(kind.is_some());
                self.layers.is_llc(kind)
            }
            Word::Foreign => {
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

    /// Parses `byte OFFSET RELATION NUMBER`.
    fn byte(&mut self) -> Result<Node, FilterError> {
        let offset = self.plain_number()?;
        let Some(Token::Sign(sign)) = self.peek() else { return self.unexpected() };
        self.at += 1;
        let number = self.plain_number()?;
        let field = Value::field(self.layers.header.plus(offset), Size::Byte);
        match sign {
            Sign::Equal => Ok(field.equals(number)),
            Sign::Less => Ok(field.compare(Relation::GreaterOrEqual, Value::Number(number)).negated()),
            Sign::Greater => Ok(field.compare(Relation::Greater, Value::Number(number))),
            // libpcap up to 1.10 does not load the byte.
            Sign::BitAnd => {
                refuse!("`byte {offset} & {number}` is unsupported: write ether[{offset}] & {number} != 0")
            }
            Sign::BitOr => {
                refuse!("`byte {offset} | {number}` is unsupported: write ether[{offset}] | {number} != 0")
            }
            _ => self.unexpected(),
        }
    }

    fn qualifiers(&mut self, proto: Proto) -> Result<Qualifiers, FilterError> {
        let direction = if self.takes_word(Word::Src) {
            self.second_direction(Word::Dst, Direction::Source)?
        } else if self.takes_word(Word::Dst) {
            self.second_direction(Word::Src, Direction::Destination)?
        } else {
            Direction::Any
        };
        let kind = match self.peek() {
            Some(Token::Word(Word::Kind(kind))) => kind,
            Some(Token::Word(Word::ProtoKind)) if direction == Direction::Any => Kind::Proto,
            Some(Token::Word(Word::ProtoChain)) if direction == Direction::Any => Kind::ProtoChain,
            Some(Token::Word(Word::Gateway)) => Kind::Gateway,
            _ => Kind::Any,
        };
        self.at += usize::from(kind != Kind::Any);
        Ok(Qualifiers { proto, direction, kind })
    }

    /// Parses the rest of `src or dst` or `src and dst`.
    fn second_direction(&mut self, other: Word, one: Direction) -> Result<Direction, FilterError> {
        let both = if self.takes_word(Word::Or) {
            Direction::Either
        } else if self.takes_word(Word::And) {
            Direction::Both
        } else {
            return Ok(one);
        };
        if self.takes_word(other) { Ok(both) } else { self.unexpected() }
    }

    /// Parses an operand: an address, a name, a number, or several in brackets.
    pub(super) fn operand(&mut self, q: Option<Qualifiers>) -> Result<Node, FilterError> {
        let Some(token) = self.next() else { return self.unexpected() };
        let Some(q) = q else {
            self.at -= 1;
            return self.unexpected();
        };
        match token {
            Token::Word(Word::Not) => Ok(self.deeper(|parser| parser.operand(Some(q)))?.negated()),
            Token::Sign(Sign::Open) => {
                let node = self.deeper(|parser| {
                    let first = (parser.operand(Some(q))?, Some(q));
                    parser.rest_of_operands(first)
                })?;
                self.expect(Sign::Close)?;
                Ok(node.0)
            }
            Token::Number(number) => self.number(number, Some(q)),
            Token::Ipv4(text) => self.ipv4(text, q),
            Token::Ipv6(address) => self.ipv6(address, q),
            Token::Mac(address) => match (q.kind, q.proto) {
                (Kind::Any | Kind::Host, Proto::Link) => {
                    self.layers.has_ethernet_address(address, q.direction)
                }
                _ => refuse!(
                    "an Ethernet address needs `ether` before it, as in: ether host 02:00:00:00:00:01"
                ),
            },
            Token::Name(name) => self.name(name, q),
            Token::Word(_) | Token::Sign(_) => {
                self.at -= 1;
                self.unexpected()
            }
        }
    }

    /// Compiles a number as an operand.
    pub(super) fn number(&self, number: u32, q: Option<Qualifiers>) -> Result<Node, FilterError> {
        let Some(q) = q else { refuse!("{number} needs a word before it, such as host, net or port") };
        match q.kind {
            Kind::Any | Kind::Host | Kind::Net if q.proto == Proto::Decnet => {
                self.layers.has_decnet(number as u16, q.direction)
            }
            Kind::Any | Kind::Host => self.layers.has_ipv4(Ipv4 { address: number, mask: u32::MAX }, q),
            Kind::Net => self.layers.has_ipv4(Ipv4::network(number), q),
            Kind::Port => Ports::one(number, Transport::of(q.proto)?, q.direction).test(&self.layers),
            Kind::PortRange => {
                Ports::range(number, number, Transport::of(q.proto)?, q.direction).test(&self.layers)
            }
            Kind::Proto => self.layers.carries(number, q.proto),
            Kind::ProtoChain => self.layers.has_in_chain(number, q.proto),
            Kind::Gateway => gateway(),
        }
    }

    /// Parses an IPv4 address, possibly with a mask, or a DECnet address.
    fn ipv4(&mut self, text: &str, q: Qualifiers) -> Result<Node, FilterError> {
        let mask = if self.takes_sign(Sign::Divide) {
            match self.plain_number()? {
                length @ 0..=32 => Some(u32::MAX.checked_shl(32 - length).unwrap_or(0)),
                length => refuse!("prefix length {length} is out of range (0-32)"),
            }
        } else if self.takes_word(Word::Mask) {
            let Some(Token::Ipv4(mask)) = self.peek() else { return self.unexpected() };
            self.at += 1;
            Some(Ipv4::parse(mask)?.address)
        } else {
            None
        };
        match (q.kind, mask) {
            (Kind::Net, Some(mask)) => self.layers.has_ipv4(Ipv4::parse(text)?.under(mask, text)?, q),
            (Kind::Any | Kind::Host | Kind::Net, None) if q.proto == Proto::Decnet => {
                self.layers.has_decnet(decnet(text)?, q.direction)
            }
            (Kind::Any | Kind::Host | Kind::Net, None) => self.layers.has_ipv4(Ipv4::parse(text)?, q),
            (Kind::Any | Kind::Host, Some(_)) => {
                refuse!("a mask needs `net` before the address, as in: net 10.0.0.0/8")
            }
            _ => refuse!("{text} is an address; a number or a name is needed"),
        }
    }

    fn ipv6(&mut self, address: Ipv6Addr, q: Qualifiers) -> Result<Node, FilterError> {
        let prefix = if self.takes_sign(Sign::Divide) { Some(self.plain_number()?) } else { None };
        match q.kind {
            Kind::Net => {}
            Kind::Any | Kind::Host if prefix.is_none_or(|prefix| prefix == 128) => {}
            Kind::Any | Kind::Host => {
                refuse!("a prefix needs `net` before the address, as in: net 2001:db8::/32")
            }
            _ => refuse!("{address} is an address; a number or a name is needed"),
        }
        self.layers.has_ipv6(address, prefix.unwrap_or(128), q)
    }

    fn name(&self, name: &str, q: Qualifiers) -> Result<Node, FilterError> {
        match q.kind {
            Kind::Port => {
                let (port, transport) = port::named(name, Transport::of(q.proto)?, self.names)?;
                Ports::one(port, transport, q.direction).test(&self.layers)
            }
            Kind::PortRange => {
                let (one, other, transport) = port::named_range(name, Transport::of(q.proto)?, self.names)?;
                Ports::range(one, other, transport, q.direction).test(&self.layers)
            }
            Kind::Proto => self.layers.carries(protocol::named(name, q.proto, self.names)?, q.proto),
            Kind::ProtoChain => {
                self.layers.has_in_chain(protocol::named(name, q.proto, self.names)?, q.proto)
            }
            Kind::Gateway => gateway(),
            Kind::Any | Kind::Host | Kind::Net => {
                refuse!(
                    "{name} is a name, and names of hosts and networks are not looked up: write the address"
                )
            }
        }
    }
}

fn gateway() -> Result<Node, FilterError> {
    refuse!(
        "gateway needs a host's name, and names are not looked up: write ether host ADDRESS and not host \
         ADDRESS"
    )
}

/// Parses AREA.NODE.
fn decnet(text: &str) -> Result<u16, FilterError> {
    let parts = text.split_once('.').map(|(area, node)| (token::number(area), token::number(node)));
    match parts {
        Some((Ok(area), Ok(node))) => Ok((area << 10 & 0xfc00 | node & 0x3ff) as u16),
        _ => refuse!("{text} is not a DECnet address such as 10.15"),
    }
}
