//! Stations at the uplink of a simulated host.

use super::super::uplink::{SimulatedUplink, UplinkRules};
use super::SimulatedHost;
use crate::state::SavedStations;
use i82576::MacAddress;
use std::collections::BTreeSet;
use std::time::Duration;

/// Length of an epoch of stations ([`plane::guard`]).
const EPOCH: Duration = Duration::from_secs(150);

impl SimulatedHost {
    /// Returns true if the port has an uplink whose far end is plugged in.
    pub(in super::super) fn is_uplink_up(&self) -> bool {
        self.uplink.as_ref().is_some_and(SimulatedUplink::is_plugged)
    }

    /// Returns true if the port has an uplink whose far end is unplugged.
    pub(in super::super) fn is_uplink_gone(&self) -> bool {
        self.uplink.as_ref().is_some_and(|uplink| !uplink.is_plugged())
    }

    /// Plugs in the far end of the uplink. The stations send at once.
    pub(in super::super) fn plug_in_uplink(&mut self) {
        if let Some(uplink) = &mut self.uplink {
            uplink.plug_in(&self.common.wires);
            uplink.announce(&self.policies);
        }
    }

    /// Has the stations send, so that a new process knows them, unless it knows them from the process before.
    pub(super) fn announce_stations(&mut self) {
        let known = self.known_stations();
        if let Some(uplink) = self.uplink.as_mut().filter(|uplink| !uplink.stations().is_subset(&known)) {
            uplink.announce(&self.policies);
        }
    }

    /// Returns the stations that the port knows and will not forget in the next second.
    pub(super) fn known_stations(&self) -> BTreeSet<MacAddress> {
        let Some(port) = &self.port else { return BTreeSet::new() };
        let SavedStations { began, stations, .. } = port.engine.save_stations();
        let soon = self.clock.time() + Duration::from_secs(1);
        let lasts = |recent| began + EPOCH * (1 + u32::from(recent)) > soon;
        let known: BTreeSet<_> =
            stations.into_iter().filter(|(_, recent)| lasts(*recent)).map(|(address, _)| address).collect();
        let stations = self.uplink.iter().flat_map(SimulatedUplink::stations);
        stations.filter(|station| known.contains(station)).collect()
    }

    /// Checks that a process knows the stations that the process before knew.
    pub(super) fn check_known_stations(&mut self, before: &BTreeSet<MacAddress>) {
        let known = self.known_stations();
        assert!(known.is_superset(before), "the successor knows {known:?} of the stations {before:?}");
        self.kept_stations += before.len() as u64;
    }

    /// Has the stations take and check the frames that have left.
    pub(in super::super) fn take_departed_frames(&mut self) {
        if let Some(uplink) = &mut self.uplink {
            let rules = UplinkRules {
                policies: &self.policies,
                hostile_lives: &self.hostile_lives,
                deaths: self.deaths,
            };
            uplink.take_frames(rules);
        }
    }
}
