//! What the port does about those who do what they must not: frames that a pool may not send, queues that hand over
//! nonsense, and storms. All of it is counted, shown in registers, and told to the PF by a cause of ICR.
//!
//! Left out: what the PF makes of it, which is the driver's policy.

use crate::Nic;
use crate::switch::{Decision, Reason, Storm};
use i82576::bits::{dtxctl, icr, lvmmc, wvbr};
use i82576::register as r;
use i82576::{MacAddress, Queue, Time};

impl Nic {
    /// Whether a frame is dropped for what its sender may not do, which is counted and reported.
    #[cold]
    pub(crate) fn blocks(&mut self, queue: Queue, reason: Reason) -> bool {
        let counters = &mut self.state.counters[usize::from(queue.pool())];
        match reason {
            Reason::Unwanted | Reason::OnlySender | Reason::Disabled | Reason::TooLong => return false,
            Reason::LinkControl => counters.tx_link_control += 1,
            Reason::SourceSpoofed | Reason::VlanSpoofed => {
                counters.tx_spoofed += 1;
                self.state.file.update(r::WVBR, 0, bit(queue));
                self.state.file.count(r::SSVPC, 1);
                self.report(queue, lvmmc::SPOOFED, self.state.file.get(r::DTXCTL) & dtxctl::SPOOF_INT != 0);
            }
        }
        self.state.counters[usize::from(queue.pool())].tx_blocked += 1;
        true
    }

    /// A queue has handed over a packet that makes no sense. Under malicious driver protection it is the last
    /// until the PF frees the queue (MDFB) or the queue's function is reset.
    #[cold]
    pub(crate) fn misbehaved(&mut self, queue: Queue, cause: u32) {
        self.state.counters[usize::from(queue.pool())].tx_invalid += 1;
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
    pub(crate) fn is_blocked(&self, queue: Queue) -> bool {
        self.state.file.get(r::MDFB) & bit(queue) != 0
    }

    /// Keeps a frame from pools, mirrors among them, while there is a storm of its kind.
    #[cold]
    pub(crate) fn control_storm(&mut self, dst: MacAddress, decision: &mut Decision, length: usize) {
        let before = Storm::is_on(&self.state.file);
        if !self.state.storm.admits(&mut self.state.file, dst, &self.derived.tables, length) {
            for (pool, counters) in (0..).zip(&mut self.state.counters) {
                counters.rx_storm += u64::from(decision.pools >> pool & 1);
            }
            decision.pools = 0;
        }
        self.tell_of_storm(before);
    }

    /// Lets the windows of storm control pass up to `now`.
    pub(crate) fn pass_storm_windows(&mut self, now: Time) {
        if self.state.file.get(r::BSCTRH) | self.state.file.get(r::MSCTRH) != 0 {
            let before = Storm::is_on(&self.state.file);
            self.state.storm.advance(&mut self.state.file, now);
            self.tell_of_storm(before);
        }
    }

    fn tell_of_storm(&mut self, before: bool) {
        if before != Storm::is_on(&self.state.file) {
            self.state.interrupts.raise_other(&mut self.state.file, icr::SCE);
        }
    }

    /// A register of this stop was written.
    pub(crate) fn police_written(&mut self, offset: u32, value: u32, now: Time) {
        match offset {
            // Who was let go may have been waiting.
            r::MDFB => self.state.tx_ready |= value as u16,
            r::SCCRL | r::SCBI | r::BSCTRH | r::MSCTRH => self.state.storm.restart(&mut self.state.file, now),
            _ => {}
        }
    }
}

/// A queue's bit in WVBR and MDFB.
fn bit(queue: Queue) -> u32 {
    1 << queue.get()
}
