//! How a device is reset before it changes its owner. First it may start nothing more, what it has started ends, and the
//! IOMMU forgets it; then the first rung of the ladder that the device has; at last its configuration is as at boot.
//! A device without a rung stays with its owner. Left out: what is in the configuration.

use sim::{Instant, Span};

/// What a device is capable of, and who shares its bus.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Device {
    /// Function-level reset.
    pub flr: bool,
    /// Power states D0 and D3hot; `No_Soft_Reset`, if it keeps its state between them.
    pub power: Option<NoSoftReset>,
    /// Below a bridge that can reset its secondary bus; whether every function there has one owner.
    pub bus: Option<OneOwner>,
}

/// The device keeps its state from D3hot to D0.
pub type NoSoftReset = bool;
/// All functions of a bus are of one owner.
pub type OneOwner = bool;

/// A rung of the ladder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rung {
    /// Function-level reset.
    Function = 1,
    /// To D3hot and back.
    Power = 2,
    /// The bus below the bridge.
    Bus = 3,
}

impl Rung {
    /// How long software has to wait for it (PCI Express base specification).
    #[must_use]
    pub const fn time(self) -> Span {
        match self {
            Rung::Function => Span::from_millis(100),
            // 10 ms each way.
            Rung::Power => Span::from_millis(20),
            // 2 ms held, 100 ms to the first access.
            Rung::Bus => Span::from_millis(102),
        }
    }
}

impl Device {
    /// The first rung that resets this device and disturbs nobody else.
    #[must_use]
    pub fn rung(&self) -> Option<Rung> {
        match self {
            Device { flr: true, .. } => Some(Rung::Function),
            Device { power: Some(false), .. } => Some(Rung::Power),
            Device { bus: Some(true), .. } => Some(Rung::Bus),
            _ => None,
        }
    }
}

/// What is done, in this order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// The command register's bus master bit.
    BusMasterOff,
    /// Until the device reports no pending transaction.
    Wait,
    /// The IOMMU's entries, and its cache.
    Unmap,
    /// The rung.
    Reset(Rung),
    /// The configuration of boot time; no vector of the MSI state is left.
    Restore,
    /// The pages are another's.
    HandOver,
}

/// What is to be done; `None` if the device has to stay where it is.
#[must_use]
pub fn plan(device: &Device) -> Option<[Action; 6]> {
    let rung = device.rung()?;
    Some([
        Action::BusMasterOff,
        Action::Wait,
        Action::Unmap,
        Action::Reset(rung),
        Action::Restore,
        Action::HandOver,
    ])
}

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
                which.time()
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

    /// Every device there can be.
    #[test]
    fn a_device_is_reset_by_the_first_rung_that_disturbs_nobody_or_not_at_all() {
        let options = [None, Some(false), Some(true)];
        for flr in [false, true] {
            for power in options {
                for bus in options {
                    let device = Device { flr, power, bus };
                    let rung = device.rung();
                    assert_eq!(rung == Some(Rung::Function), flr);
                    assert!(rung != Some(Rung::Power) || power == Some(false));
                    assert!(rung != Some(Rung::Bus) || bus == Some(true), "another's functions are below");
                    assert_eq!(rung.is_none(), !flr && power != Some(false) && bus != Some(true));
                    assert_eq!(plan(&device).is_none(), rung.is_none());
                }
            }
        }
    }

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
                assert!(found.took >= rung.time());
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
