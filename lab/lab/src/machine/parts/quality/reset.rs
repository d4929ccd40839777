//! Resets a modelled device that is writing to memory, by the rules of [`pcie::ladder`], in virtual time.

pub use pcie::ladder::{DeviceResetMethod, ResetAction, ResetCapabilities, plan};
use sim::{VirtualDuration, VirtualInstant};

/// Results of resetting a device that may be writing to memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ResetResults {
    /// Method by which the device was reset, or `None` if no reset was performed.
    pub rung: Option<DeviceResetMethod>,
    /// Number of a device's memory writes that arrived in a page after the page had a new owner.
    pub late_writes: u32,
    /// Number of the device's writes that the IOMMU blocked.
    pub stopped: u32,
    /// Time from the first action of the reset to the last.
    pub took: VirtualDuration,
}

/// Interval between memory writes of a busy device, in the reset experiment.
const INTERVAL: VirtualDuration = VirtualDuration::from_micros(1);
/// Time from a device's memory write until it arrives in memory.
const LATENCY: VirtualDuration = VirtualDuration::from_micros(40);
/// Interval between polls of the device's pending transactions.
const POLL: VirtualDuration = VirtualDuration::from_micros(100);
/// Time of one access to configuration space. Unmapping takes as long as two accesses, and restoring as long
/// as 16.
const ACCESS: VirtualDuration = VirtualDuration::from_micros(2);

/// Performs reset actions in order on a device that, if `busy`, writes to memory all the time.
#[must_use]
pub fn run(actions: &[ResetAction], busy: bool) -> ResetResults {
    let begin = VirtualInstant::ZERO + LATENCY.times(2);
    let mut now = begin;
    let (mut stops, mut unmapped, mut handed_over, mut rung) = (None, None, None, None);
    for action in actions {
        now += match action {
            ResetAction::BusMasterOff => {
                stops.get_or_insert(now);
                ACCESS
            }
            ResetAction::Wait => {
                let last = if busy { stops.map_or(VirtualInstant::NEVER, |at| at + LATENCY) } else { now };
                // A device that is not stopped always has pending transactions: software gives up after a
                // second.
                let looks = last.since(now).picos().div_ceil(POLL.picos()).min(10_000);
                POLL.times(looks)
            }
            ResetAction::Unmap => {
                unmapped = Some(now);
                ACCESS.times(2)
            }
            ResetAction::Reset(which) => {
                rung = Some(*which);
                stops.get_or_insert(now);
                VirtualDuration::from_micros(which.time().as_micros() as u64)
            }
            ResetAction::Restore => ACCESS.times(16),
            ResetAction::HandOver => {
                handed_over = Some(now);
                VirtualDuration::ZERO
            }
        };
    }
    let last = stops.unwrap_or(now + LATENCY.times(2));
    let mut found = ResetResults { rung, late_writes: 0, stopped: 0, took: now.since(begin) };
    let mut at = if busy { VirtualInstant::ZERO } else { last };
    // Writes issued before the device was stopped are still in flight.
    at = at.max(VirtualInstant::ZERO + last.since(VirtualInstant::ZERO + LATENCY.times(2)));
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
    use super::{DeviceResetMethod, ResetAction, ResetCapabilities, plan, run};
    use sim::VirtualDuration;

    #[test]
    fn device_reset_in_full_order_has_no_late_or_blocked_writes() {
        for rung in [DeviceResetMethod::Function, DeviceResetMethod::Power, DeviceResetMethod::Bus] {
            let device = match rung {
                DeviceResetMethod::Function => ResetCapabilities { flr: true, power: None, bus: None },
                DeviceResetMethod::Power => ResetCapabilities { flr: false, power: Some(false), bus: None },
                DeviceResetMethod::Bus => ResetCapabilities { flr: false, power: None, bus: Some(true) },
            };
            for busy in [false, true] {
                let found = run(&plan(&device).unwrap(), busy);
                assert_eq!((found.rung, found.late_writes, found.stopped), (Some(rung), 0, 0));
                assert!(found.took >= VirtualDuration::from_millis(rung.time().as_millis() as u64));
            }
        }
    }

    /// Checks that writes of the device arrive late if the first actions of a reset are left out.
    #[test]
    fn device_reset_without_its_first_steps_allows_late_writes() {
        use ResetAction::{BusMasterOff, HandOver, Unmap, Wait};
        assert!(run(&[HandOver], true).late_writes > 0);
        assert!(run(&[BusMasterOff, HandOver], true).late_writes > 0);
        assert!(run(&[BusMasterOff, Unmap, HandOver], true).stopped > 0);
        assert_eq!(run(&[BusMasterOff, Wait, HandOver], true).late_writes, 0);
        assert_eq!(run(&[HandOver], false).late_writes, 0);
    }
}
