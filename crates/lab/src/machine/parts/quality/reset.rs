//! The reset of a device that writes to memory meanwhile, by the rules of [`pcie::ladder`], in virtual time. Left out: what
//! is in the configuration.

pub use pcie::ladder::{Action, Device, Rung, plan};
use sim::{Instant, Span};

/// What was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Found {
    /// The rung used.
    pub rung: Option<Rung>,
    /// Writes of the device that reached pages after they were another's.
    pub late_writes: u32,
    /// Writes that the IOMMU stopped.
    pub stopped: u32,
    /// From the first action to the last.
    pub took: Span,
}

/// From one write of a busy device to the next, and from a write to the memory.
const BETWEEN: Span = Span::from_micros(1);
const UNDER_WAY: Span = Span::from_micros(40);
/// From one look at pending transactions to the next.
const LOOK: Span = Span::from_micros(100);
/// Of an access to the configuration, and of an invalidation.
const ACCESS: Span = Span::from_micros(2);

/// Resets a device that writes to memory all the time, if it is `busy`, by doing `actions` in their order.
#[must_use]
pub fn run(actions: &[Action], busy: bool) -> Found {
    let begin = Instant::ZERO + UNDER_WAY.times(2);
    let mut now = begin;
    let (mut stops, mut unmapped, mut handed_over, mut rung) = (None, None, None, None);
    for action in actions {
        now += match action {
            Action::BusMasterOff => {
                stops.get_or_insert(now);
                ACCESS
            }
            Action::Wait => {
                let last = if busy { stops.map_or(Instant::NEVER, |at| at + UNDER_WAY) } else { now };
                // A device that is not stopped always has something pending: software gives up after a second.
                let looks = last.since(now).picos().div_ceil(LOOK.picos()).min(10_000);
                LOOK.times(looks)
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
    let last = stops.unwrap_or(now + UNDER_WAY.times(2));
    let mut found = Found { rung, late_writes: 0, stopped: 0, took: now.since(begin) };
    let mut at = if busy { Instant::ZERO } else { last };
    // What a device started before it was stopped is still on its way for a while.
    at = at.max(Instant::ZERO + last.since(Instant::ZERO + UNDER_WAY.times(2)));
    while at < last {
        let arrives = at + UNDER_WAY;
        if unmapped.is_some_and(|since| arrives > since) {
            found.stopped += 1;
        } else if handed_over.is_some_and(|since| arrives > since) {
            found.late_writes += 1;
        }
        at += BETWEEN;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::{Action, Device, Rung, plan, run};
    use sim::Span;

    #[test]
    fn in_its_order_nothing_is_written_late_or_even_stopped() {
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

    /// What the order is for.
    #[test]
    fn without_its_first_steps_a_busy_device_writes_to_anothers_pages() {
        use Action::{BusMasterOff, HandOver, Unmap, Wait};
        assert!(run(&[HandOver], true).late_writes > 0);
        assert!(run(&[BusMasterOff, HandOver], true).late_writes > 0);
        assert!(run(&[BusMasterOff, Unmap, HandOver], true).stopped > 0);
        assert_eq!(run(&[BusMasterOff, Wait, HandOver], true).late_writes, 0);
        assert_eq!(run(&[HandOver], false).late_writes, 0);
    }
}
