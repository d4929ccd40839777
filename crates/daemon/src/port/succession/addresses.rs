//! Addresses that the VFs of a port hold, from process to process. The port saves them with each change, so the successor process has
//! them after a hand-over and after a crash, and gives them to no other VF.

use super::carried::SavedRecord;
use crate::port::engine::PortEngine;
use crate::state::{self, HeldAddresses};
use crate::vault::PortFileDescriptorStore;
use std::os::fd::AsFd;

/// Name under which the memory of saved addresses is kept for the successor process.
const NAME: &str = "addresses";

/// Returns the addresses that the VFs have held in the previous host process.
pub(super) fn of_predecessor(vault: &PortFileDescriptorStore) -> HeldAddresses {
    let Some(noted) = vault.copy_named(NAME).and_then(|left| SavedRecord::open(Some(left))?.read()) else {
        return HeldAddresses::default();
    };
    let unread = |error: &state::SavedStateError| {
        tracing::warn!(port = vault.port(), %error, "cannot read the saved addresses of VFs; other VFs may claim them");
    };
    state::read(&noted).inspect_err(unread).unwrap_or_default()
}

/// Memory in which a port saves the addresses that its VFs hold.
#[derive(Debug, Default)]
pub(super) struct HeldAddressRecord {
    notes: Option<SavedRecord>,
    /// Number of changes of the addresses when they were last saved.
    saved: Option<u64>,
}

impl HeldAddressRecord {
    /// Opens the memory of saved addresses.
    pub(super) fn open(&mut self, vault: &PortFileDescriptorStore) {
        let left = vault.copy_named(NAME);
        let is_new = left.is_none();
        self.notes = SavedRecord::open(left);
        match &self.notes {
            Some(notes) if is_new => vault.keep_named(NAME, notes.as_fd()),
            Some(_) => {}
            None => tracing::error!(
                port = vault.port(),
                "cannot save the addresses of the port's VFs; after a restart other VFs may claim them"
            ),
        }
    }

    /// Saves the addresses that the VFs hold, if they have changed.
    pub(super) fn note(&mut self, engine: &PortEngine) {
        let changes = Some(engine.held_changes());
        if let Some(notes) = self.notes.as_ref().filter(|_| self.saved != changes) {
            self.saved = changes;
            if let Ok(note) = state::write(&engine.held_addresses()) {
                notes.write(&note);
            }
        }
    }
}
