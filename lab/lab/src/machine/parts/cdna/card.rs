//! The CDNA card: contexts with a mailbox page each, mapped to one guest. A mailbox write publishes the
//! producer index; the card takes a descriptor only with the next sequence number. A violation stops only its
//! context. [`super::bits`] has the interrupts; frame times are the wire's.

use super::guard::CdnaGuardedRing;
use super::{GuestNumber, PageBuffer, RING, SEQUENCES};

/// Maximum number of contexts of a CDNA card.
pub(crate) const CONTEXTS: usize = 128;

/// Reason why the CDNA card stopped a context.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CdnaContextFault {
    /// The producer index is behind the consumer index or more than a ring ahead of it.
    Producer(u32),
    /// A descriptor did not have the expected sequence number.
    Sequence(u32),
}

/// Producer index and consumer index of a transmit or receive ring of a CDNA context.
#[derive(Debug, Default)]
struct CdnaContextQueue {
    produced: u32,
    consumed: u32,
}

/// Context of a CDNA card: the domain that its mailbox is mapped to, and its two queues.
#[derive(Debug)]
struct CdnaContext {
    mapped_to: GuestNumber,
    queues: [CdnaContextQueue; 2],
    fault: Option<CdnaContextFault>,
}

/// Index of a CDNA context's transmit queue.
pub(crate) const TRANSMIT: usize = 0;
/// Index of a CDNA context's receive queue.
pub(crate) const RECEIVE: usize = 1;

/// CDNA network card with a context for each guest.
#[derive(Debug, Default)]
pub(crate) struct CdnaCard {
    contexts: Vec<Option<CdnaContext>>,
    /// Number of writes to mailbox pages not mapped to the writer.
    pub(crate) stray_writes: u64,
}

impl CdnaCard {
    /// Assigns the next context and maps its mailbox page to a domain. Returns `None` if all contexts are
    /// assigned.
    pub(crate) fn assign(&mut self, to: GuestNumber) -> Option<usize> {
        if self.contexts.len() == CONTEXTS {
            return None;
        }
        self.contexts.push(Some(CdnaContext { mapped_to: to, queues: Default::default(), fault: None }));
        Some(self.contexts.len() - 1)
    }

    /// Handles a domain's write to a context's mailbox. Returns `false` for a mailbox of another domain: the
    /// write faults in the guest.
    pub(crate) fn mailbox(&mut self, by: GuestNumber, context: usize, direction: usize, index: u32) -> bool {
        let found = self.contexts.get_mut(context).and_then(Option::as_mut);
        let Some(found) = found.filter(|found| found.mapped_to == by) else {
            self.stray_writes += 1;
            return false;
        };
        let queue = &mut found.queues[direction & 1];
        if index.wrapping_sub(queue.consumed) > RING || index.wrapping_sub(queue.produced) > RING {
            found.fault.get_or_insert(CdnaContextFault::Producer(index));
        } else {
            queue.produced = index;
        }
        true
    }

    /// Returns `true` if the context's ring for `direction` has published descriptors that the card has not
    /// taken yet.
    pub(crate) fn has(&self, context: usize, direction: usize) -> bool {
        self.context(context).is_some_and(|found| {
            let queue = &found.queues[direction & 1];
            found.fault.is_none() && queue.produced != queue.consumed
        })
    }

    /// Takes the next descriptor of a context from its ring, or stops the context if the descriptor's
    /// sequence number is wrong.
    pub(crate) fn take(
        &mut self,
        context: usize,
        direction: usize,
        ring: &CdnaGuardedRing,
    ) -> Option<PageBuffer> {
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
                found.fault.get_or_insert(CdnaContextFault::Sequence(due));
                None
            }
        }
    }

    /// Returns the number of descriptors that the card has completed in one ring of a CDNA context.
    pub(crate) fn consumed(&self, context: usize, direction: usize) -> u32 {
        self.context(context).map_or(0, |found| found.queues[direction & 1].consumed)
    }

    /// Returns the reason why the card stopped a context, or `None` if the card did not stop the context.
    pub(crate) fn fault(&self, context: usize) -> Option<CdnaContextFault> {
        self.context(context).and_then(|found| found.fault)
    }

    /// Removes a context from the card, which accesses none of its memory afterwards.
    pub(crate) fn quiesce(&mut self, context: usize) {
        if let Some(found) = self.contexts.get_mut(context) {
            *found = None;
        }
    }

    fn context(&self, context: usize) -> Option<&CdnaContext> {
        self.contexts.get(context).and_then(Option::as_ref)
    }
}
