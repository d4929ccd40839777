//! Counters that never fall: a port notes what it publishes, and a successor adds what its own counters lack of it. After a
//! hand-over nothing is missing; after a crash, counts since the last reader. Left out: the memory (`carried`).

use super::carried::Notes;
use crate::control::status::PortStatus;
use crate::state;
use crate::totals::Totals;
use crate::vault::PortVault;
use std::os::fd::AsFd;

/// Name of the notes in the vault.
const NAME: &str = "counters";

/// Counters of predecessors, and notes for a successor.
#[derive(Debug, Default)]
pub(super) struct Counters {
    /// Counts of predecessors beyond those that this process continues itself.
    predecessors: Totals,
    /// Memory for a successor; `None` if there was none to have, and a successor counts from 0.
    notes: Option<Notes>,
}

impl Counters {
    /// Opens the notes for a successor. Returns what a predecessor has noted there.
    pub(super) fn open(&mut self, port: &str, vault: &PortVault) -> Option<Totals> {
        let left = vault.copy_named(NAME);
        let is_new = left.is_none();
        let Some(notes) = Notes::open(left) else {
            tracing::error!(port, "no memory for counters: they restart with the next process");
            return None;
        };
        if is_new {
            vault.keep_named(NAME, notes.as_fd());
        }
        let noted = notes.read().map(|note| state::read::<Totals>(&note));
        self.notes = Some(notes);
        noted?.inspect_err(|error| tracing::warn!(port, %error, "counters restart at 0")).ok()
    }

    /// Continues a predecessor's counters: `own` are those of this process.
    pub(super) fn carry_over(&mut self, noted: Totals, own: &Totals) {
        self.predecessors = noted.beyond(own);
    }

    /// Adds predecessors' counters to a status.
    pub(super) fn add_to(&self, status: &mut PortStatus) {
        self.predecessors.add_to(status);
    }

    /// Notes the sums for a successor.
    pub(super) fn note(&self, totals: &Totals) {
        if let (Some(notes), Ok(note)) = (&self.notes, state::write(totals)) {
            notes.write(&note);
        }
    }

    /// Restarts the uplink's counters: the port has another one.
    pub(super) fn forget_uplink(&mut self) {
        self.predecessors.forget_uplink();
    }
}
