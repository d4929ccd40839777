//! Waiting: how a port passes the time between two rounds. Left out: the rounds (`run`).
//!
//! Sockets, the uplink, commands and deadlines wake a sleeping port. A store into a page that a guest has mapped does not.
//! While a client has such pages ([`Wake::must_look`]) the port polls them: without a pause until it has found nothing for
//! [`SPIN`], and then after naps that double up to [`LONGEST`]. Everything else wakes it out of a nap as it would out of
//! sleep.
//!
//! As long as there is work in every round and nobody rings by message, the kernel is asked for news only after [`UNASKED`]
//! rounds: traffic by memory costs next to no system call, and a message, a command or a frame of the uplink waits for so
//! many rounds at most.
//!
//! No wake-up is lost: whether anybody must look changes only in a round, so it is known before the port lies down, and
//! a nap is never longer than its bound. The test tries every order of what guest and port do.

#[cfg(test)]
mod tests;

use crate::config::file::Wait;
use i82576::Time;
use std::io;
use std::time::Duration;

/// How many rounds in a row the kernel is not asked for news, while there is work in each.
const UNASKED: u8 = 8;

/// How long the port looks without a pause when there was work and now is none. A nap and the way out of it take about as
/// long, so this costs at most what it may spare.
const SPIN: Duration = Duration::from_micros(20);

/// The first nap after that, and the longest.
const SHORTEST: Duration = Duration::from_micros(16);
const LONGEST: Duration = Duration::from_micros(160);

/// How long a port sleeps before it is noted as it is: a guest that is talked to every millisecond pays nothing for it.
const REST: Duration = Duration::from_millis(50);

/// What a port waits for, and by which clock.
pub(super) trait Wake {
    fn now(&self) -> Time;

    /// Sleeps so long, for ever without a time, or until something wakes; answers whether something did.
    fn sleep(&mut self, time: Option<Duration>) -> io::Result<bool>;

    /// Whether the port has to poll pages that a guest has mapped.
    fn must_look(&self) -> bool;

    /// Whether a client rings by message, and waits for the port to hear it.
    fn must_hear(&self) -> bool;

    /// Looks at these pages again and again, for so long or until a guest has stored something since the last round;
    /// answers whether one has.
    fn look(&mut self, time: Duration) -> bool;

    /// Whether the port can be noted as it is, and is not.
    fn may_rest(&self) -> bool;

    /// Notes the port as it is.
    fn rest(&mut self);

    /// Tells what guests' drivers have done. It comes before the first sleep, so that a port with work does not pay for it each
    /// round.
    fn tell(&mut self);
}

/// How long to nap.
#[derive(Debug, Clone, Copy)]
pub(super) struct Naps {
    wait: Wait,
    /// The last nap since something was found.
    last: Duration,
    /// Rounds since the kernel was asked for news.
    unasked: u8,
}

impl Naps {
    pub(super) fn new(wait: Wait) -> Self {
        Self { wait, last: Duration::ZERO, unasked: 0 }
    }

    /// Something was found, or has woken the port.
    fn stirred(&mut self) {
        self.last = Duration::ZERO;
    }

    /// The next nap.
    fn next(&mut self) -> Duration {
        if self.wait != Wait::Busy {
            self.last = (self.last * 2).clamp(SHORTEST, LONGEST);
        }
        self.last
    }

    /// Waits until there is something to do, or the time is over.
    pub(super) fn pass<W: Wake>(&mut self, wake: &mut W, time: Option<Duration>) -> io::Result<()> {
        let must_look = wake.must_look();
        if time == Some(Duration::ZERO) || (must_look && wake.look(Duration::ZERO)) {
            return self.go_on(wake, must_look);
        }
        let began = wake.now();
        let passed = |wake: &W| wake.now().since(began);
        let mut rest = Some(REST).filter(|rest| wake.may_rest() && time.is_none_or(|time| time > *rest));
        let mut told = false;
        loop {
            let spin = time.map_or(SPIN, |time| time.saturating_sub(passed(wake)).min(SPIN));
            if must_look && self.last.is_zero() && wake.look(spin) {
                return self.go_on(wake, must_look);
            }
            if !std::mem::replace(&mut told, true) {
                wake.tell();
            }
            let until = [time, rest].into_iter().flatten().min();
            let until = until.map(|end| end.saturating_sub(passed(wake)));
            let nap = must_look.then(|| self.next());
            self.unasked = 0;
            let woken = wake.sleep([until, nap].into_iter().flatten().min())?;
            if woken || (must_look && wake.look(Duration::ZERO)) {
                self.stirred();
                return Ok(());
            }
            let passed = passed(wake);
            if time.is_some_and(|time| passed >= time) {
                return Ok(());
            }
            if rest.take_if(|rest| passed >= *rest).is_some() {
                wake.rest();
            }
        }
    }

    /// There is work, so there is no pause; now and then the kernel is asked for news.
    fn go_on(&mut self, wake: &mut impl Wake, must_look: bool) -> io::Result<()> {
        self.stirred();
        self.unasked = (self.unasked + 1) % (UNASKED + 1);
        if must_look && self.unasked > 0 && !wake.must_hear() {
            return Ok(());
        }
        wake.sleep(Some(Duration::ZERO)).map(drop)
    }
}
