//! The card: contexts with a mailbox page each, which one guest can write to. A written index says how many
//! descriptors there are; the card takes the next only if it has the next sequence number. What is wrong stops that
//! context and no other. Left out: interrupts ([`super::bits`]), and how long frames take.

use super::guard::Guard;
use super::{Buffer, Domain, RING, SEQUENCES};

/// Contexts that the card can have.
pub(crate) const CONTEXTS: usize = 128;

/// Why a context has stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    /// An index that is behind, or further ahead than there are slots.
    Producer(u32),
    /// A descriptor without the number that was due.
    Sequence(u32),
}

/// One direction of a context.
#[derive(Debug, Default)]
struct Queue {
    produced: u32,
    consumed: u32,
}

/// A context: its mailbox's owner, and both directions.
#[derive(Debug)]
struct Context {
    mapped_to: Domain,
    queues: [Queue; 2],
    fault: Option<Fault>,
}

/// The directions of a context.
pub(crate) const TRANSMIT: usize = 0;
pub(crate) const RECEIVE: usize = 1;

/// The card.
#[derive(Debug, Default)]
pub(crate) struct Card {
    contexts: Vec<Option<Context>>,
    /// Writes to mailbox pages that are not mapped to who wrote.
    pub(crate) stray: u64,
}

impl Card {
    /// Assigns the next context: its mailbox page is mapped to that domain. `None` if all are taken.
    pub(crate) fn assign(&mut self, to: Domain) -> Option<usize> {
        if self.contexts.len() == CONTEXTS {
            return None;
        }
        self.contexts.push(Some(Context { mapped_to: to, queues: Default::default(), fault: None }));
        Some(self.contexts.len() - 1)
    }

    /// A domain writes an index to a mailbox. The page of another is not mapped: the write faults in the guest.
    pub(crate) fn mailbox(&mut self, by: Domain, context: usize, direction: usize, index: u32) -> bool {
        let found = self.contexts.get_mut(context).and_then(Option::as_mut);
        let Some(found) = found.filter(|found| found.mapped_to == by) else {
            self.stray += 1;
            return false;
        };
        let queue = &mut found.queues[direction & 1];
        if index.wrapping_sub(queue.consumed) > RING || index.wrapping_sub(queue.produced) > RING {
            found.fault.get_or_insert(Fault::Producer(index));
        } else {
            queue.produced = index;
        }
        true
    }

    /// Whether a context has a descriptor to look at.
    pub(crate) fn has(&self, context: usize, direction: usize) -> bool {
        self.context(context).is_some_and(|found| {
            let queue = &found.queues[direction & 1];
            found.fault.is_none() && queue.produced != queue.consumed
        })
    }

    /// Takes a context's next descriptor from its ring.
    pub(crate) fn take(&mut self, context: usize, direction: usize, ring: &Guard) -> Option<Buffer> {
        if !self.has(context, direction) {
            return None;
        }
        let found = self.contexts.get_mut(context).and_then(Option::as_mut)?;
        let queue = &mut found.queues[direction & 1];
        let due = queue.consumed % SEQUENCES;
        match ring.slot(queue.consumed) {
            Some(slot) if slot.sequence == due && ring.owner() == found.mapped_to => {
                queue.consumed = queue.consumed.wrapping_add(1);
                Some(slot.buffer)
            }
            _ => {
                found.fault.get_or_insert(Fault::Sequence(due));
                None
            }
        }
    }

    /// How many descriptors the card is done with.
    pub(crate) fn consumed(&self, context: usize, direction: usize) -> u32 {
        self.context(context).map_or(0, |found| found.queues[direction & 1].consumed)
    }

    /// Why a context has stopped, if it has.
    pub(crate) fn fault(&self, context: usize) -> Option<Fault> {
        self.context(context).and_then(|found| found.fault)
    }

    /// Takes a context away: after this the card touches none of its memory.
    pub(crate) fn quiesce(&mut self, context: usize) {
        if let Some(found) = self.contexts.get_mut(context) {
            *found = None;
        }
    }

    fn context(&self, context: usize) -> Option<&Context> {
        self.contexts.get(context).and_then(Option::as_ref)
    }
}
