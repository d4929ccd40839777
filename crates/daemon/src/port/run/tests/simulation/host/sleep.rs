//! Sleep of a simulated port: it wakes by an event or by its deadline, and not because the simulation continues.

use super::super::super::*;
use super::SimulatedHost;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// Sleep in which a port saves its state: longer than `waiting::REST`.
const LONG: Duration = Duration::from_millis(50);

/// Returns true if an event would wake the port.
pub(super) fn has_event(port: &OpenPort) -> bool {
    let poller = PollFd::new(port.clients.poller(), PollFlags::IN);
    poll(&mut [poller], Some(&Timespec::default())).expect("the kernel can poll") > 0
}

impl SimulatedHost {
    /// Runs one turn of the port, which waits for at most `most`. Returns `None` if the port has fallen asleep for longer: it wakes
    /// by an event or by its deadline, and not because the simulation continues.
    pub(super) fn turn(&mut self, port: &mut OpenPort, most: Duration) -> Option<PortTurn> {
        let (inbox, clock) = (&self.inbox, &*self.clock);
        let timeout = self.sleep.map_or(most, |sleep| sleep.min(most));
        let sleeps_longer = self.sleep.is_none_or(|sleep| sleep > timeout);
        let polls = port.clients.must_poll_pages(&port.engine);
        if timeout.is_zero() || !sleeps_longer || polls || has_event(port) {
            return Some(port.turn(inbox, Some(timeout), clock));
        }
        let began = clock.time();
        port.wait(inbox, Some(timeout), clock).expect("the port can wait");
        if clock.time() < began + timeout {
            // A ring has work.
            return Some(port.turn(inbox, Some(Duration::ZERO), clock));
        }
        self.asleep_until = Some(self.sleep.map(|sleep| began + sleep));
        None
    }

    /// Lets a port that is asleep sleep for `most` longer. Returns false if it is awake, if an event or its deadline wakes it, or
    /// if it sleeps so long that it saves its state.
    pub(super) fn sleeps_on(&mut self, most: Duration) -> bool {
        let Some(until) = self.asleep_until else { return false };
        let end = self.clock.time() + most;
        let is_over = until.is_some_and(|until| until <= end);
        let port = self.port.as_ref().expect("a port runs between two steps");
        if !(is_over || most > LONG || has_event(port)) {
            self.clock.advance(most);
            return true;
        }
        let left = until.map(|until| until.since(self.clock.time()));
        (self.sleep, self.asleep_until) = (left, None);
        false
    }
}
