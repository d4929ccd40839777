//! Compiles arithmetic expressions of a filter, such as `tcp[12] & 0xf0`.

use crate::error::{FilterError, refuse};
use crate::layers::LayerOffsets;
use crate::node::{ArithmeticOperator, ComputedNumber, FieldSize, FilterNode, FrameField};
use crate::port::is_first_fragment;
use crate::qualifiers::ProtocolQualifier::{
    self, Arp, Atalk, Carp, Decnet, Icmp, Icmpv6, Igmp, Igrp, Ip, Ipv6, Lat, Link, Mopdl, Moprc, Pim, Rarp,
    Sca, Sctp, Tcp, Udp, Vrrp,
};
use crate::token::SymbolToken;
use alloc::boxed::Box;

/// Compiled arithmetic expression of a filter: the computed number, and the tests that must run before it.
#[derive(Debug)]
pub(crate) struct ArithmeticExpression {
    pub(crate) value: ComputedNumber,
    /// Tests of the frame for the headers that the expression reads; they run before the expression.
    pub(crate) checks: Option<FilterNode>,
}

/// Precedence of an arithmetic operator. libpcap's grammar gives `%` and `^` none: they take the whole expression to
/// their right.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OperatorPrecedence {
    Level(u8),
    Greedy,
}

/// Precedence of the sign of a number: higher than that of every operator.
pub(crate) const SIGN_LEVEL: u8 = 6;

/// Returns the arithmetic operator that a symbol stands for, with its precedence.
pub(crate) fn operator(sign: SymbolToken) -> Option<(ArithmeticOperator, OperatorPrecedence)> {
    Some(match sign {
        SymbolToken::BitOr => (ArithmeticOperator::Or, OperatorPrecedence::Level(1)),
        SymbolToken::BitAnd => (ArithmeticOperator::And, OperatorPrecedence::Level(2)),
        SymbolToken::ShiftLeft => (ArithmeticOperator::ShiftLeft, OperatorPrecedence::Level(3)),
        SymbolToken::ShiftRight => (ArithmeticOperator::ShiftRight, OperatorPrecedence::Level(3)),
        SymbolToken::Plus => (ArithmeticOperator::Add, OperatorPrecedence::Level(4)),
        SymbolToken::Minus => (ArithmeticOperator::Subtract, OperatorPrecedence::Level(4)),
        SymbolToken::Times => (ArithmeticOperator::Multiply, OperatorPrecedence::Level(5)),
        SymbolToken::Divide => (ArithmeticOperator::Divide, OperatorPrecedence::Level(5)),
        SymbolToken::Modulo => (ArithmeticOperator::Modulo, OperatorPrecedence::Greedy),
        SymbolToken::BitXor => (ArithmeticOperator::Xor, OperatorPrecedence::Greedy),
        _ => return None,
    })
}

impl ArithmeticExpression {
    pub(crate) fn number(number: u32) -> Self {
        Self { value: ComputedNumber::Number(number), checks: None }
    }

    /// Joins two arithmetic expressions by an operator. Keeps only the checks of the left expression, as libpcap does.
    pub(crate) fn join(self, operator: ArithmeticOperator, right: Self) -> Result<Self, FilterError> {
        match (operator, right.value.first_number()) {
            (ArithmeticOperator::Divide | ArithmeticOperator::Modulo, Some(0)) => refuse!("division by zero"),
            (ArithmeticOperator::ShiftLeft | ArithmeticOperator::ShiftRight, Some(bits)) if bits > 31 => {
                refuse!("a shift by {bits} bits is out of range (0-31)")
            }
            _ => Ok(Self { value: self.value.binary(operator, right.value), checks: self.checks }),
        }
    }

    pub(crate) fn negated(self) -> Self {
        Self { value: ComputedNumber::Negate(Box::new(self.value)), ..self }
    }

    /// Compiles `PROTO[INDEX:SIZE]`, a field of the frame, with this expression as the index.
    pub(crate) fn load(
        self,
        proto: ProtocolQualifier,
        size: u32,
        layers: &LayerOffsets,
    ) -> Result<Self, FilterError> {
        let size = match size {
            1 => FieldSize::Byte,
            2 => FieldSize::Half,
            4 => FieldSize::Word,
            _ => refuse!("{}[...:{size}]: a field's size must be 1, 2 or 4 bytes", proto.word()),
        };
        let network = layers.network();
        let (offset, ipv4, checks) = match proto {
            Link => (layers.header, None, self.checks),
            Ip | Arp | Rarp | Atalk | Decnet | Sca | Lat | Moprc | Mopdl | Ipv6 => {
                (network, None, Some(join(self.checks, None, layers.has_protocol(proto)?)))
            }
            Sctp | Tcp | Udp | Icmp | Igmp | Igrp | Pim | Vrrp | Carp => {
                let first = layers.has_protocol(proto)?.and(is_first_fragment(layers));
                let checks = join(Some(layers.has_protocol(Ip)?), self.checks, first);
                (network, Some(network), Some(checks))
            }
            Icmpv6 => {
                let next_header = layers.network_field(6, FieldSize::Byte).equals(58);
                let checks = join(self.checks, None, layers.has_protocol(Ipv6)?).and(next_header);
                (network.plus(40), None, Some(checks))
            }
            _ => refuse!("{}[...]: a filter cannot read bytes of {}", proto.word(), proto.word()),
        };
        let index = Some(Box::new(self.value));
        Ok(Self { value: ComputedNumber::Field(FrameField { offset, ipv4, index, size }), checks })
    }
}

/// Joins up to three tests by "and", in the order of the arguments.
fn join(first: Option<FilterNode>, second: Option<FilterNode>, last: FilterNode) -> FilterNode {
    [first, second, Some(last)].into_iter().flatten().reduce(FilterNode::and).unwrap_or(FilterNode::True)
}
