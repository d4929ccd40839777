//! Transmit rates: each port's own, and the bandwidth that all ports share when they send to each other inside the plane. A frame
//! that leaves costs time, and the next one waits in its ring until that time has passed. Nothing is dropped.
//!
//! A rate counts a frame's bytes with tag and frame check sequence, as the octet counters do. The queues of a port share it, so
//! that a guest cannot multiply its rate by its queues. Families translate their registers or orders to rate factors.

use crate::{PortIndex, PortSet};
use core::num::NonZeroU64;
use serde::{Deserialize, Serialize};
use units::{FCS, Time};

/// Binary places of transmit costs, which are in nanoseconds. At 1 Gb/s a byte takes 8 ns = 2^3 ns, and a rate factor
/// has 14 binary places, so bytes times factor is the exact cost with 14 - 3 = 11 places.
const FRACTION_BITS: u32 = 11;

/// Account of the transmit time that a port's frames, or the frames between ports, have cost so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename = "Account")]
pub struct TransmitTimeAccount {
    /// Time in whole nanoseconds at which the transmit time of all frames so far ends.
    due: u64,
    /// Fraction of a nanosecond after `due`, in units of 1 / 2^[`FRACTION_BITS`].
    fraction: u64,
}

impl TransmitTimeAccount {
    /// Returns `true` if the account's fraction is below a nanosecond.
    #[must_use]
    pub fn is_sound(&self) -> bool {
        self.fraction < 1 << FRACTION_BITS
    }

    /// Moves the account forward to `lateness` nanoseconds before `now`, if it is behind: idle time before that earns
    /// no credit.
    fn catch_up(&mut self, now: Time, lateness: u64) {
        let earliest = now.as_nanos().saturating_sub(lateness);
        if self.due < earliest {
            (self.due, self.fraction) = (earliest, 0);
        }
    }

    /// Adds the cost of frames to the account.
    fn pay(&mut self, price: u64) {
        let sum = self.fraction + price;
        self.due = self.due.saturating_add(sum >> FRACTION_BITS);
        self.fraction = sum & ((1 << FRACTION_BITS) - 1);
    }
}

/// Account of a port's transmit rate: time that its frames have cost, and lateness that it may make up for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename = "Debt")]
pub struct TransmitRateDebt {
    /// Time that the port's frames have cost at the port's rate.
    pub rate: TransmitTimeAccount,
    /// Nanoseconds by which the plane served the port late when the port's last frame left. An idle guest may make up
    /// for this much later, and not for its own idle time.
    pub owed: u64,
    /// Time in nanoseconds at which the bandwidth between ports has carried the port's last frame to other ports.
    pub crossed: u64,
    /// Queues of the port in which the last poll left frames, a bit each. While a bit is set, a delay is the plane's
    /// fault and may be made up for.
    pub waiting: u16,
}

/// Transmit rate and transmit account of a port.
#[derive(Debug, Clone, Copy, Default)]
struct PacedPort {
    /// Rate factor: 1 Gb/s divided by the port's rate, with 14 binary places; `None` without a limit.
    factor: Option<u32>,
    debt: TransmitRateDebt,
}

impl PacedPort {
    #[inline]
    fn factor(&self) -> Option<u64> {
        self.factor.map(u64::from)
    }
}

/// Transmit rates and transmit accounts of all ports, and the bandwidth between ports.
#[derive(Debug, Clone)]
pub struct TransmitPacing<const N: usize> {
    ports: [PacedPort; N],
    /// Bandwidth between ports, bits per second; `None` without a limit.
    loopback: Option<NonZeroU64>,
    crossing: TransmitTimeAccount,
    lateness: LatenessLimit,
}

/// Longest delay by the plane that a port may make up for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LatenessLimit {
    /// Limit on delay: the time that this many KB take at the port's rate (82576 datasheet, RTTBCNRM).
    Kilobytes(u32),
    /// Limit on delay: a time in nanoseconds, equal for all rates.
    Time(u64),
}

impl LatenessLimit {
    /// Returns the longest delay in nanoseconds that a port with this rate factor may make up for.
    #[inline]
    fn window(self, factor: u64) -> u64 {
        match self {
            Self::Kilobytes(most) => (u64::from(most) * 1024 * factor) >> FRACTION_BITS,
            Self::Time(most) => most,
        }
    }
}

