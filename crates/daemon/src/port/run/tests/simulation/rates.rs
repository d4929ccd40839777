//! Transmit rates of guests: no guest sends more than its rate permits, and one that always has frames sends as much.

use super::guest::SimulatedGuest;
use super::host::SimulatedHost;
use crate::config::file::CardFamily;
use std::time::Duration;

/// Time of lateness by the host that a guest may make up for.
const LATENESS: Duration = Duration::from_millis(10);
/// Bytes that a guest may send besides: the smallest window of an 82576, and frames that have left before they cost time.
const SLACK: u128 = 22 << 10;

/// Transmit rate of a VF.
#[derive(Debug, Clone, Copy)]
pub(super) struct TransmitRate {
    /// Rate in Mb/s.
    own: u32,
    /// Rate in Mb/s by which the VF makes up for lateness: its own, or the fastest one of an 82576.
    late: u32,
}

impl TransmitRate {
    /// Returns the rates of all guests' VFs; `None` for one without a limit.
    pub(super) fn of_all(guests: &[SimulatedGuest], host: &SimulatedHost) -> Vec<Option<Self>> {
        let rate = |guest: &SimulatedGuest| host.policies.of(guest.index()).rate;
        let fastest = guests.iter().map(rate).max().unwrap_or(0);
        let of = |guest: &SimulatedGuest| {
            let own = rate(guest);
            let late = if guest.family() == CardFamily::I82576 { fastest } else { own };
            (own > 0).then_some(Self { own, late })
        };
        guests.iter().map(of).collect()
    }
}

/// Returns the number of bytes that a rate in Mb/s permits in a time.
fn permitted(rate: u32, time: Duration) -> u128 {
    time.as_nanos() * u128::from(rate) / 8_000
}

/// Bytes that a guest has sent in a time.
#[derive(Debug)]
pub(super) struct SentBytes {
    pub(super) guest: usize,
    pub(super) bytes: u64,
    pub(super) time: Duration,
}

impl SentBytes {
    /// Checks that the guest has sent no more than its rate permits.
    pub(super) fn check_most(&self, rate: TransmitRate) -> Result<(), String> {
        let most = permitted(rate.own, self.time) + permitted(rate.late, LATENESS) + SLACK;
        if u128::from(self.bytes) > most { Err(self.fault(rate, most)) } else { Ok(()) }
    }

    /// Checks that a guest which always had frames has sent three quarters of what its rate permits.
    pub(super) fn check_least(&self, rate: TransmitRate) -> Result<(), String> {
        let least = permitted(rate.own, self.time) * 3 / 4;
        if u128::from(self.bytes) < least { Err(self.fault(rate, least)) } else { Ok(()) }
    }

    fn fault(&self, rate: TransmitRate, bound: u128) -> String {
        let Self { guest, bytes, time } = self;
        format!(
            "guest {guest} has sent {bytes} bytes in {time:?} at {} Mb/s, and {bound} is the bound",
            rate.own
        )
    }
}
