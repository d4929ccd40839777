//! Runs a filter on a frame. The work is bounded by the tests of the filter and by [`MAX_HEADERS`].

use crate::layers::SLOTS;
use crate::node::{
    ArithmeticOperator, ComparisonRelation, ComputedNumber, FieldSize, FilterNode, FrameField, FrameOffset,
    GenevePredicate, HeaderChainSearch, NumberComparison,
};

/// Maximum number of headers that a search in a header chain follows.
const MAX_HEADERS: usize = 64;
/// Ethernet type of a Geneve payload that begins with an Ethernet header (IANA).
const TRANSPARENT_BRIDGING: u32 = 0x6558;

/// Rejection of a frame: a field is outside of it, or a number is divided by zero.
struct FrameRejected;

struct FilterEvaluation<'a> {
    frame: &'a [u8],
    length: u32,
    slots: [u32; SLOTS],
}

pub(crate) fn selects(filter: &FilterNode, frame: &[u8], length: u32) -> bool {
    FilterEvaluation { frame, length, slots: [0; SLOTS] }.node(filter).unwrap_or(false)
}

impl FilterEvaluation<'_> {
    fn node(&mut self, node: &FilterNode) -> Result<bool, FrameRejected> {
        Ok(match node {
            FilterNode::All(nodes) => {
                for node in nodes {
                    if !self.node(node)? {
                        return Ok(false);
                    }
                }
                true
            }
            FilterNode::Any(nodes) => {
                for node in nodes {
                    if self.node(node)? {
                        return Ok(true);
                    }
                }
                false
            }
            FilterNode::Not(node) => !self.node(node)?,
            FilterNode::Compare(compare) => self.compare(compare)?,
            FilterNode::Chain(chain) => self.chain(*chain)?,
            FilterNode::Geneve(offsets) => self.geneve(*offsets)?,
            FilterNode::Differ(one, other) => self.slot(Some(*one)) != self.slot(Some(*other)),
            FilterNode::True => true,
        })
    }

    fn compare(
        &self,
        NumberComparison { left, relation, right }: &NumberComparison,
    ) -> Result<bool, FrameRejected> {
        let (left, right) = (self.value(left)?, self.value(right)?);
        Ok(match relation {
            ComparisonRelation::Equal => left == right,
            ComparisonRelation::Greater => left > right,
            ComparisonRelation::GreaterOrEqual => left >= right,
            ComparisonRelation::CommonBits => left & right != 0,
        })
    }

    fn value(&self, value: &ComputedNumber) -> Result<u32, FrameRejected> {
        Ok(match value {
            ComputedNumber::Number(number) => *number,
            ComputedNumber::Length => self.length,
            ComputedNumber::Field(field) => self.field(field)?,
            ComputedNumber::Negate(value) => self.value(value)?.wrapping_neg(),
            ComputedNumber::Binary(operator, both) => {
                let (left, right) = (self.value(&both.0)?, self.value(&both.1)?);
                match operator {
                    ArithmeticOperator::Add => left.wrapping_add(right),
                    ArithmeticOperator::Subtract => left.wrapping_sub(right),
                    ArithmeticOperator::Multiply => left.wrapping_mul(right),
                    ArithmeticOperator::Divide => left.checked_div(right).ok_or(FrameRejected)?,
                    ArithmeticOperator::Modulo => left.checked_rem(right).ok_or(FrameRejected)?,
                    ArithmeticOperator::And => left & right,
                    ArithmeticOperator::Or => left | right,
                    ArithmeticOperator::Xor => left ^ right,
                    ArithmeticOperator::ShiftLeft => left.checked_shl(right).unwrap_or(0),
                    ArithmeticOperator::ShiftRight => left.checked_shr(right).unwrap_or(0),
                }
            }
        })
    }

    fn field(&self, FrameField { offset, ipv4, index, size }: &FrameField) -> Result<u32, FrameRejected> {
        let index = index.as_ref().map_or(Ok(0), |index| self.value(index))?;
        let header = ipv4.map_or(Ok(0), |header| self.ipv4_length(header))?;
        let variable = self.slot(offset.slot).wrapping_add(header).wrapping_add(index);
        self.load(u64::from(variable) + u64::from(offset.constant), *size)
    }

    /// Returns the length in bytes that the low half of an IPv4 header's first byte gives.
    fn ipv4_length(&self, header: FrameOffset) -> Result<u32, FrameRejected> {
        let at = u64::from(self.slot(header.slot)) + u64::from(header.constant);
        Ok((self.load(at, FieldSize::Byte)? & 0xf) * 4)
    }

    fn slot(&self, slot: Option<u8>) -> u32 {
        slot.and_then(|slot| self.slots.get(usize::from(slot))).copied().unwrap_or(0)
    }

    fn load(&self, at: u64, size: FieldSize) -> Result<u32, FrameRejected> {
        let at = usize::try_from(at).map_err(|_| FrameRejected)?;
        let bytes = self.frame.get(at..).and_then(|rest| rest.get(..size as usize)).ok_or(FrameRejected)?;
        Ok(bytes.iter().fold(0, |sum, byte| sum << 8 | u32::from(*byte)))
    }

    fn byte(&self, at: u32) -> Result<u32, FrameRejected> {
        self.load(at.into(), FieldSize::Byte)
    }

    /// Returns true if the chain of next-header fields leads to a protocol, through the options, routing, fragment and
    /// authentication headers. After an authentication header, offsets count from the IP header, as in libpcap.
    fn chain(
        &self,
        HeaderChainSearch { header, is_ipv6, protocol }: HeaderChainSearch,
    ) -> Result<bool, FrameRejected> {
        let (mut next, mut at) = if is_ipv6 {
            (self.byte(header + 6)?, 40)
        } else {
            (self.byte(header + 9)?, self.ipv4_length(FrameOffset::at(header))?)
        };
        for _ in 0..MAX_HEADERS {
            let here = header.saturating_add(at);
            match next {
                _ if next == protocol => return Ok(true),
                0 | 43 | 44 | 60 if is_ipv6 => {
                    next = self.byte(here)?;
                    at = at.saturating_add((self.byte(here.saturating_add(1))? + 1) * 8);
                }
                51 => {
                    next = self.byte(here)?;
                    at = (self.byte(here.saturating_add(1))? + 2) * 4;
                }
                _ => return Ok(false),
            }
        }
        Ok(false)
    }

    fn geneve(&mut self, offsets: GenevePredicate) -> Result<bool, FrameRejected> {
        let GenevePredicate { outer, is_ipv6, link_type, header, payload } = offsets;
        let ip_length = if is_ipv6 { 40 } else { self.ipv4_length(outer)? };
        let tunnel =
            self.slot(outer.slot).wrapping_add(ip_length).wrapping_add(outer.constant).wrapping_add(8);
        let options = (self.byte(tunnel)? & 0x3f) * 4;
        let inner = tunnel.wrapping_add(8 + options);
        let carries_ethernet = self.load(u64::from(tunnel) + 2, FieldSize::Half)? == TRANSPARENT_BRIDGING;
        let found = if carries_ethernet {
            [inner.wrapping_add(12), inner, inner.wrapping_add(14)]
        } else {
            [tunnel.wrapping_add(2), inner, inner]
        };
        for (slot, offset) in [link_type, header, payload].into_iter().zip(found) {
            if let Some(place) = self.slots.get_mut(usize::from(slot)) {
                *place = offset;
            }
        }
        Ok(true)
    }
}
