//! The monitor thread that replaces the PF's interrupt: a processor that takes a VM exit for another reason runs the
//! thread, one processor at a time. The thread polls the PF driver's inbox ([`driver::avf::inbox`]).

use super::admin::{AdminQueueFirmware, VFS};
use driver::avf::inbox::VfMessageInbox;
use driver::avf::queue::MessageFromVf;

/// Thread that polls the PF driver's inbox.
#[derive(Debug)]
pub(crate) struct PfInboxThread {
    inbox: VfMessageInbox,
    /// A processor is running the monitor thread.
    entered: bool,
}

/// Results of one poll of the PF driver's inbox by the monitor thread.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct PfInboxPollResult {
    /// VF requests that the PF driver has to answer, in order.
    pub(crate) served: Vec<MessageFromVf>,
    /// The monitor thread has read the registers that report resets of VFs.
    pub(crate) checked_resets: bool,
    /// The monitor thread has written the admin queue's tail register.
    pub(crate) wrote_tail: bool,
}

impl PfInboxThread {
    /// Creates the monitor thread of an inbox.
    pub(crate) fn new(inbox: VfMessageInbox) -> Self {
        Self { inbox, entered: false }
    }

    /// Enters the monitor thread. Returns `false` if another processor is in the thread.
    pub(crate) fn enter(&mut self) -> bool {
        !core::mem::replace(&mut self.entered, true)
    }

    /// Releases the monitor thread, so that another processor can enter it.
    pub(crate) fn leave(&mut self) {
        self.entered = false;
    }

    /// Returns the number of VF messages dropped because their VF was reset.
    #[cfg(test)]
    pub(crate) fn dropped(&self) -> u64 {
        self.inbox.dropped()
    }

    /// Polls the PF driver's inbox on the processor that entered the monitor thread. `resets` are the register bits of
    /// VFs reset since the last read.
    pub(crate) fn visit(
        &mut self,
        ring: &mut [u8],
        card: &mut AdminQueueFirmware,
        resets: &mut u128,
    ) -> PfInboxPollResult {
        let mut visit =
            PfInboxPollResult { checked_resets: self.inbox.begin(), ..PfInboxPollResult::default() };
        if visit.checked_resets {
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