impl<const N: usize> TransmitPacing<N> {
    /// Creates rates without a limit. `loopback` is the bandwidth between all ports together, bits per second.
    #[must_use]
    pub fn new(loopback: Option<NonZeroU64>) -> Self {
        Self::resume(loopback, TransmitTimeAccount::default())
    }

    /// Creates rates without a limit, given the saved cost of the frames between ports.
    #[must_use]
    pub fn resume(loopback: Option<NonZeroU64>, crossing: TransmitTimeAccount) -> Self {
        Self { ports: [PacedPort::default(); N], loopback, crossing, lateness: LatenessLimit::Kilobytes(0) }
    }

    /// Returns the bandwidth between ports in bits per second, and the cost so far of the frames between ports.
    #[must_use]
    pub fn crossing(&self) -> (Option<NonZeroU64>, TransmitTimeAccount) {
        (self.loopback, self.crossing)
    }

    /// Removes the transmit rates of all ports, and clears the ports' transmit accounts.
    pub fn reset(&mut self) {
        self.ports = [PacedPort::default(); N];
    }

    /// Returns a port's account of transmit time and lateness, as it is saved.
    #[must_use]
    pub fn debt(&self, port: PortIndex) -> TransmitRateDebt {
        self.port(port).debt
    }

    /// Restores a port's transmit rate and debt from a saved state.
    pub fn set_debt(&mut self, port: PortIndex, factor: Option<u32>, debt: TransmitRateDebt) {
        *self.port_mut(port) = PacedPort { factor, debt };
    }

    /// Continues the transmit rate and the account of a port as another plane has left them.
    pub fn continue_port(&mut self, port: PortIndex, other: &Self) {
        *self.port_mut(port) = *other.port(port);
    }

    /// Sets the longest delay by the plane that ports may make up for; a new plane allows none.
    pub fn set_lateness(&mut self, lateness: LatenessLimit) {
        self.lateness = lateness;
    }

    /// Returns `true` if a frame of the port may have to wait, for the port's rate or the bandwidth between ports.
    #[must_use]
    pub fn may_delay(&self, port: PortIndex) -> bool {
        self.loopback.is_some() || self.port(port).factor.is_some()
    }

    /// Returns true if the bandwidth between ports is limited, so that frames between ports take time.
    pub(crate) fn limits_crossing(&self) -> bool {
        self.loopback.is_some()
    }

    /// Returns how many frames of the given lengths a port's rate lets it send now, one after the other.
    pub(crate) fn admits(&self, port: PortIndex, lengths: impl Iterator<Item = usize>, now: Time) -> usize {
        let (mut debt, factor) = (self.port(port).debt, self.port(port).factor().unwrap_or(0));
        let may_leave = |length: &usize| {
            let due = debt.rate.due.max(debt.crossed) <= now.as_nanos();
            debt.rate.pay((length + FCS) as u64 * factor);
            due
        };
        lengths.take_while(may_leave).count()
    }

    /// Returns `true` if the port's transmit rate is limited.
    pub(crate) fn limits(&self, port: PortIndex) -> bool {
        self.port(port).factor.is_some()
    }

    /// Sets a port's rate as a factor: 1 Gb/s divided by the rate, with 14 binary places. `None` is no limit.
    pub fn set_rate(&mut self, port: PortIndex, factor: Option<u32>) {
        let debt = self.debt_at(port, factor);
        *self.port_mut(port) = PacedPort { factor, debt };
    }

    /// Returns a port's account for a change of its rate to `factor`. Without a limit before or after, the account has
    /// no lateness to make up for.
    #[must_use]
    pub fn debt_at(&self, port: PortIndex, factor: Option<u32>) -> TransmitRateDebt {
        let PacedPort { factor: before, debt } = *self.port(port);
        let limited = before.is_some() && factor.is_some();
        if limited { debt } else { TransmitRateDebt { owed: 0, waiting: 0, ..debt } }
    }

    /// Returns the time at which the port's next frame may leave.
    #[must_use]
    #[inline]
    pub fn due(&self, port: PortIndex) -> Time {
        let port = self.port(port);
        let rate = if port.factor.is_some() { port.debt.rate.due } else { 0 };
        Time::from_nanos(rate.max(port.debt.crossed))
    }

