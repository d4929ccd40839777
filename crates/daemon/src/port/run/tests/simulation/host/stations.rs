//! Stations at the uplink of a simulated host.

use super::super::uplink::UplinkRules;
use super::SimulatedHost;

impl SimulatedHost {
    /// Has the stations send, so that a new process knows them.
    pub(super) fn announce_stations(&mut self) {
        if let Some(uplink) = &mut self.uplink {
            uplink.announce(&self.policies);
        }
    }

    /// Has the stations take and check the frames that have left.
    pub(super) fn take_departed_frames(&mut self) {
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
