//! Surcharges: ports whose accesses cost more than the counted cost of their frames (`units::work`), such as for page faults of their
//! memory. The device measures that cost and charges it ([`crate::MeasuredShares`]). A port with a surcharge gets smaller visits, and
//! deep in debt it receives no frames: their senders would wait for its memory.

use crate::{PortIndex, PortSet};
use core::time::Duration;
use units::work::RECEIVE_DEBT;
use units::{Time, WorkCost};

/// Time after which a surcharge is halved, if no access has cost as much since.
const HALVED_AFTER: Duration = Duration::from_secs(1);

/// Surcharge of a port, and the frames that it has received in a round.
#[derive(Debug, Clone, Copy, Default)]
struct Surcharge {
    /// Mean cost of an access beyond its counted cost.
    rate: u32,
    /// Time at which the rate was measured, or halved.
    since: Time,
    /// Round of `foreseen`.
    round: u32,
    /// Expected cost of the frames that the port has received in the round, and was not charged for yet.
    foreseen: WorkCost,
}

/// Surcharges of `N` ports.
#[derive(Debug, Clone)]
pub(crate) struct Surcharges<const N: usize> {
    /// Ports with a surcharge.
    pub(crate) ports: PortSet,
    of: [Surcharge; N],
}

impl<const N: usize> Surcharges<N> {
    pub(crate) const fn new() -> Self {
        const NONE: Surcharge = Surcharge { rate: 0, since: Time::ZERO, round: 0, foreseen: WorkCost(0) };
        Self { ports: PortSet::NONE, of: [NONE; N] }
    }

    /// Continues the surcharge of a port as another plane has left it.
    pub(crate) fn continue_port(&mut self, port: PortIndex, other: &Self) {
        self.of[port.index::<N>()] = other.of[port.index::<N>()];
        self.mark(port);
    }

    /// Returns the number of frames that cost at most `credit`, at least 1.
    pub(crate) fn frames(&self, port: PortIndex, credit: WorkCost) -> usize {
        (credit.0 / self.of[port.index::<N>()].rate.saturating_add(1)).max(1) as usize
    }

    /// Returns true if a port with this debt may receive another frame in a round, and counts the frame's expected cost.
    pub(crate) fn admit(&mut self, port: PortIndex, debt: WorkCost, round: u32) -> bool {
        let surcharge = &mut self.of[port.index::<N>()];
        if surcharge.round != round {
            (surcharge.round, surcharge.foreseen) = (round, WorkCost(0));
        }
        let admitted = debt + surcharge.foreseen < RECEIVE_DEBT;
        if admitted {
            surcharge.foreseen = surcharge.foreseen + WorkCost(surcharge.rate);
        }
        admitted
    }

    pub(crate) fn note(&mut self, port: PortIndex, rate: u32, now: Time) {
        let surcharge = &mut self.of[port.index::<N>()];
        surcharge.foreseen = WorkCost(0);
        if rate > 0 && rate >= surcharge.rate {
            (surcharge.rate, surcharge.since) = (rate, now);
            self.mark(port);
        }
    }

    pub(crate) fn age(&mut self, now: Time) {
        for port in self.ports.iter() {
            let surcharge = &mut self.of[port.index::<N>()];
            if now.since(surcharge.since) >= HALVED_AFTER {
                (surcharge.rate, surcharge.since) = (surcharge.rate / 2, now);
                self.mark(port);
            }
        }
    }

    /// Notes whether a port has a surcharge.
    fn mark(&mut self, port: PortIndex) {
        let has_rate = self.of[port.index::<N>()].rate > 0;
        let others = PortSet::new(self.ports.bits() & !port.only().bits());
        self.ports = if has_rate { others | port.only() } else { others };
    }
}
