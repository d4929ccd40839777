//! The thread that stands for the PF's interrupt: whoever exits for another reason runs it, one processor at a time. A
//! visit takes at most so many messages, and looks at the registers of function-level resets every so many visits. A VF
//! that was reset has asked for nothing: what it sent before is dropped. Left out: what a message asks for.

use super::admin::{Firmware, Found, Message, Queue, VFS};

/// How much a visit may do.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    /// Messages of a visit.
    pub(crate) messages: u32,
    /// Visits from one look at resets to the next.
    pub(crate) resets_every: u32,
}

/// The thread.
#[derive(Debug)]
pub(crate) struct Monitor {
    queue: Queue,
    limits: Limits,
    visits: u32,
    /// A processor is in it.
    entered: bool,
    /// For each VF: messages up to this one, counted over all VFs, are from before its reset.
    cancelled: Vec<u64>,
    /// Messages dropped for a reset, and descriptors that were none.
    pub(crate) dropped: u64,
    pub(crate) strange: u64,
}

/// What a visit found.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Visit {
    /// Requests to be answered, in order.
    pub(crate) served: Vec<Message>,
    /// Whether registers of resets were read.
    pub(crate) looked_for_resets: bool,
    /// The tail register was written.
    pub(crate) wrote_tail: bool,
}

impl Monitor {
    /// A thread for a queue.
    pub(crate) fn new(queue: Queue, limits: Limits) -> Self {
        let cancelled = vec![0; VFS.into()];
        Self { queue, limits, visits: 0, entered: false, cancelled, dropped: 0, strange: 0 }
    }

    /// A processor enters; `false` if another is in it.
    pub(crate) fn enter(&mut self) -> bool {
        !core::mem::replace(&mut self.entered, true)
    }

    /// It leaves.
    pub(crate) fn leave(&mut self) {
        self.entered = false;
    }

    /// One visit by who has entered. `resets` are the registers' bits, of VFs that were reset since they were read last.
    pub(crate) fn visit(&mut self, ring: &mut [u8], card: &mut Firmware, resets: &mut u128) -> Visit {
        let mut visit = Visit::default();
        self.visits += 1;
        if self.visits >= self.limits.resets_every {
            self.visits = 0;
            visit.looked_for_resets = true;
            let reset = core::mem::take(resets);
            for vf in (0..VFS).filter(|vf| reset >> vf & 1 == 1) {
                self.cancelled[usize::from(vf)] = card.written;
            }
        }
        let before = self.queue.taken;
        while self.queue.taken - before < u64::from(self.limits.messages) {
            match self.queue.take(ring) {
                None => break,
                Some(Found::Other(_)) => self.strange += 1,
                Some(Found::Message(message))
                    if self.queue.taken <= self.cancelled[usize::from(message.vf)] =>
                {
                    self.dropped += 1;
                }
                Some(Found::Message(message)) => visit.served.push(message),
            }
        }
        if self.queue.taken > before {
            visit.wrote_tail = true;
            card.set_tail(self.queue.tail());
        }
        visit
    }
}
