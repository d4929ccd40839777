//! Thread of a simulated guest. While the guest waits, the host works and the simulation's clock moves.

use super::host::SimulatedHost;
use host::driver_thread::DriverThread;
use host::poll::Poller;
use std::cell::RefCell;
use std::fmt;
use std::io;
use std::rc::Rc;
use std::time::Duration;

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
    fn now_ns(&self) -> u64 {
        self.0.borrow().clock.time().as_nanos()
    }

    fn sleep(&mut self, time: Duration) {
        let end = self.0.borrow().clock.time() + time;
        while self.0.borrow().clock.time() < end {
            let left = end.since(self.0.borrow().clock.time());
            self.0.borrow_mut().step_of_driver(left);
        }
    }

    fn wait_for_event(&mut self, poller: &mut Poller, _: Duration) -> io::Result<bool> {
        let (began, undisturbed) = {
            let host = self.0.borrow();
            (host.clock.time(), host.deaths)
        };
        let is_late = self.0.borrow().kernel.is_driver_late();
        if is_late {
            // No hand-over: a driver that waits for room has sent a part of a message, whose rest the port awaits for 20 ms only.
            self.0.borrow_mut().step(STEP);
        }
        for _ in 0..ANSWER_STEPS {
            if poller.wait(Some(Duration::ZERO))?.next().is_some() {
                let mut host = self.0.borrow_mut();
                if host.deaths == undisturbed {
                    host.longest_answer = host.longest_answer.max(host.clock.time().since(began));
                }
                return Ok(true);
            }
            self.0.borrow_mut().step_of_driver(STEP);
        }
        Ok(false)
    }
}
