//! Resets a device that is writing to memory, by the rules of [`pcie::ladder`], in virtual time.

pub use pcie::ladder::{Action, Device, Rung, plan};
use sim::{Instant, Span};

/// Results of resetting a device that is writing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Results {
    /// Method by which the device was reset.
    pub rung: Option<Rung>,
    /// Number of writes that arrived in pages after they had a new owner.
    pub late_writes: u32,
    /// Number of writes that the IOMMU blocked.
    pub stopped: u32,
    /// Time from the first action of the reset to the last.
    pub took: Span,
}

/// Interval between writes of a busy device, and latency of a write.
const INTERVAL: Span = Span::from_micros(1);
const LATENCY: Span = Span::from_micros(40);
/// Interval between polls of pending transactions.
const POLL: Span = Span::from_micros(100);
/// Time that a configuration access takes, and time of an invalidation.
const ACCESS: Span = Span::from_micros(2);

/// Performs `actions` in order on a device that, if `busy`, writes to memory all the time.
#[must_use]
pub fn run(actions: &[Action], busy: bool) -> Results {
    let begin = Instant::ZERO + LATENCY.times(2);
    let mut now = begin;
    let (mut stops, mut unmapped, mut handed_over, mut rung) = (None, None, None, None);
    for action in actions {
        now += match action {
            Action::BusMasterOff => {
                stops.get_or_insert(now);
                ACCESS
            }
            Action::Wait => {
                let last = if busy { stops.map_or(Instant::NEVER, |at| at + LATENCY) } else { now };
                // A device that is not stopped always has pending transactions: software gives up after a
                // second.
                let looks = last.since(now).picos().div_ceil(POLL.picos()).min(10_000);
                POLL.times(looks)
            }
            Action::Unmap => {
                unmapped = Some(now);
                ACCESS.times(2)
            }
            Action::Reset(which) => {
                rung = Some(*which);
                stops.get_or_insert(now);
                Span::from_micros(which.time().as_micros() as u64)
            }
            Action::Restore => ACCESS.times(16),
            Action::HandOver => {
                handed_over = Some(now);
                Span::ZERO
            }
        };
    }
    let last = stops.unwrap_or(now + LATENCY.times(2));
    let mut found = Results { rung, late_writes: 0, stopped: 0, took: now.since(begin) };
    let mut at = if busy { Instant::ZERO } else { last };
    // Writes issued before the device was stopped are still in flight.
    at = at.max(Instant::ZERO + last.since(Instant::ZERO + LATENCY.times(2)));
    while at < last {
        let arrives = at + LATENCY;
        if unmapped.is_some_and(|since| arrives > since) {
            found.stopped += 1;
        } else if handed_over.is_some_and(|since| arrives > since) {
            found.late_writes += 1;
        }
        at += INTERVAL;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::{Action, Device, Rung, plan, run};
    use sim::Span;

    #[test]
    fn device_reset_in_full_order_has_no_late_or_blocked_writes() {
        for rung in [Rung::Function, Rung::Power, Rung::Bus] {
            let device = match rung {
                Rung::Function => Device { flr: true, power: None, bus: None },
                Rung::Power => Device { flr: false, power: Some(false), bus: None },
                Rung::Bus => Device { flr: false, power: None, bus: Some(true) },
            };
            for busy in [false, true] {
                let found = run(&plan(&device).unwrap(), busy);
                assert_eq!((found.rung, found.late_writes, found.stopped), (Some(rung), 0, 0));
                assert!(found.took >= Span::from_millis(rung.time().as_millis() as u64));
            }
        }
    }

    /// Shows why the steps have their order: without the first ones, writes arrive late.
    #[test]
    fn device_reset_without_its_first_steps_allows_late_writes() {
        use Action::{BusMasterOff, HandOver, Unmap, Wait};
        assert!(run(&[HandOver], true).late_writes > 0);
        assert!(run(&[BusMasterOff, HandOver], true).late_writes > 0);
        assert!(run(&[BusMasterOff, Unmap, HandOver], true).stopped > 0);
        assert_eq!(run(&[BusMasterOff, Wait, HandOver], true).late_writes, 0);
        assert_eq!(run(&[HandOver], false).late_writes, 0);
    }
}
