//! Streams of stations at the uplink to guests.

use super::super::families::mac_of;
use super::super::frames::SHORTEST;
use super::super::uplink::STATION_VLANS;
use super::SimulatedWorld;

/// Frames of a stream that each guest has to have in the end.
const STREAM: u64 = 8;
/// Attempts within which a stream is complete: one frame in six is lost.
const ATTEMPTS: usize = 50;

impl SimulatedWorld {
    /// Has a station send the next frames of its stream to a guest. The port may lose frames of a guest that it does not serve.
    pub(super) fn deliver(&mut self, (station, to): (usize, usize), frames: usize, length: usize, seed: u64) {
        let mut host = self.host.borrow_mut();
        if !host.is_uplink_up() {
            return;
        }
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

    /// Checks what has left by the uplink.
    pub(super) fn check_uplink(&mut self) -> Result<(), String> {
        self.host.borrow_mut().uplink.as_mut().map_or(Ok(()), |uplink| uplink.fault())
    }
}
