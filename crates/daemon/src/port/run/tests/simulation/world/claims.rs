//! Guests that claim the addresses of stations at the uplink.

use super::super::conditions::LifeConditions;
use super::super::families::{SimulatedFamily, mac_of};
use super::super::frames::{SHORTEST, is_udp};
use super::super::life::{SimulatedAction, SimulatedLife, SimulatedStep};
use super::super::policy::SimulatedPolicy;
use super::super::uplink::STATION_VLANS;
use super::super::{print_report, simulate};
use super::{SimulatedGuest, SimulatedWorld};
use crate::control::status::PortStatus;

impl SimulatedWorld {
    /// Lets a guest choose its addresses, and has it claim that of a station before it does other misdeeds. A virtio guest
    /// claims an address by its first frame.
    pub(super) fn claim(&mut self, guest: usize, misdeeds: usize, seed: u64) -> Result<(), String> {
        self.attach(guest)?;
        let vlan = self.host.borrow().policies.of(guest).vlan;
        let policy = SimulatedPolicy { vlan, has_free_mac: true, ..SimulatedPolicy::default() };
        self.set_policy(guest, policy, None)?;
        // The change may have reset the VF. Its driver starts again.
        self.guests[guest].watch()?;
        self.misbehave(guest, misdeeds, seed)
    }

    /// Has the port handle the requests of hostile guests that may claim addresses. A process that dies may not have saved the
    /// stations (decision 45): its successor grants their addresses to a guest that asks before their next frames.
    pub(super) fn settle_claims(&mut self) -> Result<(), String> {
        if self.guests.iter().any(|guest| self.may_claim(guest)) { self.rest() } else { Ok(()) }
    }

    /// Counts the claims that the port has refused since the last call.
    pub(super) fn count_refused_claims(&mut self, status: &PortStatus) {
        for (counted, vf) in self.counted_claims.iter_mut().zip(&status.vfs) {
            let now = vf.claims.refused;
            // A new process counts from 0.
            self.summary.refused_claims += now - if now < *counted { 0 } else { *counted };
            *counted = now;
        }
    }

    /// Has honest guests send a frame to each station, while a hostile guest chooses its addresses. Checks that the frames leave by
    /// the uplink: the hostile guest has not got the address of a station.
    pub(super) fn probe_stations(&mut self) -> Result<(), String> {
        if self.host.borrow().is_uplink_gone() || !self.guests.iter().any(|guest| self.may_claim(guest)) {
            return Ok(());
        }
        for (station, vlan) in STATION_VLANS.into_iter().enumerate() {
            let to = self.guests.len() + station;
            let Some(from) = (0..self.guests.len()).find(|from| self.reaches(*from, to, vlan)) else {
                continue;
            };
            // A guest does not know yet that a death has reset its VF.
            if self.disturbances() != self.noticed {
                return Ok(());
            }
            let before = self.departed(from, to);
            if !self.guests[from].send(to as u16, mac_of(to, false), SHORTEST) {
                continue;
            }
            self.rest()?;
            if self.departed(from, to) == before && self.disturbances() == self.noticed {
                return Err(format!(
                    "a frame of guest {from} to station {station} has not left by the uplink"
                ));
            }
            self.summary.probes += 1;
        }
        Ok(())
    }

    /// Returns true if a hostile guest may have asked for the addresses of stations.
    fn may_claim(&self, guest: &SimulatedGuest) -> bool {
        let host = self.host.borrow();
        host.uplink.is_some()
            && guest.is_hostile()
            && guest.is_attached()
            && host.policies.of(guest.index()).has_free_mac
    }

    /// Returns true if policy permits a frame from an honest guest to a station in a VLAN.
    fn reaches(&self, from: usize, to: usize, vlan: u16) -> bool {
        let (guest, policy) = (&self.guests[from], self.host.borrow().policies.of(from));
        let is_permitted = policy.vlan == vlan && policy.passes_guard(is_udp(from as u16, to as u16));
        // A driver takes an address that the administrator has changed when it boots.
        let is_named = guest.mac() == Some(mac_of(from, policy.has_second_mac));
        guest.has_link()
            && is_named
            && !guest.is_hostile()
            && is_permitted
            && !policy.is_quarantined
            && !policy.has_free_mac
    }

    /// Returns the number of frames of a guest to a station that have left by the uplink.
    fn departed(&self, from: usize, to: usize) -> u64 {
        self.host.borrow().uplink.as_ref().map_or(0, |uplink| uplink.departed[from][to])
    }
}

/// Lives in which a hostile guest chooses its addresses, until the administrator sets one.
const CHOOSING_LIVES: u64 = 200;

#[test]
fn set_address_ends_those_that_a_hostile_guest_chose() {
    let test =
        "port::run::tests::simulation::world::claims::set_address_ends_those_that_a_hostile_guest_chose";
    simulate(test, || {
        let faults: Vec<_> = (0..CHOOSING_LIVES).filter_map(|seed| live_choice(seed).err()).collect();
        print_report(&format!("{CHOOSING_LIVES} lives, {} faults: {faults:?}", faults.len()));
        assert!(faults.is_empty());
    });
}

/// Lives a life in which the administrator sets the address of a hostile guest that has chosen its addresses.
fn live_choice(seed: u64) -> Result<(), String> {
    let policy = SimulatedPolicy::default();
    let actions = [
        SimulatedAction::Claim { guest: 0, misdeeds: 60 },
        SimulatedAction::SetPolicy { guest: 0, policy, disk: None },
        // Checks the host at rest.
        SimulatedAction::Burst { slow: None, rounds: 0, death: None },
    ];
    let life = SimulatedLife {
        families: vec![SimulatedFamily::I82576; 2],
        has_uplink: false,
        steps: actions.map(|action| SimulatedStep { action, turns: 2, seed }).to_vec(),
        is_keeper_broken: false,
        conditions: LifeConditions::default(),
    };
    life.run().map(drop)
}
