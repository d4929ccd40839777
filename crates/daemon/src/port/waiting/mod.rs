//! Waiting of a port's thread between two rounds of its loop.
//!
//! Sockets, the uplink, commands and deadlines wake a sleeping port. Two kinds of a guest's stores do not, and the port
//! polls for them:
//!
//! - A doorbell in a register page that the guest has mapped. While a client has such pages
//!   ([`PortWaitEnvironment::must_poll_pages`]), the port polls them without a pause until it has found no store for [`SPIN`],
//!   and then after naps that double up to [`LONGEST`]. Every other event ends a nap as it ends sleep.
//! - A packet in a ring whose driver sends no notifications, because the card polls the ring
//!   ([`PortWaitEnvironment::polls_rings`]). Before the port sleeps, it asks the drivers for notifications. If that pays, it
//!   polls the rings for [`SPIN`] before: the last sleep ended sooner by a notification, and the last such poll was not in
//!   vain.
//!
//! While every round has work and no client rings by message, the port polls the kernel only after [`UNPOLLED_ROUNDS`]
//! rounds. So traffic by memory costs next to no system call. A message, a notification, a command or a frame of the uplink
//! waits for at most that number of rounds.
//!
//! No wake-up is lost. Only a round changes whether pages must be polled and which rings are, so the port knows it before it
//! sleeps, and a nap is bounded. The test tries every order of the guest's and the port's steps.

#[cfg(test)]
mod tests;

use crate::config::file::DoorbellMode;
use i82576::Time;
use std::io;
use std::time::Duration;

/// Maximum number of consecutive busy rounds of the port's loop without a poll of the kernel.
const UNPOLLED_ROUNDS: u8 = 8;

/// Maximum time without a poll of the kernel. Guests with many rings make rounds long.
const LONGEST_UNPOLLED: Duration = Duration::from_micros(200);

/// Time for which mapped pages are polled without a pause after the last work. A nap and the wake-up from it take
/// about as long, so polling costs at most the time that it may save.
const SPIN: Duration = Duration::from_micros(20);

/// Length of the first nap after work, between two polls of mapped pages.
const SHORTEST: Duration = Duration::from_micros(16);
/// Maximum length of a nap between two polls of mapped pages.
const LONGEST: Duration = Duration::from_micros(160);

/// Idle time after which the port saves its state for the successor process. A guest with steady traffic never leaves
/// the port idle for that long.
const REST: Duration = Duration::from_millis(50);

/// End of a port's sleep.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SleepEnd {
    TimeOver,
    /// The driver of a ring has sent a notification, and other events may have come too.
    Notification,
    OtherEvent,
}

/// Interface by which a waiting port reads the clock, sleeps, polls and saves.
pub(super) trait PortWaitEnvironment {
    fn now(&self) -> Time;

    /// Sleeps until an event, for `time` at most, or without a limit if it is `None`.
    fn sleep(&mut self, time: Option<Duration>) -> io::Result<SleepEnd>;

    /// Returns the doorbell mode of the port.
    fn doorbell_mode(&self) -> DoorbellMode;

    /// Returns true if the port has to poll pages that a guest has mapped.
    fn must_poll_pages(&self) -> bool;

    /// Returns true if a client sends doorbells by message. Then every round of the port's loop polls the kernel.
    fn must_receive(&self) -> bool;

    /// Returns true if the card polls rings whose drivers send no notifications.
    fn polls_rings(&self) -> bool;

    /// Prepares rings for sleep: asks the drivers of polled rings for a notification of their next packet, and other threads to
    /// wake this one. Returns true if a ring has work already.
    fn arm_rings(&mut self) -> bool;

    /// Polls mapped pages and rings, for `time` at most, until a guest has stored a doorbell or a packet since the last
    /// round. Returns true if a guest has.
    fn poll_memory(&mut self, time: Duration) -> bool;

    /// Returns true if the port can be saved for the successor process and is not saved yet.
    fn may_note(&self) -> bool;

    /// Saves the state of the whole port for the successor process.
    fn note(&mut self);

    /// Logs events of guests' drivers. Called before the first sleep, so that a port with work does not pay for it in
    /// each round.
    fn log_changes(&mut self);
}

