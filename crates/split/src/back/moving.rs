//! An interface goes to another worker, and nothing of it is left behind: its worker takes no more requests of it and
//! finishes what it has begun; frames that come meanwhile wait. Then the other worker has it, with all that waits, in
//! order. So each ring has one worker at any time, and pages are released by the worker that mapped them. Left out: who
//! goes where ([`crate::dispatch`]), and the event channel, which whoever runs the workers binds anew.

use super::{Backend, Vif};
use core::fmt::Debug;

impl<M: Copy + Debug> Backend<M> {
    /// An interface is to go to another worker. `false` if it is there, or on its way, or either does not exist.
    pub fn move_to(&mut self, vif: Vif, worker: usize) -> bool {
        let known = worker < self.workers.len();
        let Some(interface) = self.interfaces.get_mut(usize::from(vif.0)).filter(|_| known) else {
            return false;
        };
        if interface.target.is_some() || interface.worker == worker {
            return false;
        }
        interface.target = Some(worker);
        if core::mem::take(&mut interface.in_line) {
            interface.heard = true;
            self.workers[interface.worker].line.retain(|other| *other != vif);
        }
        true
    }

    /// Whether an interface is on its way and its worker has nothing of it any more: no frame to copy, no page to
    /// release, no event to send.
    #[must_use]
    pub fn is_drained(&self, vif: Vif) -> bool {
        let found = self.interfaces.get(usize::from(vif.0)).filter(|interface| interface.target.is_some());
        found.is_some_and(|interface| {
            interface.queued == 0 && interface.unanswered == 0 && !interface.is_withheld
        })
    }

    /// A drained interface is its new worker's: which that is. `None` if it is not drained.
    pub fn arrive(&mut self, vif: Vif) -> Option<usize> {
        if !self.is_drained(vif) {
            return None;
        }
        let interface = self.interface(vif);
        let worker = interface.target.take()?;
        interface.worker = worker;
        interface.queued = interface.held.len() as u32;
        let heard = core::mem::take(&mut interface.heard);
        while let Some(key) = self.interface(vif).held.pop_front() {
            self.workers[worker].queue.push_back(key);
        }
        if heard {
            self.event(vif);
        }
        Some(worker)
    }
}
