//! MSI-X as it arrives in this process: eventfds that the kernel signals. Left out: how long it takes.

use super::{Found, Station, Subject, Trouble, World, differs, instead, passes};
use driver::moderation::register_value;
use driver::vf::{MAILBOX_VECTOR, RECEIVE_VECTOR, TRANSMIT_VECTOR};
use host::poll::Clock;
use i82576::register::vf;
use std::time::Duration;

/// How long an interrupt may take.
const PATIENCE: Duration = Duration::from_secs(5);
/// How long none must come, to be sure that none will: longer than an interval between two.
const SILENCE: Duration = Duration::from_millis(50);
/// How late a signal may be that a card has held back: longer than any interval that was set before.
const LATE: Duration = Duration::from_millis(500);
const LOOK: Duration = Duration::from_micros(100);
/// Frames that a masked vector keeps quiet about.
const UNHEARD: usize = 64;
/// How long the receive vector waits between two signals.
const RECEIVE_INTERVAL: u32 = vf::VTEITR + 4 * RECEIVE_VECTOR as u32;
/// What receive is held back by, how long that is watched, and what the ends of it may add.
const INTERVAL: Duration = Duration::from_millis(8);
const MODERATED: Duration = Duration::from_millis(400);
const SLACK: u64 = 2;
/// Frames on their way at a time: fewer than the ring holds.
const MOST_PENDING: usize = 64;
const LENGTH: usize = 100;

impl<B: Subject> Station<B> {
    /// Takes what has signalled, and unmasks every vector.
    fn settle(&mut self) {
        self.drain();
        for vector in [TRANSMIT_VECTOR, MAILBOX_VECTOR] {
            self.vf.handle_interrupt(&mut self.hal, vector);
        }
        self.vf.receive_done(&mut self.hal);
        // What was pending comes with the unmasking.
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

    /// Whether the vector signals in time.
    fn signals(&self, vector: u16, patience: Duration) -> bool {
        let end = Clock.now_ns() + patience.as_nanos() as u64;
        while self.take(vector) == 0 {
            if Clock.now_ns() >= end {
                return false;
            }
            std::thread::sleep(LOOK);
        }
        true
    }
}

/// Sending signals transmit, arriving signals receive, and the PF's answer to a request signals the mailbox.
pub(super) fn each_vector<B: Subject>(world: &mut World<B>) -> Found {
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
        // The driver's watchdog looks at the mailbox all the same.
        (true, false) if a.take(RECEIVE_VECTOR) > 0 => differs("the mailbox signals the vector of receive"),
        _ => instead(format!("transmit: {transmit}, receive: {receive}, mailbox: {mailbox}")),
    }
}

/// Frames decide, not time: a card that does not mask signals for one of many.
pub(super) fn masking<B: Subject>(world: &mut World<B>) -> Found {
    let (a, b) = world.pair()?;
    a.settle();
    b.settle();
    let before = b.hal.read(RECEIVE_INTERVAL);
    b.hal.write(RECEIVE_INTERVAL, 0);
    heard(a, b)?;
    // What was signalled before may come late, but not after all of these.
    one_by_one(a, b)?;
    b.take(RECEIVE_VECTOR);
    one_by_one(a, b)?;
    let signals = b.signals(RECEIVE_VECTOR, LATE);
    b.hal.write(RECEIVE_INTERVAL, before);
    b.settle();
    heard(a, b)?;
    b.catch_up(a)?;
    if signals {
        return differs("it goes on signalling");
    }
    passes(format!("no signal for {UNHEARD} frames"))
}

/// Frames from a to b, each when the one before has arrived: so the card has signalled for that one, if it will.
fn one_by_one<B: Subject>(a: &mut Station<B>, b: &mut Station<B>) -> Result<(), Trouble> {
    for _ in 0..UNHEARD {
        b.catch_up(a)?;
    }
    Ok(())
}

/// However slow this machine is, the card may not be faster than the interval.
pub(super) fn moderation<B: Subject>(world: &mut World<B>) -> Found {
    let (a, b) = world.pair()?;
    b.settle();
    let before = b.hal.read(RECEIVE_INTERVAL);
    b.hal.write(RECEIVE_INTERVAL, register_value(INTERVAL.as_micros() as u32));
    let start = Clock.now_ns();
    let (mut signals, mut frames) = (0, 0);
    while Clock.now_ns() - start < MODERATED.as_nanos() as u64 {
        a.vf.clean(&mut a.hal);
        if a.vf.tx_pending() < MOST_PENDING {
            a.send(b.vf.mac(), frames, LENGTH)?;
            frames += 1;
        }
        signals += b.take(RECEIVE_VECTOR);
        b.drain();
        b.vf.receive_done(&mut b.hal);
    }
    let most = (Clock.now_ns() - start) / INTERVAL.as_nanos() as u64 + SLACK;
    b.hal.write(RECEIVE_INTERVAL, before);
    b.catch_up(a)?;
    let saw = format!("{signals} signals of {most} at the most, {frames} frames");
    if (1..=most).contains(&signals) { passes(saw) } else { instead(saw) }
}

/// A frame of a's makes b's receive vector signal.
fn heard<B: Subject>(a: &mut Station<B>, b: &mut Station<B>) -> Result<(), Trouble> {
    a.send(b.vf.mac(), 0, LENGTH)?;
    if b.signals(RECEIVE_VECTOR, PATIENCE) { Ok(()) } else { instead("a frame did not signal") }
}
