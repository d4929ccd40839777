//! Waiting of a port's thread between two rounds of its loop.
//!
//! Sockets, the uplink, commands and deadlines wake a sleeping port. A store into a page that a guest has mapped
//! does not. While a client has such pages ([`PortWaitEnvironment::must_poll_pages`]), the port polls them. It polls
//! without a pause until it has found no store for [`SPIN`], and then after naps that double up to [`LONGEST`]. Every
//! other event ends a nap as it ends sleep.
//!
//! While every round has work and no client rings by message, the port polls the kernel only after
//! [`UNPOLLED_ROUNDS`] rounds. So traffic by memory costs next to no system call. A message, a command or a frame
//! of the uplink waits for at most that number of rounds.
//!
//! No wake-up is lost. Only a round changes whether pages must be polled, so the port knows it before it sleeps,
//! and a nap is bounded. The test tries every order of the guest's and the port's steps.

#[cfg(test)]
mod tests;

use crate::config::file::DoorbellMode;
use i82576::Time;
use std::io;
use std::time::Duration;

/// Maximum number of consecutive busy rounds of the port's loop without a poll of the kernel.
const UNPOLLED_ROUNDS: u8 = 8;

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

/// Interface by which a waiting port reads the clock, sleeps, polls and saves.
pub(super) trait PortWaitEnvironment {
    fn now(&self) -> Time;

    /// Sleeps until an event, for `time` at most, or without a limit if it is `None`. Returns `true` if an event
    /// woke the port.
    fn sleep(&mut self, time: Option<Duration>) -> io::Result<bool>;

    /// Returns the doorbell mode of the port.
    fn doorbell_mode(&self) -> DoorbellMode;

    /// Returns true if the port has to poll pages that a guest has mapped.
    fn must_poll_pages(&self) -> bool;

    /// Returns true if a client sends doorbells by message. Then every round of the port's loop polls the kernel.
    fn must_receive(&self) -> bool;

    /// Polls the mapped pages until a guest has stored a doorbell since the last round, for `time` at most. Returns
    /// true if a guest has.
    fn poll_pages(&mut self, time: Duration) -> bool;

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
        let must_poll_pages = wake.must_poll_pages();
        if time == Some(Duration::ZERO) || (must_poll_pages && wake.poll_pages(Duration::ZERO)) {
            return self.check_kernel(wake, must_poll_pages);
        }
        let began = wake.now();
        let passed = |wake: &W| wake.now().since(began);
        let mut rest = Some(REST).filter(|rest| wake.may_note() && time.is_none_or(|time| time > *rest));
        let mut logged = false;
        loop {
            let spin = time.map_or(SPIN, |time| time.saturating_sub(passed(wake)).min(SPIN));
            if must_poll_pages && self.last.is_zero() && wake.poll_pages(spin) {
                return self.check_kernel(wake, must_poll_pages);
            }
            if !std::mem::replace(&mut logged, true) {
                wake.log_changes();
            }
            let until = [time, rest].into_iter().flatten().min();
            let until = until.map(|end| end.saturating_sub(passed(wake)));
            let nap = must_poll_pages.then(|| self.next(wake.doorbell_mode()));
            self.unpolled = 0;
            let woken = wake.sleep([until, nap].into_iter().flatten().min())?;
            if woken || (must_poll_pages && wake.poll_pages(Duration::ZERO)) {
                self.restart();
                return Ok(());
            }
            let passed = passed(wake);
            if time.is_some_and(|time| passed >= time) {
                return Ok(());
            }
            if rest.take_if(|rest| passed >= *rest).is_some() {
                wake.note();
            }
        }
    }

    /// Polls the kernel without waiting, since the port has work. Skips the poll for [`UNPOLLED_ROUNDS`] rounds while
    /// pages are polled, unless a client sends doorbells by message.
    fn check_kernel(&mut self, wake: &mut impl PortWaitEnvironment, must_poll_pages: bool) -> io::Result<()> {
        self.restart();
        self.unpolled = (self.unpolled + 1) % (UNPOLLED_ROUNDS + 1);
        if must_poll_pages && self.unpolled > 0 && !wake.must_receive() {
            return Ok(());
        }
        wake.sleep(Some(Duration::ZERO)).map(drop)
    }
}
