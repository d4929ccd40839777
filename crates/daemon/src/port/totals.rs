//! Counters that never fall: a port notes what it publishes, and a successor adds what its own counters lack of it. After a
//! hand-over nothing is missing; after a crash, counts since the last reader. Left out: the memory (`carried`).

use super::Port;
use super::carried::Notes;
use crate::control::status::PortStatus;
use crate::state;
use crate::totals::Totals;
use std::os::fd::AsFd;

/// Name of the notes in the vault.
const NAME: &str = "counters";

impl Port {
    /// Continues the counters that a predecessor has noted, and keeps notes for a successor.
    pub(super) fn carry_counters_over(&mut self) {
        let left = self.vault.copy_named(NAME);
        let is_new = left.is_none();
        let Some(notes) = Notes::open(left) else {
            tracing::error!(port = self.name, "no memory for counters: they restart with the next process");
            return;
        };
        if is_new {
            self.vault.keep_named(NAME, notes.as_fd());
        }
        match notes.read().map(|note| state::read::<Totals>(&note)) {
            Some(Ok(noted)) => {
                self.answers.resume(&noted.answers);
                let status = self.uncarried_status();
                self.carried.predecessors = noted.beyond(&self.totals(&status));
            }
            Some(Err(error)) => tracing::warn!(port = self.name, %error, "counters restart at 0"),
            None => {}
        }
        self.carried.notes = Some(notes);
    }

    /// Adds predecessors' counters to a status, and notes the sums for a successor.
    pub(super) fn publish(&self, status: &mut PortStatus) {
        self.carried.predecessors.add_to(status);
        let Some(notes) = &self.carried.notes else { return };
        if let Ok(note) = state::write(&self.totals(status)) {
            notes.write(&note);
        }
    }

    /// Restarts the uplink's counters: the port has another one.
    pub(super) fn forget_uplink_totals(&mut self) {
        self.carried.predecessors.forget_uplink();
    }

    fn totals(&self, status: &PortStatus) -> Totals {
        Totals::of(status, self.uplink.configured(), self.answers.save())
    }
}
