//! Compiled filter: tests of fields, joined by "and", "or" and "not". Tests run from left to right until the result is
//! known. A field outside of the frame rejects the frame, whatever the rest of the filter says.

use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;

/// Compiled test of a frame, or several joined tests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum FilterNode {
    All(Vec<FilterNode>),
    Any(Vec<FilterNode>),
    Not(Box<FilterNode>),
    Compare(NumberComparison),
    Chain(HeaderChainSearch),
    Geneve(GenevePredicate),
    /// Test that the offsets in two slots differ. They differ if a Geneve payload begins with an Ethernet header.
    Differ(OffsetSlot, OffsetSlot),
    True,
}

/// Test that compares two unsigned numbers of a frame or filter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NumberComparison {
    pub(crate) left: ComputedNumber,
    pub(crate) relation: ComparisonRelation,
    pub(crate) right: ComputedNumber,
}

/// Relation between two numbers that a comparison tests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ComparisonRelation {
    Equal,
    Greater,
    GreaterOrEqual,
    /// The two numbers have a common bit that is set.
    CommonBits,
}

/// Number of 32 bits that a test of the filter computes from the frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ComputedNumber {
    Number(u32),
    /// The number is the length of the whole frame in bytes.
    Length,
    Field(FrameField),
    Negate(Box<ComputedNumber>),
    Binary(ArithmeticOperator, Box<(ComputedNumber, ComputedNumber)>),
}

/// Arithmetic operator of two numbers. Results wrap at 32 bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ArithmeticOperator {
    Add,
    Subtract,
    Multiply,
    /// Quotient of two numbers; division by zero rejects the frame.
    Divide,
    /// Remainder of two numbers; division by zero rejects the frame.
    Modulo,
    And,
    Or,
    Xor,
    /// Left shift of a number; the result is 0 for more than 31 bits.
    ShiftLeft,
    /// Right shift of a number; the result is 0 for more than 31 bits.
    ShiftRight,
}

/// Index of the slot in which a test stores an offset for later tests.
pub(crate) type OffsetSlot = u8;

/// Offset in the frame: a constant, plus the value of a slot if there is one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FrameOffset {
    pub(crate) slot: Option<OffsetSlot>,
    pub(crate) constant: u32,
}

impl FrameOffset {
    pub(crate) const fn at(constant: u32) -> Self {
        Self { slot: None, constant }
    }

    #[must_use]
    pub(crate) const fn plus(self, bytes: u32) -> Self {
        Self { constant: self.constant.wrapping_add(bytes), ..self }
    }
}

/// Size of a frame's field in bytes: 1, 2 or 4.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FieldSize {
    Byte = 1,
    Half = 2,
    Word = 4,
}

/// Big-endian field of the frame that a test reads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FrameField {
    /// Offset of the field, without the length of `ipv4` and the number of `index`, which are added.
    pub(crate) offset: FrameOffset,
    /// Offset of the IPv4 header whose length is added to the field's offset.
    pub(crate) ipv4: Option<FrameOffset>,
    /// Computed number that is added to the field's offset.
    pub(crate) index: Option<Box<ComputedNumber>>,
    pub(crate) size: FieldSize,
}

/// Search for a protocol in a packet's chain of IP extension headers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct HeaderChainSearch {
    /// Offset of the IP header at which the chain begins.
    pub(crate) header: u32,
    pub(crate) is_ipv6: bool,
    pub(crate) protocol: u32,
}

/// Test for a Geneve packet, which stores the offsets of the headers inside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct GenevePredicate {
    /// Offset of the IP header outside the Geneve tunnel.
    pub(crate) outer: FrameOffset,
    /// True if the outer header is an IPv6 header, of 40 bytes.
    pub(crate) is_ipv6: bool,
    /// Slot in which the test stores the offset of the inner link type. The slots of the inner link header and payload
    /// follow.
    pub(crate) link_type: OffsetSlot,
    pub(crate) header: OffsetSlot,
    pub(crate) payload: OffsetSlot,
}

impl ComputedNumber {
    pub(crate) fn field(offset: FrameOffset, size: FieldSize) -> Self {
        Self::Field(FrameField { offset, ipv4: None, index: None, size })
    }

    pub(crate) fn binary(self, operator: ArithmeticOperator, other: Self) -> Self {
        Self::Binary(operator, Box::new((self, other)))
    }

    /// Returns the number that the computation evaluates first, if that number is a constant.
    pub(crate) fn first_number(&self) -> Option<u32> {
        match self {
            Self::Number(number) => Some(*number),
            Self::Length => None,
            Self::Field(field) => field.index.as_ref()?.first_number(),
            Self::Negate(value) => value.first_number(),
            Self::Binary(_, both) => both.0.first_number(),
        }
    }

    pub(crate) fn compare(self, relation: ComparisonRelation, right: Self) -> FilterNode {
        FilterNode::Compare(NumberComparison { left: self, relation, right })
    }

    pub(crate) fn equals(self, number: u32) -> FilterNode {
        self.compare(ComparisonRelation::Equal, Self::Number(number))
    }

    /// Compiles a test that the bits of the computed number under `mask` equal `number`.
    pub(crate) fn equals_under(self, mask: u32, number: u32) -> FilterNode {
        match mask {
            u32::MAX => self.equals(number),
            _ => self.binary(ArithmeticOperator::And, Self::Number(mask)).equals(number),
        }
    }

    /// Returns `true` if the computed number is 0 for every frame that has the field.
    fn is_masked_out(&self) -> bool {
        matches!(self, Self::Binary(ArithmeticOperator::And, both) if both.1 == Self::Number(0))
    }
}

impl FilterNode {
    pub(crate) fn and(self, next: Self) -> Self {
        match self {
            Self::All(mut nodes) => {
                nodes.push(next);
                Self::All(nodes)
            }
            first => Self::All(vec![first, next]),
        }
    }

    pub(crate) fn or(self, next: Self) -> Self {
        match self {
            Self::Any(mut nodes) => {
                nodes.push(next);
                Self::Any(nodes)
            }
            first => Self::Any(vec![first, next]),
        }
    }

    /// Returns the number of comparisons in the filter.
    pub(crate) fn tests(&self) -> usize {
        match self {
            Self::All(nodes) | Self::Any(nodes) => nodes.iter().map(Self::tests).sum(),
            Self::Not(node) => node.tests(),
            _ => 1,
        }
    }

    /// Replaces comparisons without a bit to compare by true, even for frames that do not have the compared field.
    /// libpcap's optimizer does the same, but is off in filters with `protochain` or `geneve`.
    pub(crate) fn optimize(&mut self) {
        if !self.has_loops() {
            self.drop_idle_tests();
        }
    }

    fn has_loops(&self) -> bool {
        match self {
            Self::All(nodes) | Self::Any(nodes) => nodes.iter().any(Self::has_loops),
            Self::Not(node) => node.has_loops(),
            Self::Chain(_) | Self::Geneve(_) => true,
            _ => false,
        }
    }

    fn drop_idle_tests(&mut self) {
        match self {
            Self::All(nodes) | Self::Any(nodes) => nodes.iter_mut().for_each(Self::drop_idle_tests),
            Self::Not(node) => node.drop_idle_tests(),
            Self::Compare(NumberComparison {
                left,
                relation: ComparisonRelation::Equal,
                right: ComputedNumber::Number(0),
            }) if left.is_masked_out() => {
                *self = Self::True;
            }
            _ => {}
        }
    }

    pub(crate) fn negated(self) -> Self {
        match self {
            Self::Not(node) => *node,
            node => Self::Not(Box::new(node)),
        }
    }
}
