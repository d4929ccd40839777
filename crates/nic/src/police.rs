//! Anti-spoofing and malicious driver protection: frames that a pool may not send, and malformed packets. The port counts
//! both, shows them in registers (WVBR, LVMMC, MDFB, SSVPC), and notifies the PF by ICR.DOUTSYNC. The PF's driver decides
//! what to do.

use crate::work::FramePathState;
use i82576::QueueIndex;
use i82576::bits::{dtxctl, icr, lvmmc, wvbr};
use i82576::register as r;
use pcie::Bus;
use plane::switch::SwitchDropReason;

impl<B: Bus> FramePathState<'_, B> {
    /// Reports in WVBR, SSVPC and LVMMC that anti-spoofing dropped a frame of a queue. The PF gets an interrupt if
    /// DTXCTL.SPOOF_INT is set.
    #[cold]
    pub(crate) fn refused(&mut self, queue: QueueIndex, reason: SwitchDropReason) {
        if matches!(reason, SwitchDropReason::SourceSpoofed | SwitchDropReason::VlanSpoofed) {
            self.file.update(r::WVBR, 0, bit(queue));
            self.file.count(r::SSVPC, 1);
            self.report(queue, lvmmc::SPOOFED, self.file.get(r::DTXCTL) & dtxctl::SPOOF_INT != 0);
        }
    }

    /// Reports a malformed packet of a queue. Malicious driver protection (DTXCTL.MDP_EN) then blocks the queue until the PF
    /// frees it (MDFB) or the queue's function is reset.
    #[cold]
    pub(crate) fn misbehaved(&mut self, queue: QueueIndex, cause: u32) {
        if self.file.get(r::DTXCTL) & dtxctl::MDP_EN != 0 {
            self.file.update(r::MDFB, 0, bit(queue));
            self.file.update(r::WVBR, 0, bit(queue) << wvbr::BLOCKED_SHIFT);
            self.report(queue, cause, true);
        }
    }

    /// Stores a queue's violation as the last one in LVMMC, and raises DOUTSYNC if `interrupt`.
    fn report(&mut self, queue: QueueIndex, cause: u32, interrupt: bool) {
        let causes = self.file.get(r::LVMMC) & ((1 << lvmmc::QUEUE_SHIFT) - 1);
        self.file.set(r::LVMMC, causes | cause | u32::from(queue.get()) << lvmmc::QUEUE_SHIFT);
        if interrupt {
            self.interrupts.raise_other(self.file, icr::DOUTSYNC);
        }
    }

    /// Returns true if malicious driver protection has blocked a queue.
    #[inline]
    pub(crate) fn is_blocked(&self, queue: QueueIndex) -> bool {
        self.file.get(r::MDFB) & bit(queue) != 0
    }
}

/// Returns a queue's bit in the registers WVBR and MDFB.
#[inline]
fn bit(queue: QueueIndex) -> u32 {
    1 << queue.get()
}
