//! Thread of a simulated guest. While the guest waits, the host works and the simulation's clock moves.

use super::host::SimulatedHost;
use host::poll::Poller;
use i82576::Time;
use std::cell::RefCell;
use std::fmt;
use std::io;
use std::rc::Rc;
use std::time::Duration;
use vfio_client::DriverThread;

/// Steps of the host within which it answers a request of a guest.
const ANSWER_STEPS: usize = 5_000;
/// Longest time by which the clock moves in one step of a wait.
const STEP: Duration = Duration::from_micros(50);

/// Thread of a guest's driver.
#[derive(Clone)]
pub(super) struct SimulatedThread(pub(super) Rc<RefCell<SimulatedHost>>);

impl fmt::Debug for SimulatedThread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SimulatedThread")
    }
}

impl DriverThread for SimulatedThread {
    fn now(&self) -> Time {
        self.0.borrow().clock.time()
    }

    fn sleep(&mut self, time: Duration) {
        let end = self.now() + time;
        while self.now() < end {
            let left = end.since(self.now());
            self.0.borrow_mut().step_and_sleep(left);
        }
    }

    fn wait_for_event(&mut self, poller: &mut Poller, _: Duration) -> io::Result<bool> {
        for _ in 0..ANSWER_STEPS {
            if poller.wait(Some(Duration::ZERO))?.next().is_some() {
                return Ok(true);
            }
            self.0.borrow_mut().step_and_sleep(STEP);
        }
        Ok(false)
    }
}
