//! Sends echo requests (pings), one at a time, and measures the round trip of each. The stack answers the requests of
//! other hosts.

use smoltcp::iface::{SocketHandle, SocketSet};
use smoltcp::phy::ChecksumCapabilities;
use smoltcp::socket::icmp;
use smoltcp::wire::{Icmpv4Packet, Icmpv4Repr};
use std::net::Ipv4Addr;
use std::time::Duration;

/// Length of a ping's payload in bytes, that of Linux's ping.
const PAYLOAD: usize = 56;
const MESSAGE: usize = 8 + PAYLOAD;
/// Timeout of an echo request's answer in nanoseconds; a later answer counts as lost.
const PATIENCE_NS: u64 = 2_000_000_000;

/// Result of a series of pings.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PingStatistics {
    /// Number of echo requests sent.
    pub sent: u16,
    /// Round-trip times of the answered requests, in the order sent.
    pub round_trips: Vec<Duration>,
}

impl PingStatistics {
    /// Returns the number of answered echo requests.
    #[must_use]
    pub fn received(&self) -> usize {
        self.round_trips.len()
    }

    /// Returns the median round-trip time; `None` without an answer.
    #[must_use]
    pub fn median(&self) -> Option<Duration> {
        let mut sorted = self.round_trips.clone();
        sorted.sort_unstable();
        sorted.get(sorted.len() / 2).copied()
    }
}

/// Sender of an unfinished series of pings.
#[derive(Debug)]
pub(super) struct PingSender {
    handle: SocketHandle,
    to: Ipv4Addr,
    ident: u16,
    count: u16,
    /// Send time of the unanswered echo request, in nanoseconds.
    waiting: Option<u64>,
    outcome: PingStatistics,
}

impl PingSender {
    /// Creates a series of `count` pings to `to`. Returns `None` if the socket cannot be bound.
    pub(super) fn new(
        sockets: &mut SocketSet<'static>,
        to: Ipv4Addr,
        ident: u16,
        count: u16,
    ) -> Option<Self> {
        let buffer = || icmp::PacketBuffer::new(vec![icmp::PacketMetadata::EMPTY; 4], vec![0; 4 * MESSAGE]);
        let mut socket = icmp::Socket::new(buffer(), buffer());
        socket.bind(icmp::Endpoint::Ident(ident)).ok()?;
        let outcome = PingStatistics { sent: 0, round_trips: Vec::with_capacity(count.into()) };
        Some(Self { handle: sockets.add(socket), to, ident, count, waiting: None, outcome })
    }

    pub(super) fn handle(&self) -> SocketHandle {
        self.handle
    }

    /// Returns the time at which the unanswered echo request counts as lost, in nanoseconds.
    pub(super) fn deadline(&self) -> Option<u64> {
        self.waiting.map(|sent| sent + PATIENCE_NS)
    }

    /// Takes an echo answer, checks for a timeout, and sends the next echo request. Returns the result of the series
    /// after the last ping.
    pub(super) fn step(&mut self, sockets: &mut SocketSet<'static>, now_ns: u64) -> Option<PingStatistics> {
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

    /// Returns true if a message is the answer to the last echo request and has the same payload.
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
    use super::PingStatistics;
    use std::time::Duration;

    #[test]
    fn ping_series_without_answers_has_no_median() {
        assert_eq!(PingStatistics::default().median(), None);
        let round_trips = [30, 10, 20].map(Duration::from_micros).to_vec();
        assert_eq!(PingStatistics { sent: 3, round_trips }.median(), Some(Duration::from_micros(20)));
    }
}
