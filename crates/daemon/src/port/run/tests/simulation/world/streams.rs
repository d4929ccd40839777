//! TCP streams between guests, and from guests to stations.

use super::super::families::mac_of;
use super::super::frames::is_udp;
use super::super::guest::SimulatedGuest;
use super::super::tcp::LONGEST_MSS;
use super::super::uplink::STATION_VLANS;
use super::SimulatedWorld;
use i82576::MacAddress;

/// Payload of the packet that each guest receives in the end: fewer segments than the smallest receive ring has buffers.
const LAST_PACKET: usize = 10_000;

impl SimulatedWorld {
    /// Sends packets of a guest's stream. A guest whose frames are not IPv4 for the receiver sends to that one's neighbour.
    pub(super) fn send_tcp(&mut self, (from, to): (usize, usize), packets: usize, packet: (usize, usize)) {
        let to = if is_udp(from as u16, to as u16) { to } else { to ^ 1 };
        let Some(address) = self.address_of(to) else { return };
        for _ in 0..packets {
            self.guests[from].send_tcp(to as u16, address, packet);
        }
    }

    /// Returns the address of a guest that is attached, or of a station.
    fn address_of(&self, to: usize) -> Option<MacAddress> {
        let host = self.host.borrow();
        let stations = host.uplink.as_ref().map_or(0, |_| STATION_VLANS.len());
        let station = || (to < self.guests.len() + stations).then(|| mac_of(to, false));
        self.guests.get(to).map_or_else(station, SimulatedGuest::mac)
    }

    /// Has each guest whose card cuts packets send one of its stream to its neighbour, and checks that all segments arrive.
    pub(super) fn exchange_tcp(&mut self) -> Result<(), String> {
        let mut sent = Vec::new();
        for from in 0..self.guests.len() {
            let to = from ^ 1;
            let Some(address) = self.guests.get(to).and_then(SimulatedGuest::mac) else { continue };
            if !self.guests[from].segments_tcp() {
                continue;
            }
            sent.push((from, to, self.guests[to].segments));
            if !self.guests[from].send_tcp(to as u16, address, (LAST_PACKET, LONGEST_MSS)) {
                return Err(format!(
                    "guest {from} cannot send a packet of its stream although its link is up"
                ));
            }
        }
        self.check_at_rest()?;
        for (from, to, before) in sent {
            let segments = self.guests[to].segments - before;
            if segments != LAST_PACKET.div_ceil(LONGEST_MSS) as u64 {
                return Err(format!(
                    "guest {to} has received {segments} segments of a packet of guest {from}"
                ));
            }
        }
        Ok(())
    }
}
