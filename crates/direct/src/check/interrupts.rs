//! Checks MSI-X interrupts, which arrive in this process as eventfds that the kernel signals. Their latency is not
//! measured.

use super::{
    CardCheckContext, CardCheckError, CheckResult, CheckedVf, CheckedVfBus, differs, passes, unexpected,
};
use driver::moderation::register_value;
use driver::vf::{MAILBOX_VECTOR, RECEIVE_VECTOR, TRANSMIT_VECTOR};
use host::poll::MonotonicClock;
use i82576::register::vf;
use std::time::Duration;

/// Timeout of an interrupt's arrival.
const PATIENCE: Duration = Duration::from_secs(5);
/// Time without an interrupt after which a check assumes that no interrupt will arrive. It exceeds the interval between
/// two interrupts.
const SILENCE: Duration = Duration::from_millis(50);
/// Timeout of a signal that the card delays: longer than any interval that a check has set before.
const LATE: Duration = Duration::from_millis(500);
const LOOK: Duration = Duration::from_micros(100);
/// Number of received frames during which a masked interrupt vector must not signal.
const MASKED_FRAMES: usize = 64;
/// Offset of the register with the minimum interval between two signals of the receive interrupt vector.
const RECEIVE_INTERVAL: u32 = vf::VTEITR + 4 * RECEIVE_VECTOR as u32;
/// Minimum interval between receive signals that the check of moderation sets.
const INTERVAL: Duration = Duration::from_millis(8);
/// Time for which the check of moderation counts signals.
const MODERATED: Duration = Duration::from_millis(400);
/// Number of signals beyond the expected number that the check of moderation permits, for the ends of the measured
/// time.
const SLACK: u64 = 2;
/// Maximum number of frames in flight: fewer than the ring holds.
const MOST_PENDING: usize = 64;
const LENGTH: usize = 100;

impl<B: CheckedVfBus> CheckedVf<B> {
    /// Handles all pending interrupts of the VF, and unmasks every vector.
    fn settle(&mut self) {
        self.drain();
        for vector in [TRANSMIT_VECTOR, MAILBOX_VECTOR] {
            self.vf.handle_interrupt(&mut self.hal, vector);
        }
        self.vf.receive_done(&mut self.hal);
        // The unmasking releases pending signals.
        std::thread::sleep(SILENCE);
        for vector in [TRANSMIT_VECTOR, RECEIVE_VECTOR, MAILBOX_VECTOR] {
            if self.take(vector) > 0 {
                self.vf.handle_interrupt(&mut self.hal, vector);
            }
        }
        self.vf.receive_done(&mut self.hal);
    }

    fn take(&self, vector: u16) -> u64 {
        self.hal.eventfd(vector.into()).map_or(0, |eventfd| eventfd.drain())
    }

    /// Returns true if the interrupt vector signals before the timeout.
    fn signals(&self, vector: u16, patience: Duration) -> bool {
        let end = MonotonicClock.now_ns() + patience.as_nanos() as u64;
        while self.take(vector) == 0 {
            if MonotonicClock.now_ns() >= end {
                return false;
            }
            std::thread::sleep(LOOK);
        }
        true
    }
}

/// Checks that a sent frame signals the transmit interrupt vector, an arriving frame the receive vector, and the PF's
/// answer to a request the mailbox vector.
pub(super) fn each_vector<B: CheckedVfBus>(world: &mut CardCheckContext<B>) -> CheckResult {
    let (a, b) = world.pair()?;
    a.settle();
    b.settle();
    a.send(b.vf.mac(), 0, LENGTH)?;
    let transmit = a.signals(TRANSMIT_VECTOR, PATIENCE);
    let receive = b.signals(RECEIVE_VECTOR, PATIENCE);
    b.catch_up(a)?;
    let longest = a.vf.max_frame();
    a.vf.set_max_frame(&mut a.hal, longest)?;
    let mailbox = a.signals(MAILBOX_VECTOR, PATIENCE);
    match (transmit && receive, mailbox) {
        (true, true) => passes(""),
        // Reported as a difference, since the driver's watchdog also checks the mailbox.
        (true, false) if a.take(RECEIVE_VECTOR) > 0 => {
            differs("a mailbox message signals the receive vector")
        }
        _ => unexpected(format!(
            "vectors that signalled: transmit {transmit}, receive {receive}, mailbox {mailbox}"
        )),
    }
}

/// Checks that an interrupt vector stays masked after it has signalled. Counts received frames, not time: a card
/// without masking would signal within a few frames.
pub(super) fn masking<B: CheckedVfBus>(world: &mut CardCheckContext<B>) -> CheckResult {
    let (a, b) = world.pair()?;
    a.settle();
    b.settle();
    let before = b.hal.read(RECEIVE_INTERVAL);
    b.hal.write(RECEIVE_INTERVAL, 0);
    expect_signal(a, b)?;
    // An earlier signal may come late, but not after all of these frames.
    one_by_one(a, b)?;
    b.take(RECEIVE_VECTOR);
    one_by_one(a, b)?;
    let signals = b.signals(RECEIVE_VECTOR, LATE);
    b.hal.write(RECEIVE_INTERVAL, before);
    b.settle();
    expect_signal(a, b)?;
    b.catch_up(a)?;
    if signals {
        return differs("the masked vector still signals");
    }
    passes(format!("the masked vector did not signal for {MASKED_FRAMES} frames"))
}

/// Sends frames from VF `a` to VF `b`, each after the arrival of the previous frame, so that the card can signal for
/// each.
fn one_by_one<B: CheckedVfBus>(a: &mut CheckedVf<B>, b: &mut CheckedVf<B>) -> Result<(), CardCheckError> {
    for _ in 0..MASKED_FRAMES {
        b.catch_up(a)?;
    }
    Ok(())
}

/// Checks that the card signals a receive interrupt at most once per interval, whatever the speed of this machine.
pub(super) fn moderation<B: CheckedVfBus>(world: &mut CardCheckContext<B>) -> CheckResult {
    let (a, b) = world.pair()?;
    b.settle();
    let before = b.hal.read(RECEIVE_INTERVAL);
    b.hal.write(RECEIVE_INTERVAL, register_value(INTERVAL.as_micros() as u32));
    let start = MonotonicClock.now_ns();
    let (mut signals, mut frames) = (0, 0);
    while MonotonicClock.now_ns() - start < MODERATED.as_nanos() as u64 {
        a.vf.clean(&mut a.hal);
        if a.vf.tx_pending() < MOST_PENDING {
            a.send(b.vf.mac(), frames, LENGTH)?;
            frames += 1;
        }
        signals += b.take(RECEIVE_VECTOR);
        b.drain();
        b.vf.receive_done(&mut b.hal);
    }
    let most = (MonotonicClock.now_ns() - start) / INTERVAL.as_nanos() as u64 + SLACK;
    b.hal.write(RECEIVE_INTERVAL, before);
    b.catch_up(a)?;
    let saw = format!("{signals} signals for {frames} frames, at most {most} permitted");
    if (1..=most).contains(&signals) { passes(saw) } else { unexpected(saw) }
}

/// Checks that a frame of VF `a` signals the receive interrupt vector of VF `b`.
fn expect_signal<B: CheckedVfBus>(a: &mut CheckedVf<B>, b: &mut CheckedVf<B>) -> Result<(), CardCheckError> {
    a.send(b.vf.mac(), 0, LENGTH)?;
    if b.signals(RECEIVE_VECTOR, PATIENCE) {
        Ok(())
    } else {
        unexpected("a received frame did not signal the receive vector")
    }
}
