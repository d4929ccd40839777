//! Watch over the time of the bus's accesses: a function pays for what the kernel does in its name beyond the counted cost, such as
//! page faults of memory that its VMM has punched, or wake-ups of very many waiters.
//!
//! The clock is read for each access in watched rounds only. A round is watched if the one before took far longer than its counted
//! cost, or while a port has a surcharge ([`plane::MeasuredShares`]). An access between the memories of two functions is charged
//! once both are suspects: the bus then reads from the one and writes to the other, frame by frame.

use crate::clock::SharedClock;
use i82576::Time;
use pcie::Function;
use plane::{MeasuredShares, PortIndex, PortSet};
use std::time::Duration;
use units::WorkCost;

/// Time of a unit of cost (`units::work`).
const UNIT: Duration = Duration::from_nanos(100);
/// Time that a unit of counted cost may take on a slow machine, before a round counts as slow.
const SLOW_UNIT: Duration = Duration::from_nanos(400);
/// Time beyond its counted cost that any round may take. So a VMM gets less than this time of a round unpaid.
const USUAL: Duration = Duration::from_micros(100);
/// Greatest time beyond their counted cost that rounds may usually take, such as those with many calls for an uplink.
const MOST_USUAL: Duration = Duration::from_millis(1);
/// Excess of one access from which the watch asks for how long the thread did not run, which no function pays.
const INTERRUPTED: Duration = Duration::from_micros(100);
/// Time that an interrupt to an eventfd may take without excess.
const INTERRUPT: Duration = Duration::from_micros(4);

/// Time of one function's accesses since the last settlement.
#[derive(Debug, Clone, Copy, Default)]
struct AccessTime {
    /// Time beyond the usual time of the accesses.
    excess: Duration,
    /// Number of items, such as frames, in accesses that took longer than usual.
    items: u32,
    interrupts: u32,
}

/// Watch over the accesses of one thread.
#[derive(Debug)]
pub(super) struct AccessWatch {
    clock: SharedClock,
    /// True in a watched round.
    is_on: bool,
    /// VFs that were part of a slow access between two functions.
    suspects: PortSet,
    /// VFs that have something to settle.
    noted: PortSet,
    times: Box<[AccessTime; 64]>,
    /// Excess found in this round, whether a function pays for it or not.
    found: Duration,
    /// Time beyond its counted cost from which a round is slow.
    usual: Duration,
    /// Time at which the thread's processor time was last read, and that processor time.
    ran: Option<(Time, Duration)>,
}

impl AccessWatch {
    /// Creates a watch that reads this clock.
    pub(super) fn new(clock: SharedClock) -> Self {
        Self {
            clock,
            is_on: false,
            suspects: PortSet::NONE,
            noted: PortSet::NONE,
            times: Box::new([AccessTime::default(); 64]),
            found: Duration::ZERO,
            usual: USUAL,
            ran: None,
        }
    }

    /// Begins a round.
    pub(super) fn begin_round(&mut self) {
        if self.is_on {
            self.ran = None;
            self.time_off();
        }
    }

    /// Begins an access. Returns the present time in a watched round.
    #[inline]
    pub(super) fn begin(&self) -> Option<Time> {
        if self.is_on { Some(self.clock.now()) } else { None }
    }

    /// Ends an access to `items` items of together `bytes` bytes in a function's memory.
    #[inline]
    pub(super) fn end(&mut self, began: Option<Time>, function: Function, items: usize, bytes: usize) {
        if let Some(began) = began {
            self.note(began, &[function], items, usual_time(items, bytes));
        }
    }

    /// Ends an access between the memories of two functions. An excess makes both suspects.
    #[inline]
    pub(super) fn end_both(&mut self, began: Option<Time>, both: [Function; 2], items: usize, bytes: usize) {
        if let Some(began) = began {
            self.note(began, &both, items, usual_time(items, bytes));
        }
    }

    /// Ends an interrupt of a function.
    #[inline]
    pub(super) fn end_interrupt(&mut self, began: Option<Time>, function: Function) {
        if let Some(port) = port_of(function) {
            self.times[usize::from(port.get())].interrupts += 1;
            self.noted |= port.only();
        }
        if let Some(began) = began {
            self.note(began, &[function], 1, INTERRUPT);
        }
    }

