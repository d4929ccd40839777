//! How fast frames leave their ports: a port's transmit rate, and the bandwidth that all ports share when they send to each
//! other inside the plane. A frame is paid for in time when it leaves, and the next one waits until it is paid; it waits
//! in its ring, and nothing is dropped.
//!
//! A rate counts a frame's bytes with tag and frame check sequence, as the octet counters do. The queues of a port share
//! it, so that a guest cannot multiply its rate by its queues.
//!
//! Left out: how a rate is asked for.

use crate::{Port, Ports};
use core::num::NonZeroU64;
use serde::{Deserialize, Serialize};
use units::{FCS, Time};

/// Binary places of prices, which are in nanoseconds: a byte takes 8 ns times a rate factor with 14 binary places,
/// so bytes times factor is a price, to the bit.
const FRACTION_BITS: u32 = 11;

/// What is paid for in time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Account {
    /// Everything so far is paid for at this moment, in nanoseconds, and this fraction after it.
    due: u64,
    fraction: u64,
}

impl Account {
    /// Whether it is not behind by a nanosecond that it should have carried over.
    #[must_use]
    pub fn is_sound(&self) -> bool {
        self.fraction < 1 << FRACTION_BITS
    }

    /// Nothing is paid for earlier than `lateness` nanoseconds before `now`.
    fn catch_up(&mut self, now: Time, lateness: u64) {
        let earliest = now.as_nanos().saturating_sub(lateness);
        if self.due < earliest {
            (self.due, self.fraction) = (earliest, 0);
        }
    }

    /// Something leaves for a price, which is paid for from the end of what is paid already.
    fn pay(&mut self, price: u64) {
        let sum = self.fraction + price;
        self.due = self.due.saturating_add(sum >> FRACTION_BITS);
        self.fraction = sum & ((1 << FRACTION_BITS) - 1);
    }
}

/// What a port owes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Debt {
    /// For its rate.
    pub rate: Account,
    /// Nanoseconds that the plane was late when the last frame left. A guest that comes back later finds as much, and
    /// no more: its own idleness saves nothing up.
    pub owed: u64,
    /// When its last frame has crossed the plane.
    pub crossed: u64,
    /// Its queues, a bit each, in which frames were left by the last poll: what is late now is the plane's lateness.
    pub waiting: u16,
}

/// A port that sends.
#[derive(Debug, Clone, Copy, Default)]
struct Sender {
    /// The rate of 1 Gb/s over the port's, with 14 binary places; `None` without a limit.
    factor: Option<u32>,
    debt: Debt,
}

impl Sender {
    #[inline]
    fn factor(&self) -> Option<u64> {
        self.factor.map(u64::from)
    }
}

/// What leaving costs, and who still pays.
#[derive(Debug, Clone)]
pub struct Pacing<const N: usize> {
    ports: [Sender; N],
    /// Bits a second between ports.
    loopback: Option<NonZeroU64>,
    crossing: Account,
    lateness: Lateness,
}

/// The lateness of the plane that a port may make up for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lateness {
    /// The time that this many KB take at the port's rate.
    Kilobytes(u32),
    /// Nanoseconds.
    Time(u64),
}

impl Lateness {
    /// Nanoseconds, for a port whose rate has this factor.
    #[inline]
    fn window(self, factor: u64) -> u64 {
        match self {
            Self::Kilobytes(most) => (u64::from(most) * 1024 * factor) >> FRACTION_BITS,
            Self::Time(most) => most,
        }
    }
}

impl<const N: usize> Pacing<N> {
    /// No port has a limit. `loopback` is what ports together may send to each other, bits a second.
    #[must_use]
    pub fn new(loopback: Option<NonZeroU64>) -> Self {
        Self::resume(loopback, Account::default())
    }

    /// The same, when all that has crossed so far is paid for as an account says.
    #[must_use]
    pub fn resume(loopback: Option<NonZeroU64>, crossing: Account) -> Self {
        Self { ports: [Sender::default(); N], loopback, crossing, lateness: Lateness::Kilobytes(0) }
    }

    /// Bits a second between ports, and what has crossed so far.
    #[must_use]
    pub fn crossing(&self) -> (Option<NonZeroU64>, Account) {
        (self.loopback, self.crossing)
    }

    /// No port has a limit any more.
    pub fn reset(&mut self) {
        self.ports = [Sender::default(); N];
    }

    /// What a port owes.
    #[must_use]
    pub fn debt(&self, port: Port) -> Debt {
        self.port(port).debt
    }

    /// A port goes on with a rate and what it owes.
    pub fn set_debt(&mut self, port: Port, factor: Option<u32>, debt: Debt) {
        *self.port_mut(port) = Sender { factor, debt };
    }

