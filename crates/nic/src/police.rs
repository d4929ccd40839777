//! What the port does about those who do what they must not: frames that a pool may not send, queues that hand over
//! and nonsense that queues hand over. All of it is counted, shown in registers, and told to the PF by a cause of ICR.
//!
//! Left out: what the PF makes of it, which is the driver's policy.

use crate::work::Work;
use i82576::Queue;
use i82576::bits::{dtxctl, icr, lvmmc, wvbr};
use i82576::register as r;
use pcie::Bus;
use plane::switch::Reason;

impl<B: Bus> Work<'_, B> {
    /// A frame was dropped for what its sender may not do, which is reported.
    #[cold]
    pub(crate) fn refused(&mut self, queue: Queue, reason: Reason) {
        if matches!(reason, Reason::SourceSpoofed | Reason::VlanSpoofed) {
            self.file.update(r::WVBR, 0, bit(queue));
            self.file.count(r::SSVPC, 1);
            self.report(queue, lvmmc::SPOOFED, self.file.get(r::DTXCTL) & dtxctl::SPOOF_INT != 0);
        }
    }

    /// A queue has handed over a packet that makes no sense, which is counted. Under malicious driver protection it is the last
    /// until the PF frees the queue (MDFB) or the queue's function is reset.
    #[cold]
    pub(crate) fn misbehaved(&mut self, queue: Queue, cause: u32) {
        if self.file.get(r::DTXCTL) & dtxctl::MDP_EN != 0 {
            self.file.update(r::MDFB, 0, bit(queue));
            self.file.update(r::WVBR, 0, bit(queue) << wvbr::BLOCKED_SHIFT);
            self.report(queue, cause, true);
        }
    }

    /// The last misbehaviour is kept for whoever asks, and told if somebody wants to be told.
    fn report(&mut self, queue: Queue, cause: u32, tell: bool) {
        let causes = self.file.get(r::LVMMC) & ((1 << lvmmc::QUEUE_SHIFT) - 1);
        self.file.set(r::LVMMC, causes | cause | u32::from(queue.get()) << lvmmc::QUEUE_SHIFT);
        if tell {
            self.interrupts.raise_other(self.file, icr::DOUTSYNC);
        }
    }

    /// Whether a queue was stopped for its misbehaviour.
    #[inline]
    pub(crate) fn is_blocked(&self, queue: Queue) -> bool {
        self.file.get(r::MDFB) & bit(queue) != 0
    }
}

/// A queue's bit in WVBR and MDFB.
#[inline]
fn bit(queue: Queue) -> u32 {
    1 << queue.get()
}