    /// Returns true if an access between two functions has to show which of them takes the time.
    #[inline]
    pub(super) fn separates(&self, both: [Function; 2]) -> bool {
        self.is_on && both.into_iter().filter_map(port_of).any(|port| self.suspects.has(port))
    }

    #[cold]
    fn note(&mut self, began: Time, functions: &[Function], items: usize, usual: Duration) {
        let now = self.clock.now();
        let mut excess = now.since(began).saturating_sub(usual);
        if excess > INTERRUPTED {
            excess = excess.saturating_sub(self.time_off());
        }
        self.found += excess;
        if excess.is_zero() {
            return;
        }
        let ports = functions.iter().copied().filter_map(port_of);
        if functions.len() > 1 {
            ports.for_each(|port| self.suspects |= port.only());
            return;
        }
        for port in ports {
            let time = &mut self.times[usize::from(port.get())];
            time.excess += excess;
            time.items = time.items.saturating_add(u32::try_from(items).unwrap_or(u32::MAX));
            self.noted |= port.only();
            self.suspects |= port.only();
        }
    }

    /// Returns for how long the thread did not run since the last call, as another thread ran or a disk was read.
    fn time_off(&mut self) -> Duration {
        let Some(busy) = self.clock.thread_time() else { return Duration::ZERO };
        let now = self.clock.now();
        let before = self.ran.replace((now, busy));
        before.map_or(Duration::ZERO, |(then, ran)| now.since(then).saturating_sub(busy.saturating_sub(ran)))
    }

    /// Charges the functions for their accesses since the last call.
    pub(super) fn settle(&mut self, shares: &mut dyn MeasuredShares, now: Time) {
        for port in std::mem::replace(&mut self.noted, PortSet::NONE).iter() {
            let AccessTime { excess, items, interrupts } =
                std::mem::take(&mut self.times[usize::from(port.get())]);
            if interrupts > 0 {
                let WorkCost(each) = WorkCost::INTERRUPT;
                shares.charge_counted(port, WorkCost(each.saturating_mul(interrupts)));
            }
            let units = excess.as_nanos() / UNIT.as_nanos();
            if units > 0 {
                shares.charge_measured(port, WorkCost::of_units(units as usize), items, now);
            }
        }
    }

    /// Ends a round that took this time, and decides whether the next one is watched.
    pub(super) fn end_round(&mut self, took: Duration, shares: &mut dyn MeasuredShares, now: Time) {
        let (counted, found) = (shares.take_counted(), std::mem::take(&mut self.found));
        let is_slow = took > USUAL && self.is_slow(took, counted, found);
        if self.usual > USUAL {
            self.usual = (self.usual - self.usual / 1024).max(USUAL);
        }
        self.is_on = shares.age_surcharges(now) || is_slow;
        if !self.is_on {
            self.suspects = PortSet::NONE;
        }
    }

    /// Returns true if a round took far longer than its counted cost. Slow rounds become usual if the accesses of a watched one are
    /// not the cause.
    fn is_slow(&mut self, took: Duration, WorkCost(counted): WorkCost, found: Duration) -> bool {
        let beyond = took.saturating_sub(SLOW_UNIT * counted);
        let is_slow = beyond > self.usual;
        if is_slow && self.is_on && found < beyond / 4 {
            self.usual = (2 * beyond).min(MOST_USUAL);
        }
        is_slow
    }
}

/// Returns the time that an access to `items` items may take without excess. A copy of cold memory takes some 0.3 us for an
/// item, and 0.5 ns for a byte.
fn usual_time(items: usize, bytes: usize) -> Duration {
    Duration::from_nanos(200 + 300 * items as u64 + bytes as u64 / 2)
}

/// Returns the plane's port of a VF.
#[inline]
fn port_of(function: Function) -> Option<PortIndex> {
    match function {
        Function::Pf => None,
        Function::Vf(vf) => PortIndex::new(vf),
    }
}

#[cfg(test)]
mod tests;
