//! State of a driver that sleeps until an interrupt, as a guest's driver does instead of polling.

use host::eventfd::EventFd;

/// State of a driver that sleeps until an interrupt of its receive ring.
#[derive(Debug, Default)]
pub(super) struct InterruptState {
    /// Number of interrupts that the driver has seen and not reported.
    calls: u64,
    pub(super) asleep: bool,
}

impl InterruptState {
    /// Returns the number of interrupts since the last call of this function.
    pub(super) fn take_calls(&mut self) -> u64 {
        std::mem::take(&mut self.calls)
    }

    /// Counts the interrupts that `call` has signalled to a sleeping driver. Returns true if there is one, which wakes the driver.
    pub(super) fn wakes(&mut self, call: &EventFd) -> bool {
        let calls = call.drain();
        self.calls += calls;
        self.asleep = calls == 0;
        calls > 0
    }
}