/// Backoff of naps: short sleeps of growing length between two polls of mapped pages.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct PollingNapBackoff {
    /// Length of the last nap since the last work, zero if there was none.
    last: Duration,
    /// Number of rounds of the port's loop since the kernel was last polled.
    unpolled: u8,
    /// Time at which the kernel was last polled.
    polled: Time,
    /// True if polling rings before a sleep has paid last time, or would have.
    pays: bool,
}

impl PollingNapBackoff {
    /// Starts again with the shortest nap, after work or a wake-up.
    fn restart(&mut self) {
        self.last = Duration::ZERO;
    }

    /// Returns the duration of the port's next nap, a short sleep.
    fn next(&mut self, mode: DoorbellMode) -> Duration {
        if mode != DoorbellMode::Busy {
            self.last = (self.last * 2).clamp(SHORTEST, LONGEST);
        }
        self.last
    }

    /// Waits until the port has work, or `time` is over: polls mapped pages, naps and sleeps.
    pub(super) fn pass<W: PortWaitEnvironment>(
        &mut self,
        wake: &mut W,
        time: Option<Duration>,
    ) -> io::Result<()> {
        let (pages, rings) = (wake.must_poll_pages(), wake.polls_rings());
        let polls = pages || rings;
        if time == Some(Duration::ZERO) || (polls && wake.poll_memory(Duration::ZERO)) {
            return self.check_kernel(wake, polls);
        }
        let began = wake.now();
        let passed = |wake: &W| wake.now().since(began);
        let mut rest = Some(REST).filter(|rest| wake.may_note() && time.is_none_or(|time| time > *rest));
        let mut logged = false;
        loop {
            let spin = time.map_or(SPIN, |time| time.saturating_sub(passed(wake)).min(SPIN));
            if self.spins(wake, (pages, rings)) {
                if wake.poll_memory(spin) {
                    return self.check_kernel(wake, polls);
                }
                self.pays = false;
            }
            if !std::mem::replace(&mut logged, true) {
                wake.log_changes();
            }
            let busy = rings && wake.doorbell_mode() == DoorbellMode::Busy;
            if !busy && wake.arm_rings() {
                return self.check_kernel(wake, polls);
            }
            let until = [time, rest].into_iter().flatten().min();
            let until = until.map(|end| end.saturating_sub(passed(wake)));
            let nap = (pages || busy).then(|| self.next(wake.doorbell_mode()));
            self.unpolled = 0;
            let asleep = passed(wake);
            let end = wake.sleep([until, nap].into_iter().flatten().min())?;
            let passed = passed(wake);
            if end == SleepEnd::Notification {
                self.pays = passed.saturating_sub(asleep) < SPIN;
            }
            if end != SleepEnd::TimeOver || (polls && wake.poll_memory(Duration::ZERO)) {
                self.restart();
                return Ok(());
            }
            if time.is_some_and(|time| passed >= time) {
                return Ok(());
            }
            if rest.take_if(|rest| passed >= *rest).is_some() {
                wake.note();
            }
        }
    }

    /// Returns true if the port polls memory without a pause before it sleeps.
    fn spins<W: PortWaitEnvironment>(&self, wake: &W, (pages, rings): (bool, bool)) -> bool {
        (pages && self.last.is_zero()) || (rings && (self.pays || wake.doorbell_mode() == DoorbellMode::Busy))
    }

    /// Polls the kernel without waiting, since the port has work. Skips the poll for [`UNPOLLED_ROUNDS`] rounds while
    /// memory is polled, unless a client sends doorbells by message.
    fn check_kernel(&mut self, wake: &mut impl PortWaitEnvironment, polls: bool) -> io::Result<()> {
        self.restart();
        self.unpolled = (self.unpolled + 1) % (UNPOLLED_ROUNDS + 1);
        let now = wake.now();
        if polls && self.unpolled > 0 && !wake.must_receive() && now.since(self.polled) < LONGEST_UNPOLLED {
            return Ok(());
        }
        (self.unpolled, self.polled) = (0, now);
        wake.sleep(Some(Duration::ZERO)).map(drop)
    }
}
