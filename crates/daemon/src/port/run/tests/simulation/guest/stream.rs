//! Streams of a guest to others: TCP packets that its card segments.

use super::super::tcp::TcpPacket;
use super::SimulatedGuest;
use i82576::MacAddress;

impl SimulatedGuest {
    /// Returns true if the guest is attached to a function that cuts TCP packets into segments.
    pub(in super::super) fn segments_tcp(&self) -> bool {
        self.function.as_ref().is_some_and(|function| function.segments_tcp())
    }

    /// Sends the next packet of the guest's stream to another guest, in segments of at most `mss` bytes of payload. Returns false
    /// if the ring is full, the link is down, or the guest's device has no offloads.
    pub(in super::super) fn send_tcp(
        &mut self,
        to: u16,
        address: MacAddress,
        (payload, mss): (usize, usize),
    ) -> bool {
        let Some(function) = self.function.as_mut().filter(|_| self.link && !self.is_hostile) else {
            return false;
        };
        let end = &mut self.stream_ends[usize::from(to)];
        let changes = self.place.host.borrow().policies.changes();
        let (from, life, start) = (self.place.index, self.life, *end);
        let packet = TcpPacket { from, to, life, changes, start, payload, mss };
        let segment = (payload > mss).then_some(mss as u16);
        let sent = function.send_tcp(&packet.bytes(address, function.mac()), segment);
        if sent {
            *end += payload as u32;
            self.sent[usize::from(to)] += packet.segments() as u64;
            self.later_segments += packet.segments() as u64 - 1;
        }
        sent
    }
}
