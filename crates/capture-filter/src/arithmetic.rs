//! Arithmetic expressions such as `tcp[12] & 0xf0`.

use crate::error::{FilterError, refuse};
use crate::layers::Layers;
use crate::node::{Field, Node, Operator, Size, Value};
use crate::port::is_first_fragment;
use crate::qualifiers::Proto;
use crate::token::Sign;
use alloc::boxed::Box;

/// An arithmetic expression.
#[derive(Debug)]
pub(crate) struct Expression {
    pub(crate) value: Value,
    /// Tests that the frame has the headers that the expression reads.
    pub(crate) checks: Option<Node>,
}

/// Precedence of an operator. libpcap's grammar gives `%` and `^` none: they take the whole expression to their
/// right.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Precedence {
    Level(u8),
    Greedy,
}

/// Precedence of the sign of a number: above all levels.
pub(crate) const SIGN_LEVEL: u8 = 6;

/// Returns the operator of a sign, and its precedence.
pub(crate) fn operator(sign: Sign) -> Option<(Operator, Precedence)> {
    Some(match sign {
        Sign::BitOr => (Operator::Or, Precedence::Level(1)),
        Sign::BitAnd => (Operator::And, Precedence::Level(2)),
        Sign::ShiftLeft => (Operator::ShiftLeft, Precedence::Level(3)),
        Sign::ShiftRight => (Operator::ShiftRight, Precedence::Level(3)),
        Sign::Plus => (Operator::Add, Precedence::Level(4)),
        Sign::Minus => (Operator::Subtract, Precedence::Level(4)),
        Sign::Times => (Operator::Multiply, Precedence::Level(5)),
        Sign::Divide => (Operator::Divide, Precedence::Level(5)),
        Sign::Modulo => (Operator::Modulo, Precedence::Greedy),
        Sign::BitXor => (Operator::Xor, Precedence::Greedy),
        _ => return None,
    })
}

impl Expression {
    pub(crate) fn number(number: u32) -> Self {
        Self { value: Value::Number(number), checks: None }
    }

    /// Joins two expressions. Only the checks of the left one are kept, as in libpcap.
    pub(crate) fn join(self, operator: Operator, right: Self) -> Result<Self, FilterError> {
        match (operator, right.value.first_number()) {
            (Operator::Divide | Operator::Modulo, Some(0)) => refuse!("division by zero"),
            (Operator::ShiftLeft | Operator::ShiftRight, Some(bits)) if bits > 31 => {
                refuse!("a shift by {bits} bits is out of range (0-31)")
            }
            _ => Ok(Self { value: self.value.binary(operator, right.value), checks: self.checks }),
        }
    }

    pub(crate) fn negated(self) -> Self {
        Self { value: Value::Negate(Box::new(self.value)), ..self }
    }

    /// Compiles `PROTO[INDEX:SIZE]`, with the expression as the index.
    pub(crate) fn load(self, proto: Proto, size: u32, layers: &Layers) -> Result<Self, FilterError> {
        let size = match size {
            1 => Size::Byte,
            2 => Size::Half,
            4 => Size::Word,
            _ => refuse!("{}[...:{size}]: a field's size must be 1, 2 or 4 bytes", proto.word()),
        };
        let network = layers.network();
        let mut ipv4 = None;
        let (offset, check) = match proto {
            Proto::Link => (layers.header, None),
            Proto::Ip
            | Proto::Arp
            | Proto::Rarp
            | Proto::Atalk
            | Proto::Decnet
            | Proto::Sca
            | Proto::Lat
            | Proto::Moprc
            | Proto::Mopdl
            | Proto::Ipv6 => (network, Some(layers.has_protocol(proto)?)),
            Proto::Sctp
            | Proto::Tcp
            | Proto::Udp
            | Proto::Icmp
            | Proto::Igmp
            | Proto::Igrp
            | Proto::Pim
            | Proto::Vrrp
            | Proto::Carp => {
                ipv4 = Some(network);
                let first = layers.has_protocol(proto)?.and(is_first_fragment(layers));
                return Ok(Self {
                    checks: Some(join(Some(layers.has_protocol(Proto::Ip)?), self.checks, first)),
                    value: Value::Field(Field {
                        offset: network,
                        ipv4,
                        index: Some(Box::new(self.value)),
                        size,
                    }),
                });
            }
            Proto::Icmpv6 => {
                let next_header = layers.network_field(6, Size::Byte).equals(58);
                let check = join(self.checks, None, layers.has_protocol(Proto::Ipv6)?).and(next_header);
                let index = Some(Box::new(self.value));
                let value = Value::Field(Field { offset: network.plus(40), ipv4, index, size });
                return Ok(Self { value, checks: Some(check) });
            }
            _ => refuse!("{}[...]: a filter cannot read bytes of {}", proto.word(), proto.word()),
        };
        let checks = match check {
            Some(check) => Some(join(self.checks, None, check)),
            None => self.checks,
        };
        Ok(Self {
            value: Value::Field(Field { offset, ipv4, index: Some(Box::new(self.value)), size }),
            checks,
        })
    }
}

/// Joins tests with "and", in this order.
fn join(first: Option<Node>, second: Option<Node>, last: Node) -> Node {
    [first, second, Some(last)].into_iter().flatten().reduce(Node::and).unwrap_or(Node::True)
}
