//! Counters of a port that continue from process to process. A port saves the counters that it publishes, and its
//! successor process adds the counts that its own counters lack. After a hand-over no count is missing. After a crash,
//! counts since the last status are missing.

use super::carried::SavedRecord;
use crate::control::export::ExportedCounters;
use crate::control::status::PortStatus;
use crate::state;
use crate::totals::PortCounterTotals;
use crate::vault::PortFileDescriptorStore;
use pcie::VfIndex;

/// Name under which the memory of saved counters is kept for the successor process.
const NAME: &str = "counters";

/// Counts of a port's earlier processes, and the memory in which the sums are saved for the successor process.
#[derive(Debug, Default)]
pub(super) struct PredecessorCounters {
    /// Counts of earlier processes that this process's own counters do not include.
    predecessors: PortCounterTotals,
    /// Memory in which the counters are saved for the successor process. Without it the successor counts from 0.
    notes: Option<SavedRecord>,
}

impl PredecessorCounters {
    /// Opens the memory of saved counters. Returns the counters that the previous host process saved there.
    pub(super) fn open(&mut self, port: &str, vault: &PortFileDescriptorStore) -> Option<PortCounterTotals> {
        let Some(notes) = SavedRecord::open(NAME, vault) else {
            tracing::error!(
                port,
                "cannot save the counters of the port; the counters restart at 0 in the successor process"
            );
            return None;
        };
        let noted = notes.read().map(|note| state::read::<PortCounterTotals>(&note));
        self.notes = Some(notes);
        noted?
            .inspect_err(|error| {
                tracing::warn!(port, %error, "cannot read the port's saved counters; its counters restart at 0");
            })
            .ok()
    }

    /// Continues the counters `noted` that the previous host process saved. `own` holds those of this process.
    pub(super) fn carry_over(&mut self, noted: PortCounterTotals, own: &PortCounterTotals) {
        self.predecessors = noted.beyond(own);
    }

    /// Continues the counters of a VF from those of another host's VF. `own` holds the counters of this process.
    pub(super) fn import(&mut self, vf: VfIndex, counters: ExportedCounters, own: &PortStatus) {
        self.predecessors.import(vf.get(), counters, own);
    }

    /// Adds the counters of previous host processes to a port's status.
    pub(super) fn add_to(&self, status: &mut PortStatus) {
        self.predecessors.add_to(status);
    }

    /// Saves the sums of this and earlier processes' counters for the successor process.
    pub(super) fn note(&self, totals: &PortCounterTotals) {
        if let (Some(notes), Ok(note)) = (&self.notes, state::write(totals)) {
            notes.write(&note);
        }
    }

    /// Resets the uplink's counts of earlier processes, because the port has another uplink now.
    pub(super) fn forget_uplink(&mut self) {
        self.predecessors.forget_uplink();
    }
}
