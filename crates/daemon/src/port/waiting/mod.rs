//! Waiting: how a port passes the time between two rounds. Left out: the rounds (`run`).
//!
//! Sockets, the uplink, commands and deadlines wake a sleeping port. A store into a page that a guest has mapped wakes
//! nobody, so while there are such pages ([`Wake::must_look`]) the port looks: without a pause while it finds something,
//! and then after naps that double up to [`LONGEST`]. Everything else wakes it out of a nap as it would out of sleep.
//!
//! No wake-up is lost: whether anybody must look changes only in a round, so it is known before the port lies down, and
//! a nap is never longer than its bound. The test tries every order of what guest and port do.

#[cfg(test)]
mod tests;

use super::{CONNECTIONS, Inbox, LISTENERS, Phase, Port, UPLINK, WAKER};
use crate::config::file::Wait;
use i82576::Time;
use std::io;
use std::time::Duration;

/// The first nap after something was found, and the longest.
const SHORTEST: Duration = Duration::from_micros(4);
const LONGEST: Duration = Duration::from_micros(128);

/// How long a port sleeps before it is noted as it is: a guest that is talked to every millisecond pays nothing for it.
const REST: Duration = Duration::from_millis(50);

/// What a port waits for, and by which clock.
pub(super) trait Wake {
    fn now(&self) -> Time;

    /// Sleeps so long, for ever without a time, or until something wakes; answers whether something did.
    fn sleep(&mut self, time: Option<Duration>) -> io::Result<bool>;

    /// Whether a guest may store where nobody hears of it.
    fn must_look(&self) -> bool;

    /// Whether one has done so since the last round.
    fn stirred(&self) -> bool;

    /// Whether the port can be noted as it is, and is not.
    fn may_rest(&self) -> bool;

    /// Notes the port as it is.
    fn rest(&mut self);
}

/// How long to nap.
#[derive(Debug, Clone, Copy)]
pub(super) struct Naps {
    wait: Wait,
    next: Duration,
}

impl Naps {
    pub(super) fn new(wait: Wait) -> Self {
        Self { wait, next: Duration::ZERO }
    }

    /// How clients that come from now on are to ring.
    pub(super) fn wait(&self) -> Wait {
        self.wait
    }

    /// Something was found, or has woken the port.
    fn stirred(&mut self) {
        self.next = Duration::ZERO;
    }

    /// The next nap.
    fn next(&mut self) -> Duration {
        let nap = self.next;
        if self.wait != Wait::Busy {
            self.next = (nap * 2).clamp(SHORTEST, LONGEST);
        }
        nap
    }

    /// Waits until there is something to do, or the time is over.
    pub(super) fn pass(&mut self, wake: &mut impl Wake, time: Option<Duration>) -> io::Result<()> {
        if time == Some(Duration::ZERO) {
            // There is more to do: this is no pause.
            self.stirred();
        }
        let (began, must_look) = (wake.now(), wake.must_look());
        let mut rest = Some(REST).filter(|rest| wake.may_rest() && time.is_none_or(|time| time > *rest));
        let mut passed = Duration::ZERO;
        loop {
            let nap = must_look.then(|| self.next());
            let until = [time, rest].into_iter().flatten().min().map(|end| end.saturating_sub(passed));
            if wake.sleep([until, nap].into_iter().flatten().min())? || (must_look && wake.stirred()) {
                self.stirred();
                return Ok(());
            }
            passed = wake.now().since(began);
            if time.is_some_and(|time| passed >= time) {
                return Ok(());
            }
            if rest.take_if(|rest| passed >= *rest).is_some() {
                wake.rest();
            }
        }
    }
}

impl Port {
    /// Waits until something happens.
    pub(super) fn wait(&mut self, inbox: &Inbox, time: Option<Duration>) -> io::Result<()> {
        let mut naps = self.naps;
        let passed = naps.pass(&mut Awaiting { port: self, inbox }, time);
        self.naps = naps;
        // A round follows.
        self.rest.disturb();
        passed
    }
}

/// A port that waits.
struct Awaiting<'a> {
    port: &'a mut Port,
    inbox: &'a Inbox,
}

impl Wake for Awaiting<'_> {
    fn now(&self) -> Time {
        super::hal::now()
    }

    /// Marks the sockets that woke the port.
    fn sleep(&mut self, time: Option<Duration>) -> io::Result<bool> {
        let ready: [Option<u64>; 64] = {
            let mut ready = [None; 64];
            for (place, event) in ready.iter_mut().zip(self.port.poller.wait(time)?) {
                *place = Some(event.token);
            }
            ready
        };
        let woken = ready[0].is_some();
        if woken {
            self.port.rest.disturb();
        }
        for token in ready.into_iter().flatten() {
            match token {
                WAKER => self.inbox.waker.drain(),
                UPLINK => self.port.uplink.set_readable(),
                CONNECTIONS.. => self.port.mark((token - CONNECTIONS) as usize),
                _ => self.port.accept((token - LISTENERS) as usize),
            }
        }
        Ok(woken)
    }

    fn must_look(&self) -> bool {
        self.port.must_look()
    }

    fn stirred(&self) -> bool {
        self.port.stirred()
    }

    fn may_rest(&self) -> bool {
        self.port.phase == Phase::Serving && !self.port.rest.is_valid()
    }

    fn rest(&mut self) {
        self.port.note_rest();
    }
}
