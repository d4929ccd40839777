//! Time of the engine's rounds, which the functions pay that cause it (`access_watch`).

use super::PortEngine;
use ::i82576::Time;
use std::time::Duration;

impl PortEngine {
    /// Ends a round whose poll took this time. A poll that took far longer than its counted cost has the next one watched.
    pub(in crate::port) fn end_round(&mut self, took: Duration, now: Time) {
        self.bus.watch.end_round(took, self.card.frame_shares(), now);
    }

    /// Forgets the debts of functions for the measured cost of their accesses: the port has no work that waits for the time.
    pub(in crate::port) fn forget_debts(&mut self) {
        self.card.frame_shares().forget_debts();
    }
}
