//! The thread that stands for the PF's interrupt: whoever exits for another reason runs it, one processor at a time. It
//! visits the PF driver's inbox ([`driver::avf::inbox`]). Left out: what a message asks for.

use super::admin::{Firmware, VFS};
use driver::avf::inbox::Inbox;
use driver::avf::queue::Message;

/// The thread.
#[derive(Debug)]
pub(crate) struct Monitor {
    inbox: Inbox,
    /// A processor is in it.
    entered: bool,
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
    /// A thread for an inbox.
    pub(crate) fn new(inbox: Inbox) -> Self {
        Self { inbox, entered: false }
    }

    /// A processor enters; `false` if another is in it.
    pub(crate) fn enter(&mut self) -> bool {
        !core::mem::replace(&mut self.entered, true)
    }

    /// It leaves.
    pub(crate) fn leave(&mut self) {
        self.entered = false;
    }

    /// Messages dropped for a reset.
    #[cfg(test)]
    pub(crate) fn dropped(&self) -> u64 {
        self.inbox.dropped()
    }

    /// One visit by who has entered. `resets` are the registers' bits, of VFs that were reset since they were read last.
    pub(crate) fn visit(&mut self, ring: &mut [u8], card: &mut Firmware, resets: &mut u128) -> Visit {
        let mut visit = Visit { looked_for_resets: self.inbox.begin(), ..Visit::default() };
        if visit.looked_for_resets {
            let reset = core::mem::take(resets);
            (0..VFS).filter(|vf| reset >> vf & 1 == 1).for_each(|vf| self.inbox.cancel(vf, ring));
        }
        visit.served.extend(core::iter::from_fn(|| self.inbox.next(ring)));
        if let Some(tail) = self.inbox.end() {
            visit.wrote_tail = true;
            card.set_tail(tail);
        }
        visit
    }
}