    /// Begins a visit to a port's transmit queue: limits the delay that the port may make up for.
    #[inline]
    pub fn visit(&mut self, port: PortIndex, now: Time) {
        let lateness = self.lateness;
        let port = self.port_mut(port);
        let Some(factor) = port.factor() else { return };
        let window = lateness.window(factor);
        let late = if port.debt.waiting != 0 { window } else { port.debt.owed };
        port.debt.rate.catch_up(now, late);
    }

    /// Ends a visit to a port's transmit queue at `now`. `left` is true if frames are left in the queue.
    #[inline]
    pub fn visited(&mut self, port: PortIndex, queue: u8, left: bool, now: Time) {
        let port = self.port_mut(port);
        port.debt.owed = port.factor().map_or(0, |_| now.as_nanos().saturating_sub(port.debt.rate.due));
        port.set_waiting(queue, left);
    }

    /// Records that a transmit queue may not send for a reason other than its rate.
    pub fn rest(&mut self, port: PortIndex, queue: u8) {
        self.port_mut(port).set_waiting(queue, false);
    }

    /// Adds the cost of a frame of `length` bytes, frame check sequence excluded, to the port's transmit account.
    #[inline]
    pub(crate) fn left(&mut self, port: PortIndex, length: usize) {
        let port = self.port_mut(port);
        if let Some(factor) = port.factor() {
            port.debt.rate.pay((length + FCS) as u64 * factor);
        }
    }

    /// Adds the cost of a frame to other ports, once for each of them, to the account of the bandwidth between ports.
    #[inline]
    pub(crate) fn crossed(&mut self, port: PortIndex, length: usize, to: PortSet, now: Time) {
        let Some(bandwidth) = self.loopback else { return };
        let bits = (length + FCS) as u64 * 8 * u64::from(to.count());
        self.crossing.catch_up(now, 0);
        self.crossing.pay(bits * (1_000_000_000 << FRACTION_BITS) / bandwidth);
        self.port_mut(port).debt.crossed = self.crossing.due;
    }

    #[inline]
    fn port(&self, port: PortIndex) -> &PacedPort {
        &self.ports[port.index::<N>()]
    }

    #[inline]
    fn port_mut(&mut self, port: PortIndex) -> &mut PacedPort {
        &mut self.ports[port.index::<N>()]
    }
}

impl PacedPort {
    #[inline]
    fn set_waiting(&mut self, queue: u8, waits: bool) {
        let bit = 1 << (queue & 15);
        self.debt.waiting = if waits { self.debt.waiting | bit } else { self.debt.waiting & !bit };
    }
}

#[cfg(test)]
mod tests {
    use super::{FCS, LatenessLimit, TransmitPacing};
    use crate::PortIndex;
    use units::Time;

    /// Rate factors of 1 Gb/s, 1 Mb/s and 100 Gb/s.
    const FACTORS: [u32; 3] = [1 << 14, 1000 << 14, (1 << 14) / 100];
    const PORT: PortIndex = PortIndex::of_field(0);

    /// A successor without the account of a port forgives the port so much.
    #[test]
    fn transmit_account_is_ahead_by_one_frame_at_most() {
        for factor in FACTORS {
            let mut pacing = TransmitPacing::<1>::new(None);
            pacing.set_lateness(LatenessLimit::Time(10_000_000));
            pacing.set_rate(PORT, Some(factor));
            let mut now = Time::from_micros(1_000_000);
            for round in 0..2_000_usize {
                let lengths = [60, 1514, 9_702, 60 + round % 1_400];
                pacing.visit(PORT, now);
                let sent = pacing.admits(PORT, lengths.into_iter(), now);
                for length in &lengths[..sent] {
                    pacing.left(PORT, *length);
                    let time = ((length + FCS) as u64 * u64::from(factor)).div_ceil(1 << 11);
                    let ahead = pacing.due(PORT).since(now).as_nanos();
                    assert!(ahead <= u128::from(time), "factor {factor}: {ahead} ns after {length} bytes");
                }
                pacing.visited(PORT, 0, sent < lengths.len(), now);
                // The plane comes at different times: before the next frame is due, and late.
                now = now + core::time::Duration::from_nanos((round as u64 % 7) * 3_000_000);
            }
        }
    }
}
