//! Waits and clock of the thread that runs a driver. A program's thread waits in the kernel; a simulation lets its host work
//! meanwhile, and moves the clock itself.

use crate::poll::{MonotonicClock, Poller};
use std::fmt;
use std::io;
use std::time::Duration;

/// Clock and waits of the thread that runs a driver.
pub trait DriverThread: fmt::Debug {
    /// Returns the time of the driver's clock in nanoseconds.
    fn now_ns(&self) -> u64;

    /// Waits for at least `time`.
    fn sleep(&mut self, time: Duration);

    /// Waits until `poller` has an event, for at most `timeout`. Returns false if it has none.
    ///
    /// # Errors
    /// The poller cannot wait.
    fn wait_for_event(&mut self, poller: &mut Poller, timeout: Duration) -> io::Result<bool>;
}

/// Thread of the operating system, with its monotonic clock.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemThread;

impl DriverThread for SystemThread {
    fn now_ns(&self) -> u64 {
        MonotonicClock.now_ns()
    }

    fn sleep(&mut self, time: Duration) {
        std::thread::sleep(time);
    }

    fn wait_for_event(&mut self, poller: &mut Poller, timeout: Duration) -> io::Result<bool> {
        Ok(poller.wait(Some(timeout))?.next().is_some())
    }
}
