//! Checks that a test reads a slot only where `geneve` has stored it; libpcap would read uninitialized memory there.

use crate::error::{FilterError, refuse};
use crate::node::{Compare, Field, GeneveOffsets, Node, Slot, Value};

/// Set of stored slots, a bit each.
type Stored = u32;

/// Slots that are stored after a test that is true, and after one that is false.
#[derive(Clone, Copy)]
struct Behind {
    if_true: Stored,
    if_false: Stored,
}

/// Refuses a filter with a test that may be reached without the `geneve` before it.
pub(crate) fn check(filter: &Node) -> Result<(), FilterError> {
    match behind(filter, 0) {
        Some(_) => Ok(()),
        None => refuse!(
            "a test after geneve reads inside geneve packets only: join the tests after geneve by `and`, and \
             write the tests of other packets before geneve, as in: tcp or geneve and udp"
        ),
    }
}

/// Returns the slots stored after a test, or `None` if it reads a slot that is not stored.
fn behind(node: &Node, stored: Stored) -> Option<Behind> {
    let same = Behind { if_true: stored, if_false: stored };
    let reads = |slot: Slot| (stored & bit(slot) != 0).then_some(same);
    match node {
        Node::All(nodes) => {
            nodes.iter().try_fold(Behind { if_true: stored, if_false: Stored::MAX }, |before, node| {
                let Behind { if_true, if_false } = behind(node, before.if_true)?;
                Some(Behind { if_true, if_false: before.if_false & if_false })
            })
        }
        Node::Any(nodes) => {
            nodes.iter().try_fold(Behind { if_true: Stored::MAX, if_false: stored }, |before, node| {
                let Behind { if_true, if_false } = behind(node, before.if_false)?;
                Some(Behind { if_true: before.if_true & if_true, if_false })
            })
        }
        Node::Not(node) => {
            let Behind { if_true, if_false } = behind(node, stored)?;
            Some(Behind { if_true: if_false, if_false: if_true })
        }
        Node::Compare(Compare { left, right, .. }) => {
            (is_stored(left, stored) && is_stored(right, stored)).then_some(same)
        }
        Node::Geneve(GeneveOffsets { outer, link_type, header, payload, .. }) => {
            outer.slot.is_none_or(|slot| stored & bit(slot) != 0).then_some(Behind {
                if_true: stored | bit(*link_type) | bit(*header) | bit(*payload),
                // Never false.
                if_false: Stored::MAX,
            })
        }
        Node::Differ(one, other) => reads(*one).and(reads(*other)),
        Node::Chain(_) | Node::True => Some(same),
    }
}

fn is_stored(value: &Value, stored: Stored) -> bool {
    match value {
        Value::Number(_) | Value::Length => true,
        Value::Negate(value) => is_stored(value, stored),
        Value::Binary(_, both) => is_stored(&both.0, stored) && is_stored(&both.1, stored),
        Value::Field(Field { offset, ipv4, index, .. }) => {
            let slots = [offset.slot, ipv4.and_then(|header| header.slot)];
            slots.into_iter().flatten().all(|slot| stored & bit(slot) != 0)
                && index.as_ref().is_none_or(|index| is_stored(index, stored))
        }
    }
}

fn bit(slot: Slot) -> Stored {
    1 << slot
}
