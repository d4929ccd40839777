//! Streams of stations at the uplink to guests.

use super::super::families::mac_of;
use super::super::frames::{SHORTEST, is_udp};
use super::super::uplink::STATION_VLANS;
use super::{SimulatedGuest, SimulatedWorld};

/// Frames of a stream that each guest has to have in the end.
const STREAM: u64 = 8;
/// Attempts within which a stream is complete: one frame in six is lost.
const ATTEMPTS: usize = 50;

impl SimulatedWorld {
    /// Has a station send the next frames of its stream to a guest. The port may lose frames of a guest that it does not serve.
    pub(super) fn deliver(&mut self, (station, to): (usize, usize), frames: usize, length: usize, seed: u64) {
        let mut host = self.host.borrow_mut();
        let host = &mut *host;
        let guest = &mut self.guests[to];
        let (Some(uplink), Some(address)) = (&mut host.uplink, guest.mac()) else { return };
        let mut random = fastrand::Rng::with_seed(seed);
        let stream = (guest.streams[station], frames, length);
        let put = uplink.deliver((station, to), address, stream, (&host.policies, &mut random));
        let is_served = guest.has_link() && !guest.is_hostile();
        let policy = host.policies.of(to);
        let is_addressed = address == mac_of(to, policy.has_second_mac) && !policy.has_free_mac;
        let has_vlan = policy.vlan == STATION_VLANS[station];
        if !(put && is_served && is_addressed && has_vlan) {
            guest.disturbances += 1;
        }
    }

    /// Has the station without a VLAN complete its streams to all guests.
    pub(super) fn finish_streams(&mut self) -> Result<(), String> {
        if self.host.borrow().uplink.is_none() {
            return Ok(());
        }
        for attempt in 0..ATTEMPTS {
            let late = (0..self.guests.len()).filter(|guest| self.guests[*guest].streams[0] <= STREAM);
            let late: Vec<usize> = late.collect();
            if late.is_empty() {
                return self.check_uplink();
            }
            late.into_iter()
                .for_each(|guest| self.deliver((0, guest), STREAM as usize, SHORTEST, attempt as u64));
            self.rest()?;
        }
        Err(format!("streams of the uplink are not complete after {ATTEMPTS} attempts"))
    }

    /// Has honest guests send a frame to each station, while a hostile guest chooses its addresses. Checks that the frames leave by
    /// the uplink: the hostile guest has not got the address of a station.
    pub(super) fn probe_stations(&mut self) -> Result<(), String> {
        if !self.guests.iter().any(|guest| self.may_claim(guest)) {
            return Ok(());
        }
        for (station, vlan) in STATION_VLANS.into_iter().enumerate() {
            let to = self.guests.len() + station;
            let Some(from) = (0..self.guests.len()).find(|from| self.reaches(*from, to, vlan)) else {
                continue;
            };
            let (disturbances, before) = (self.disturbances(), self.departed(from, to));
            if !self.guests[from].send(to as u16, mac_of(to, false), SHORTEST) {
                continue;
            }
            self.rest()?;
            if self.departed(from, to) == before && self.disturbances() == disturbances {
                return Err(format!(
                    "a frame of guest {from} to station {station} has not left by the uplink"
                ));
            }
            self.probes += 1;
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
        guest.has_link()
            && !guest.is_hostile()
            && is_permitted
            && !policy.is_quarantined
            && !policy.has_free_mac
    }

    /// Returns the number of frames of a guest to a station that have left by the uplink.
    fn departed(&self, from: usize, to: usize) -> u64 {
        self.host.borrow().uplink.as_ref().map_or(0, |uplink| uplink.departed[from][to])
    }

    /// Checks what has left by the uplink.
    pub(super) fn check_uplink(&mut self) -> Result<(), String> {
        self.host.borrow_mut().uplink.as_mut().map_or(Ok(()), |uplink| uplink.fault())
    }
}
