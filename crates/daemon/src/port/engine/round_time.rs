//! Time of the engine's rounds: for the dispatcher of workers, and for the functions that pay for it (`access_watch`).

use super::PortEngine;
use ::i82576::Time;
use std::time::Duration;

impl PortEngine {
    /// Records for how long the port's thread was busy in a round.
    pub(in crate::port) fn note_busy(&mut self, busy: Duration) {
        if let Some(workers) = self.card.workers() {
            workers.note_busy(busy);
        }
    }

    /// Returns the time at which the dispatcher decides again, while the card is divided.
    pub(in crate::port) fn end_of_window(&mut self) -> Option<Time> {
        self.card.workers().and_then(|workers| workers.deadline())
    }

    /// Ends a round whose poll took this time. A poll that took far longer than its counted cost has the next one watched.
    pub(in crate::port) fn end_round(&mut self, took: Duration, now: Time) {
        self.bus.watch.end_round(took, self.card.frame_shares(), now);
    }

    /// Forgets the debts of functions for the measured cost of their accesses: the port has no work that waits for the time.
    pub(in crate::port) fn forget_debts(&mut self) {
        self.card.frame_shares().forget_debts();
    }
}
