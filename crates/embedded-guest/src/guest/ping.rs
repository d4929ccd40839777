//! Echo requests, one at a time, each timed. Answering them is the stack's.

use smoltcp::iface::{SocketHandle, SocketSet};
use smoltcp::phy::ChecksumCapabilities;
use smoltcp::socket::icmp;
use smoltcp::wire::{Icmpv4Packet, Icmpv4Repr};
use std::net::Ipv4Addr;
use std::time::Duration;

/// What Linux's ping carries.
const PAYLOAD: usize = 56;
const MESSAGE: usize = 8 + PAYLOAD;
/// An answer that takes longer counts as lost.
const PATIENCE_NS: u64 = 2_000_000_000;

/// What became of a series of pings.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Pings {
    /// Echo requests sent.
    pub sent: u16,
    /// Round-trip times of those answered, in the order sent.
    pub round_trips: Vec<Duration>,
}

impl Pings {
    /// How many were answered.
    #[must_use]
    pub fn received(&self) -> usize {
        self.round_trips.len()
    }

    /// The median round-trip time, if any was answered.
    #[must_use]
    pub fn median(&self) -> Option<Duration> {
        let mut sorted = self.round_trips.clone();
        sorted.sort_unstable();
        sorted.get(sorted.len() / 2).copied()
    }
}

/// A series under way.
#[derive(Debug)]
pub(super) struct Pinger {
    handle: SocketHandle,
    to: Ipv4Addr,
    ident: u16,
    count: u16,
    /// When the request that waits for its answer was sent, nanoseconds.
    waiting: Option<u64>,
    outcome: Pings,
}

impl Pinger {
    /// `None` if the socket cannot be had.
    pub(super) fn new(
        sockets: &mut SocketSet<'static>,
        to: Ipv4Addr,
        ident: u16,
        count: u16,
    ) -> Option<Self> {
        let buffer = || icmp::PacketBuffer::new(vec![icmp::PacketMetadata::EMPTY; 4], vec![0; 4 * MESSAGE]);
        let mut socket = icmp::Socket::new(buffer(), buffer());
        socket.bind(icmp::Endpoint::Ident(ident)).ok()?;
        let outcome = Pings { sent: 0, round_trips: Vec::with_capacity(count.into()) };
        Some(Self { handle: sockets.add(socket), to, ident, count, waiting: None, outcome })
    }

    pub(super) fn handle(&self) -> SocketHandle {
        self.handle
    }

    /// When it wants to be stepped though nothing has come, nanoseconds.
    pub(super) fn deadline(&self) -> Option<u64> {
        self.waiting.map(|sent| sent + PATIENCE_NS)
    }

    /// Takes an answer, gives up on one, sends the next request; the outcome when there is none left.
    pub(super) fn step(&mut self, sockets: &mut SocketSet<'static>, now_ns: u64) -> Option<Pings> {
        let socket = sockets.get_mut::<icmp::Socket<'static>>(self.handle);
        while let Ok((message, from)) = socket.recv() {
            if let Some(sent) = self.waiting
                && from == self.to.into()
                && self.is_answer(message)
            {
                self.outcome.round_trips.push(Duration::from_nanos(now_ns.saturating_sub(sent)));
                self.waiting = None;
            }
        }
        if self.deadline().is_some_and(|deadline| now_ns >= deadline) {
            self.waiting = None;
        }
        if self.waiting.is_none() && self.outcome.sent == self.count {
            return Some(std::mem::take(&mut self.outcome));
        }
        if self.waiting.is_none() {
            self.send(socket, now_ns);
        }
        None
    }

    fn send(&mut self, socket: &mut icmp::Socket<'static>, now_ns: u64) {
        let sequence = self.outcome.sent;
        let data = payload(sequence);
        let request = Icmpv4Repr::EchoRequest { ident: self.ident, seq_no: sequence, data: &data };
        if let Ok(room) = socket.send(MESSAGE, self.to.into()) {
            request.emit(&mut Icmpv4Packet::new_unchecked(room), &ChecksumCapabilities::default());
            self.outcome.sent += 1;
            self.waiting = Some(now_ns);
        }
    }

    /// Whether a message answers the last request, with its very payload.
    fn is_answer(&self, message: &[u8]) -> bool {
        let Ok(packet) = Icmpv4Packet::new_checked(message) else { return false };
        let Some(last) = self.outcome.sent.checked_sub(1) else { return false };
        let expected = payload(last);
        let answer = Icmpv4Repr::EchoReply { ident: self.ident, seq_no: last, data: &expected };
        Icmpv4Repr::parse(&packet, &ChecksumCapabilities::default()) == Ok(answer)
    }
}

fn payload(sequence: u16) -> [u8; PAYLOAD] {
    let mut bytes = [0; PAYLOAD];
    for (at, byte) in bytes.iter_mut().enumerate() {
        *byte = (at as u8).wrapping_mul(3) ^ sequence.to_le_bytes()[at % 2];
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::Pings;
    use std::time::Duration;

    #[test]
    fn the_median_needs_an_answer() {
        assert_eq!(Pings::default().median(), None);
        let round_trips = [30, 10, 20].map(Duration::from_micros).to_vec();
        assert_eq!(Pings { sent: 3, round_trips }.median(), Some(Duration::from_micros(20)));
    }
}
