//! What the port does about those who do what they must not: frames that a pool may not send, queues that hand over
//! nonsense, and storms. All of it is counted, shown in registers, and told to the PF by a cause of ICR.
//!
//! Left out: what the PF makes of it, which is the driver's policy.

use crate::Nic;
use crate::policy::storm;
use crate::work::Work;
use i82576::bits::{dtxctl, icr, lvmmc, wvbr};
use i82576::register as r;
use i82576::{Queue, Time};
use pcie::Bus;
use plane::switch::Reason;

impl<B: Bus> Work<'_, B> {
    /// A frame was dropped for what its sender may not do, which is reported.
    #[cold]
    pub(crate) fn refused(&mut self, queue: Queue, reason: Reason) {
        if matches!(reason, Reason::SourceSpoofed | Reason::VlanSpoofed) {
            self.state.file.update(r::WVBR, 0, bit(queue));
            self.state.file.count(r::SSVPC, 1);
            self.report(queue, lvmmc::SPOOFED, self.state.file.get(r::DTXCTL) & dtxctl::SPOOF_INT != 0);
        }
    }

    /// A queue has handed over a packet that makes no sense, which is counted. Under malicious driver protection it is the last
    /// until the PF frees the queue (MDFB) or the queue's function is reset.
    #[cold]
    pub(crate) fn misbehaved(&mut self, queue: Queue, cause: u32) {
        if self.state.file.get(r::DTXCTL) & dtxctl::MDP_EN != 0 {
            self.state.file.update(r::MDFB, 0, bit(queue));
            self.state.file.update(r::WVBR, 0, bit(queue) << wvbr::BLOCKED_SHIFT);
            self.report(queue, cause, true);
        }
    }

    /// The last misbehaviour is kept for whoever asks, and told if somebody wants to be told.
    fn report(&mut self, queue: Queue, cause: u32, tell: bool) {
        let causes = self.state.file.get(r::LVMMC) & ((1 << lvmmc::QUEUE_SHIFT) - 1);
        self.state.file.set(r::LVMMC, causes | cause | u32::from(queue.get()) << lvmmc::QUEUE_SHIFT);
        if tell {
            self.state.interrupts.raise_other(&mut self.state.file, icr::DOUTSYNC);
        }
    }

    /// Whether a queue was stopped for its misbehaviour.
    #[inline]
    pub(crate) fn is_blocked(&self, queue: Queue) -> bool {
        self.state.file.get(r::MDFB) & bit(queue) != 0
    }
}

impl Nic {
    /// Lets the windows of storm control pass up to `now`.
    pub(crate) fn pass_storm_windows(&mut self, now: Time) {
        if storm::is_limited(&self.state.file) {
            self.plane.storm.advance(now);
            storm::show_intervals(&self.plane.storm, &mut self.state.file, now);
            self.show_storm();
        }
    }

    /// Shows what storm control has seen, and tells if a storm has come or gone since it was shown.
    pub(crate) fn show_storm(&mut self) {
        if storm::is_limited(&self.state.file) {
            let before = self.state.file.get(r::SCSTS) != 0;
            storm::show(&self.plane.storm, &mut self.state.file);
            if before != self.plane.storm.is_on() {
                self.state.interrupts.raise_other(&mut self.state.file, icr::SCE);
            }
        }
    }

    /// When a storm may be over though nobody sends. Without a limit no window passes, whatever the registers show.
    pub(crate) fn end_of_storm_window(&self) -> Option<Time> {
        let passes = self.plane.storm.is_on() && storm::is_limited(&self.state.file);
        passes.then(|| self.plane.storm.ends())
    }

    /// Storm control as its registers have it.
    pub(crate) fn load_storm(&mut self) {
        self.plane.storm = storm::load(&self.state.file, self.plane.storm.began);
    }

    /// A register of this stop was written.
    pub(crate) fn police_written(&mut self, offset: u32, value: u32, now: Time) {
        match offset {
            // Who was let go may have been waiting.
            r::MDFB => self.state.tx_ready |= value as u16,
            r::SCCRL | r::SCBI | r::BSCTRH | r::MSCTRH => {
                self.load_storm();
                self.plane.storm.restart(now);
                storm::show(&self.plane.storm, &mut self.state.file);
                self.state.file.set(r::SCTC, 0);
            }
            _ => {}
        }
    }
}

/// A queue's bit in WVBR and MDFB.
#[inline]
fn bit(queue: Queue) -> u32 {
    1 << queue.get()
}
