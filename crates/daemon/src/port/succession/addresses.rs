//! Addresses that the VFs of a port hold, from process to process. The port saves them with each change, so the successor
//! process has them after a hand-over and after a crash, and gives them to no other VF.

use super::carried::SavedRecord;
use crate::port::engine::PortEngine;
use crate::state::{self, HeldAddresses};
use crate::vault::PortFileDescriptorStore;

/// Name under which the memory of saved addresses is kept for the successor process.
const NAME: &str = "addresses";

/// Returns the addresses that the VFs have held in the previous host process.
pub(super) fn read_saved(vault: &PortFileDescriptorStore) -> HeldAddresses {
    let Some(saved) = SavedRecord::of_predecessor(NAME, vault).and_then(|record| record.read()) else {
        return HeldAddresses::default();
    };
    let log = |error: &state::SavedStateError| {
        tracing::warn!(port = vault.port(), %error, "cannot read the saved addresses of VFs; other VFs may claim them");
    };
    state::read(&saved).inspect_err(log).unwrap_or_default()
}

/// Memory in which a port saves the addresses that its VFs hold.
#[derive(Debug, Default)]
pub(super) struct HeldAddressRecord {
    record: Option<SavedRecord>,
    /// Version of the addresses that were last saved.
    saved: Option<u64>,
}

impl HeldAddressRecord {
    /// Opens the memory of saved addresses.
    pub(super) fn open(&mut self, vault: &PortFileDescriptorStore) {
        self.record = SavedRecord::open(NAME, vault);
        if self.record.is_none() {
            tracing::error!(
                port = vault.port(),
                "cannot save the addresses of the port's VFs; after a restart other VFs may claim them"
            );
        }
    }

    /// Saves the addresses that the VFs hold, if they have changed.
    pub(super) fn save(&mut self, engine: &PortEngine) {
        let version = Some(engine.held_version());
        if let Some(record) = self.record.as_ref().filter(|_| self.saved != version) {
            self.saved = version;
            if let Ok(bytes) = state::write(&engine.held_addresses()) {
                record.write(&bytes);
            }
        }
    }
}