    /// Sets how much lateness ports may make up for; none at first.
    pub fn set_lateness(&mut self, lateness: Lateness) {
        self.lateness = lateness;
    }

    /// Whether anything can be made to wait: within the plane, or of the port.
    #[must_use]
    pub fn may_delay(&self, port: Port) -> bool {
        self.loopback.is_some() || self.port(port).factor.is_some()
    }

    /// Returns true if frames between ports are charged for.
    pub(crate) fn limits_crossing(&self) -> bool {
        self.loopback.is_some()
    }

    /// Returns how many frames of these lengths a port may send now, one after the other.
    pub(crate) fn admits(&self, port: Port, lengths: impl Iterator<Item = usize>, now: Time) -> usize {
        let (mut debt, factor) = (self.port(port).debt, self.port(port).factor().unwrap_or(0));
        let may_leave = |length: &usize| {
            let due = debt.rate.due.max(debt.crossed) <= now.as_nanos();
            debt.rate.pay((length + FCS) as u64 * factor);
            due
        };
        lengths.take_while(may_leave).count()
    }

    /// Whether the port has a rate.
    pub(crate) fn limits(&self, port: Port) -> bool {
        self.port(port).factor.is_some()
    }

    /// Sets a port's rate: 1 Gb/s over it, with 14 binary places; `None` is no limit.
    pub fn set_rate(&mut self, port: Port, factor: Option<u32>) {
        let debt = self.debt_at(port, factor);
        *self.port_mut(port) = Sender { factor, debt };
    }

    /// Returns the debt of a port whose rate is about to be set: it owes nothing for the time without a limit, in which the plane
    /// was not late.
    #[must_use]
    pub fn debt_at(&self, port: Port, factor: Option<u32>) -> Debt {
        let Sender { factor: before, debt } = *self.port(port);
        let limited = before.is_some() && factor.is_some();
        if limited { debt } else { Debt { owed: 0, waiting: 0, ..debt } }
    }

    /// When the port's next frame may leave.
    #[must_use]
    #[inline]
    pub fn due(&self, port: Port) -> Time {
        let port = self.port(port);
        let rate = if port.factor.is_some() { port.debt.rate.due } else { 0 };
        Time::from_nanos(rate.max(port.debt.crossed))
    }

    /// A port is looked at, at `now`.
    #[inline]
    pub fn visit(&mut self, port: Port, now: Time) {
        let lateness = self.lateness;
        let port = self.port_mut(port);
        let Some(factor) = port.factor() else { return };
        let window = lateness.window(factor);
        let late = if port.debt.waiting != 0 { window } else { port.debt.owed };
        port.debt.rate.catch_up(now, late);
    }

    /// A queue of a port was looked at, at `now`, and frames were left in it, or none.
    #[inline]
    pub fn visited(&mut self, port: Port, queue: u8, left: bool, now: Time) {
        let port = self.port_mut(port);
        port.debt.owed = port.factor().map_or(0, |_| now.as_nanos().saturating_sub(port.debt.rate.due));
        port.set_waiting(queue, left);
    }

    /// A queue of a port may not send: it waits for something else than the plane.
    pub fn rest(&mut self, port: Port, queue: u8) {
        self.port_mut(port).set_waiting(queue, false);
    }

    /// A frame of `length` bytes, frame check sequence excluded, has left the port.
    #[inline]
    pub(crate) fn left(&mut self, port: Port, length: usize) {
        let port = self.port_mut(port);
        if let Some(factor) = port.factor() {
            port.debt.rate.pay((length + FCS) as u64 * factor);
        }
    }

    /// A frame of the port has gone to other ports.
    #[inline]
    pub(crate) fn crossed(&mut self, port: Port, length: usize, to: Ports, now: Time) {
        let Some(bandwidth) = self.loopback else { return };
        let bits = (length + FCS) as u64 * 8 * u64::from(to.count());
        self.crossing.catch_up(now, 0);
        self.crossing.pay(bits * (1_000_000_000 << FRACTION_BITS) / bandwidth);
        self.port_mut(port).debt.crossed = self.crossing.due;
    }

    #[inline]
    fn port(&self, port: Port) -> &Sender {
        &self.ports[port.index::<N>()]
    }

    #[inline]
    fn port_mut(&mut self, port: Port) -> &mut Sender {
        &mut self.ports[port.index::<N>()]
    }
}

impl Sender {
    #[inline]
    fn set_waiting(&mut self, queue: u8, waits: bool) {
        let bit = 1 << (queue & 15);
        self.debt.waiting = if waits { self.debt.waiting | bit } else { self.debt.waiting & !bit };
    }
}
