//! Sends a device's interrupts, and delays those that come too early after the one before.

use crate::device::VirtioDevice;
use crate::limits::MAX_PAIRS;
use crate::moderation::InterruptIntervals;
use core::time::Duration;
use pcie::{Bus, Function};
use plane::PortIndex;
use units::Time;

impl VirtioDevice {
    /// Interrupts the driver for a ring, or delays that to the end of the ring's interval.
    pub(crate) fn interrupt<B: Bus>(
        &mut self,
        (port, ring): (PortIndex, u32),
        (now, intervals): (Time, InterruptIntervals),
        bus: &mut B,
    ) {
        let interval = intervals.of(ring);
        if interval > Duration::ZERO {
            let times = &mut self.interrupts;
            if times.last.is_empty() {
                // Allocated once for each start of a device.
                times.last.resize(2 * MAX_PAIRS, Time::ZERO);
            }
            let Some(last) = times.last.get_mut(ring as usize) else { return };
            if *last > Time::ZERO && now < *last + interval {
                times.delayed |= 1 << ring;
                return;
            }
            *last = now;
            times.delayed &= !(1 << ring);
        }
        self.counters.calls += 1;
        bus.msix(Function::Vf(port.get()), ring as u16);
    }

    /// Sends the delayed interrupts whose time has come. Returns the time of the next one.
    pub(crate) fn send_delayed<B: Bus>(
        &mut self,
        port: PortIndex,
        (now, intervals): (Time, InterruptIntervals),
        bus: &mut B,
    ) -> Option<Time> {
        let (mut delayed, mut due) = (self.interrupts.delayed, None);
        while delayed != 0 {
            let ring = delayed.trailing_zeros();
            delayed &= delayed - 1;
            let last = self.interrupts.last.get(ring as usize).copied().unwrap_or(Time::ZERO);
            let time = last + intervals.of(ring);
            if now < time {
                due = [due, Some(time)].into_iter().flatten().min();
            } else {
                self.interrupts.delayed &= !(1 << ring);
                self.interrupt((port, ring), (now, intervals), bus);
            }
        }
        due
    }
}
