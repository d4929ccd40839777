//! Addresses from process to process: those that the VFs of a port hold, and those of stations at its uplink. The successor process
//! has them after a hand-over and after a crash, and gives them to no other VF.

use super::carried::SavedRecord;
use crate::port::engine::PortEngine;
use crate::state::{self, SavedState};
use crate::vault::PortFileDescriptorStore;
use i82576::Time;
use std::time::Duration;

/// Name under which the memory of the addresses that VFs hold is kept for the successor process.
pub(super) const HELD: &str = "addresses";
/// Name under which the memory of the stations at the uplink is kept for the successor process.
pub(super) const STATIONS: &str = "stations";
/// Shortest time between two saves of the stations in rounds. A flood of source addresses changes the stations with each frame.
const STATION_INTERVAL: Duration = Duration::from_secs(10);

/// Returns the addresses that the previous host process has saved under a name, or `None` if there are none that can be read.
pub(super) fn read_saved<T: SavedState>(name: &str, vault: &PortFileDescriptorStore) -> Option<T> {
    let saved = SavedRecord::of_predecessor(name, vault).and_then(|record| record.read())?;
    let log = |error: &state::SavedStateError| {
        tracing::warn!(port = vault.port(), record = name, %error, "cannot read saved addresses; other VFs may claim them");
    };
    state::read(&saved).inspect_err(log).ok()
}

/// Memory in which a port saves addresses for its successor process.
#[derive(Debug, Default)]
pub(super) struct AddressRecords {
    held: AddressRecord,
    stations: AddressRecord,
    /// Time from which rounds save the stations again.
    stations_due: Time,
}

impl AddressRecords {
    /// Opens the memory of saved addresses.
    pub(super) fn open(&mut self, vault: &PortFileDescriptorStore) {
        self.held.open(HELD, vault);
        self.stations.open(STATIONS, vault);
    }

    /// Saves the addresses that the VFs hold, if they have changed, and the stations, if they have changed and were not saved in the
    /// last [`STATION_INTERVAL`].
    pub(super) fn save(&mut self, engine: &PortEngine, now: Time) {
        self.held.save(engine.held_version(), || engine.held_addresses());
        if now >= self.stations_due {
            self.save_stations(engine, now);
        }
    }

    /// Saves the stations, if they have changed.
    pub(super) fn save_stations(&mut self, engine: &PortEngine, now: Time) {
        if self.stations.save(engine.station_version(), || engine.save_stations()) {
            self.stations_due = now + STATION_INTERVAL;
        }
    }
}

/// Memory in which a port saves addresses of one kind.
#[derive(Debug, Default)]
struct AddressRecord {
    record: Option<SavedRecord>,
    /// Version of the addresses that were last saved.
    saved: Option<u64>,
}

impl AddressRecord {
    fn open(&mut self, name: &str, vault: &PortFileDescriptorStore) {
        self.record = SavedRecord::open(name, vault);
        if self.record.is_none() {
            tracing::error!(
                port = vault.port(),
                record = name,
                "cannot save addresses for a successor process; after a restart other VFs may claim them"
            );
        }
    }

    /// Saves the addresses of a version, unless it was saved last. Returns true if it was not.
    fn save<T: SavedState>(&mut self, version: u64, addresses: impl FnOnce() -> T) -> bool {
        let Some(record) = self.record.as_ref().filter(|_| self.saved != Some(version)) else { return false };
        self.saved = Some(version);
        if let Ok(bytes) = state::write(&addresses()) {
            record.write(&bytes);
        }
        true
    }
}
