//! Sends echo requests at a steady rate without waiting for answers, to measure how long a path is interrupted.
//! [`ping`](super::ping) measures round trips.

use smoltcp::iface::{SocketHandle, SocketSet};
use smoltcp::phy::ChecksumCapabilities;
use smoltcp::socket::icmp;
use smoltcp::wire::{Icmpv4Packet, Icmpv4Repr};
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use host::poll::MonotonicClock;

const MESSAGE: usize = 16;
/// Capacity in messages of each of two queues between sender and TCP/IP stack: echo requests, and echo answers.
const QUEUE: usize = 8;

/// Measurement of a path's interruptions by echo requests, which runs until this value is dropped.
#[derive(Debug, Clone)]
pub struct PathInterruptionMeasurement(Arc<EchoReplyTimes>);

#[derive(Debug)]
struct EchoReplyTimes {
    answers: AtomicU64,
    /// Time of the last answer to an echo request, in nanoseconds.
    last: AtomicU64,
    /// Longest time between two echo answers since the last reading, in nanoseconds.
    longest: AtomicU64,
}

impl PathInterruptionMeasurement {
    pub(crate) fn new(now_ns: u64) -> Self {
        let (answers, longest) = (AtomicU64::new(0), AtomicU64::new(0));
        Self(Arc::new(EchoReplyTimes { answers, last: AtomicU64::new(now_ns), longest }))
    }

    /// Returns the number of answers to the echo requests.
    #[must_use]
    pub fn answers(&self) -> u64 {
        self.0.answers.load(Ordering::Acquire)
    }

    /// Returns the time since the last answer to an echo request.
    #[must_use]
    pub fn silence(&self) -> Duration {
        Duration::from_nanos(MonotonicClock.now_ns().saturating_sub(self.0.last.load(Ordering::Acquire)))
    }

    /// Returns the longest time between two echo answers since the last call.
    pub fn take_longest(&self) -> Duration {
        Duration::from_nanos(self.0.longest.swap(0, Ordering::AcqRel))
    }

    fn record_answer(&self, now_ns: u64) {
        let last = self.0.last.swap(now_ns, Ordering::AcqRel);
        self.0.longest.fetch_max(now_ns.saturating_sub(last), Ordering::AcqRel);
        self.0.answers.fetch_add(1, Ordering::AcqRel);
    }
}

/// Sender of echo requests at a steady rate, which measures the times between answers.
#[derive(Debug)]
pub(super) struct SteadyEchoSender {
    handle: SocketHandle,
    to: Ipv4Addr,
    ident: u16,
    every: u64,
    /// Time of the next echo request, in nanoseconds.
    next: u64,
    sequence: u16,
    pulse: PathInterruptionMeasurement,
}

impl SteadyEchoSender {
    /// Creates a sender of an echo request to `to` every `every`. Returns `None` if the socket cannot be bound.
    pub(super) fn new(
        sockets: &mut SocketSet<'static>,
        to: Ipv4Addr,
        ident: u16,
        every: Duration,
        pulse: PathInterruptionMeasurement,
    ) -> Option<Self> {
        let buffer =
            || icmp::PacketBuffer::new(vec![icmp::PacketMetadata::EMPTY; QUEUE], vec![0; QUEUE * MESSAGE]);
        let mut socket = icmp::Socket::new(buffer(), buffer());
        socket.bind(icmp::Endpoint::Ident(ident)).ok()?;
        let every = u64::try_from(every.as_nanos()).unwrap_or(u64::MAX);
        Some(Self { handle: sockets.add(socket), to, ident, every, next: 0, sequence: 0, pulse })
    }

    pub(super) fn handle(&self) -> SocketHandle {
        self.handle
    }

    /// Returns the time of the next echo request, in nanoseconds.
    pub(super) fn deadline(&self) -> u64 {
        self.next
    }

    /// Takes echo answers and sends a due request. Returns false once the owner has dropped the
    /// [`PathInterruptionMeasurement`].
    pub(super) fn step(&mut self, sockets: &mut SocketSet<'static>, now_ns: u64) -> bool {
        let socket = sockets.get_mut::<icmp::Socket<'static>>(self.handle);
        while let Ok((message, from)) = socket.recv() {
            let packet = Icmpv4Packet::new_checked(message);
            let parsed =
                packet.and_then(|packet| Icmpv4Repr::parse(&packet, &ChecksumCapabilities::default()));
            if from == self.to.into()
                && matches!(parsed, Ok(Icmpv4Repr::EchoReply { ident, .. }) if ident == self.ident)
            {
                self.pulse.record_answer(now_ns);
            }
        }
        if now_ns >= self.next {
            self.next = now_ns.saturating_add(self.every);
            self.send(socket);
        }
        Arc::strong_count(&self.pulse.0) > 1
    }

    fn send(&mut self, socket: &mut icmp::Socket<'static>) {
        let request = Icmpv4Repr::EchoRequest { ident: self.ident, seq_no: self.sequence, data: &[] };
        // There is no room while the card is blocked: then this request is skipped.
        if let Ok(room) = socket.send(request.buffer_len(), self.to.into()) {
            request.emit(&mut Icmpv4Packet::new_unchecked(room), &ChecksumCapabilities::default());
            self.sequence = self.sequence.wrapping_add(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::PathInterruptionMeasurement;
    use std::time::Duration;

    #[test]
    fn longest_time_between_ping_answers_is_returned_once() {
        let pulse = PathInterruptionMeasurement::new(1_000);
        for now in [2_000, 9_000, 10_000] {
            pulse.record_answer(now);
        }
        assert_eq!(pulse.answers(), 3);
        assert_eq!(pulse.take_longest(), Duration::from_nanos(7_000));
        assert_eq!(pulse.take_longest(), Duration::ZERO);
    }
}
