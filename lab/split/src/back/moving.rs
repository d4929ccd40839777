//! Moves a network interface to another back-end worker thread. The old worker takes no more requests of the interface,
//! and finishes the pending ones; frames that arrive during the move wait. The new worker then takes over the interface
//! and the waiting frames, in order. So each ring has one worker at any time, and the worker that mapped a page unmaps
//! it. [`crate::dispatch`] decides on moves; the caller rebinds the event channel.

use super::{NetworkBackend, VifIndex};
use core::fmt::Debug;

impl<M: Copy + Debug> NetworkBackend<M> {
    /// Starts to move an interface to another back-end worker thread. Returns `false` if that worker serves the
    /// interface already, if the interface is moving, or if interface or worker does not exist.
    pub fn start_move(&mut self, vif: VifIndex, worker: usize) -> bool {
        let known = worker < self.workers.len();
        let Some(interface) = self.interfaces.get_mut(usize::from(vif.0)).filter(|_| known) else {
            return false;
        };
        if interface.target.is_some() || interface.worker == worker {
            return false;
        }
        interface.target = Some(worker);
        if core::mem::take(&mut interface.is_ready) {
            interface.event_arrived = true;
            self.workers[interface.worker].ready.retain(|other| *other != vif);
        }
        true
    }

    /// Returns `true` if the old worker of a moving interface is done: no frame to copy, no page to release, no event
    /// to send.
    #[must_use]
    pub fn is_drained(&self, vif: VifIndex) -> bool {
        let found = self.interfaces.get(usize::from(vif.0)).filter(|interface| interface.target.is_some());
        found.is_some_and(|interface| {
            interface.queued == 0 && interface.unanswered == 0 && !interface.event_withheld
        })
    }

    /// Hands a drained interface to its new worker, and returns that worker. Returns `None` if the interface is not
    /// drained.
    pub fn finish_move(&mut self, vif: VifIndex) -> Option<usize> {
        if !self.is_drained(vif) {
            return None;
        }
        let interface = self.interface(vif);
        let worker = interface.target.take()?;
        interface.worker = worker;
        interface.queued = interface.waiting.len() as u32;
        let event_arrived = core::mem::take(&mut interface.event_arrived);
        while let Some(key) = self.interface(vif).waiting.pop_front() {
            self.workers[worker].queue.push_back(key);
        }
        if event_arrived {
            self.event(vif);
        }
        Some(worker)
    }
}
