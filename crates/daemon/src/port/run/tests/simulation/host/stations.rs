//! Stations at the uplink of a simulated host.

use super::super::uplink::{SimulatedUplink, UplinkRules};
use super::SimulatedHost;

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

    /// Has the stations send, so that a new process knows them.
    pub(super) fn announce_stations(&mut self) {
        if let Some(uplink) = &mut self.uplink {
            uplink.announce(&self.policies);
        }
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
