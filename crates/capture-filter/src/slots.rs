//! Checks that a test reads a slot only where `geneve` has stored an offset in it; libpcap would read uninitialized
//! memory there.

use crate::error::{FilterError, refuse};
use crate::node::{ComputedNumber, FilterNode, FrameField, GenevePredicate, NumberComparison, OffsetSlot};

/// Set of the offset slots in which the filter has stored an offset, a bit for each.
type StoredSlots = u32;

/// Two sets of offset slots that hold an offset after a test: the set after a true test, and the set after a false one.
#[derive(Clone, Copy)]
struct StoredSlotsByOutcome {
    if_true: StoredSlots,
    if_false: StoredSlots,
}

/// Refuses a filter with a test that reads inside a Geneve packet but may also run for packets without Geneve.
pub(crate) fn check(filter: &FilterNode) -> Result<(), FilterError> {
    match behind(filter, 0) {
        Some(_) => Ok(()),
        None => refuse!(
            "a test after geneve reads inside geneve packets only: join the tests after geneve by `and`, and \
             write the tests of other packets before geneve, as in: tcp or geneve and udp"
        ),
    }
}

/// Returns the offset slots with a stored offset after a test, or `None` if the test reads a slot without one.
fn behind(node: &FilterNode, stored: StoredSlots) -> Option<StoredSlotsByOutcome> {
    let same = StoredSlotsByOutcome { if_true: stored, if_false: stored };
    let reads = |slot: OffsetSlot| (stored & bit(slot) != 0).then_some(same);
    match node {
        FilterNode::All(nodes) => nodes.iter().try_fold(
            StoredSlotsByOutcome { if_true: stored, if_false: StoredSlots::MAX },
            |before, node| {
                let StoredSlotsByOutcome { if_true, if_false } = behind(node, before.if_true)?;
                Some(StoredSlotsByOutcome { if_true, if_false: before.if_false & if_false })
            },
        ),
        FilterNode::Any(nodes) => nodes.iter().try_fold(
            StoredSlotsByOutcome { if_true: StoredSlots::MAX, if_false: stored },
            |before, node| {
                let StoredSlotsByOutcome { if_true, if_false } = behind(node, before.if_false)?;
                Some(StoredSlotsByOutcome { if_true: before.if_true & if_true, if_false })
            },
        ),
        FilterNode::Not(node) => {
            let StoredSlotsByOutcome { if_true, if_false } = behind(node, stored)?;
            Some(StoredSlotsByOutcome { if_true: if_false, if_false: if_true })
        }
        FilterNode::Compare(NumberComparison { left, right, .. }) => {
            (is_stored(left, stored) && is_stored(right, stored)).then_some(same)
        }
        FilterNode::Geneve(GenevePredicate { outer, link_type, header, payload, .. }) => {
            outer.slot.is_none_or(|slot| stored & bit(slot) != 0).then_some(StoredSlotsByOutcome {
                if_true: stored | bit(*link_type) | bit(*header) | bit(*payload),
                // Never false.
                if_false: StoredSlots::MAX,
            })
        }
        FilterNode::Differ(one, other) => reads(*one).and(reads(*other)),
        FilterNode::Chain(_) | FilterNode::True => Some(same),
    }
}

fn is_stored(value: &ComputedNumber, stored: StoredSlots) -> bool {
    match value {
        ComputedNumber::Number(_) | ComputedNumber::Length => true,
        ComputedNumber::Negate(value) => is_stored(value, stored),
        ComputedNumber::Binary(_, both) => is_stored(&both.0, stored) && is_stored(&both.1, stored),
        ComputedNumber::Field(FrameField { offset, ipv4, index, .. }) => {
            let slots = [offset.slot, ipv4.and_then(|header| header.slot)];
            slots.into_iter().flatten().all(|slot| stored & bit(slot) != 0)
                && index.as_ref().is_none_or(|index| is_stored(index, stored))
        }
    }
}

fn bit(slot: OffsetSlot) -> StoredSlots {
    1 << slot
}
