//! Tests of the change from polling to sleeping, in every order of the guest's and the port's actions. The port's
//! rounds are simulated: they handle stored doorbells, packets in a ring, and sent messages, which start or end the polling
//! of pages.

use super::{LONGEST, PollingNapBackoff, PortWaitEnvironment, SHORTEST, SPIN, SleepEnd, UNPOLLED_ROUNDS};
use crate::config::file::DoorbellMode;
use i82576::Time;
use std::collections::VecDeque;
use std::io;
use std::time::Duration;

/// Action of the modelled guest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ModelGuestAction {
    /// Stores a doorbell into a mapped page.
    Store,
    /// Sends a message that starts or ends the polling of pages.
    Send { must_poll_pages: bool },
    /// Puts a packet into a ring, and notifies the port unless the port polls the ring.
    Put,
}

use ModelGuestAction::{Put, Send, Store};

const START: ModelGuestAction = Send { must_poll_pages: true };
const STOP: ModelGuestAction = Send { must_poll_pages: false };

/// Duration of one poll of the kernel in the model.
const KERNEL_CALL: Duration = Duration::from_micros(1);

/// Maximum number of moments, between actions of the modelled port, at which the modelled guest may act or wait. At
/// later moments the guest always acts.
const MOMENTS: usize = 16;

/// Choice of the moments at which the modelled guest acts. A test runs the model once for each choice.
#[derive(Default)]
struct GuestActionTimes {
    taken: Vec<bool>,
    next: usize,
}

impl GuestActionTimes {
    fn take(&mut self) -> bool {
        if self.next >= MOMENTS {
            return true;
        }
        if self.next == self.taken.len() {
            self.taken.push(false);
        }
        self.next += 1;
        self.taken[self.next - 1]
    }

    /// Advances to the next choice of times at which the modelled guest acts. Returns `false` after the last choice.
    fn advance(&mut self) -> bool {
        self.taken.truncate(self.next);
        self.next = 0;
        while self.taken.pop_if(|last| *last).is_some() {}
        self.taken.last_mut().is_some_and(|last| {
            *last = true;
            true
        })
    }
}

/// Model of a guest that follows a script, and of the port that waits for it.
struct WaitingPortModel<'a> {
    choices: &'a mut GuestActionTimes,
    wait: DoorbellMode,
    script: VecDeque<ModelGuestAction>,
    now: Time,
    /// True if the port must poll register pages, as the port's last round decided.
    must_poll_pages: bool,
    /// Time of the port's last round.
    since: Time,
    /// True if another client sends doorbells by message.
    must_receive: bool,
    stored: Vec<Time>,
    sent: Vec<(Time, bool)>,
    /// Times of the packets in the ring.
    packets: Vec<Time>,
    /// True if the port polls the ring, so that the guest sends no notification.
    polls_ring: bool,
    /// True if the kernel has a notification for the port.
    notified: bool,
    /// True if the port has a notification, so that its next round visits the ring.
    kicked: bool,
    /// True if the modelled port has received a message since its last round.
    received: bool,
    /// Number of the port's rounds for which a sent message has not been received.
    unreceived: u8,
    /// Number of the port's calls to the kernel.
    kernel_calls: usize,
    noted: bool,
    /// True if the modelled port has logged changes of drivers since its last round.
    logged: bool,
}

impl<'a> WaitingPortModel<'a> {
    fn new(choices: &'a mut GuestActionTimes, wait: DoorbellMode, script: &[ModelGuestAction]) -> Self {
        Self {
            choices,
            wait,
            script: script.iter().copied().collect(),
            now: Time::from_micros(1),
            must_poll_pages: false,
            since: Time::ZERO,
            must_receive: false,
            stored: Vec::new(),
            sent: Vec::new(),
            packets: Vec::new(),
            polls_ring: false,
            notified: false,
            kicked: false,
            received: false,
            unreceived: 0,
            kernel_calls: 0,
            noted: false,
            logged: false,
        }
    }

    /// Lets the guest act between two actions of the port, if the present choice of moments says so.
    fn moment(&mut self) {
        while !self.script.is_empty() && self.choices.take() {
            self.act();
        }
    }

    fn act(&mut self) {
        match self.script.pop_front() {
            Some(Store) => self.stored.push(self.now),
            Some(Send { must_poll_pages }) => self.sent.push((self.now, must_poll_pages)),
            Some(Put) => {
                self.packets.push(self.now);
                self.notified |= !self.polls_ring;
            }
            None => {}
        }
    }

    fn has_event(&self) -> bool {
        self.notified || !self.sent.is_empty()
    }

    /// Ends a sleep of the modelled port: the kernel reports its events.
    fn wake(&mut self) -> SleepEnd {
        let notified = std::mem::take(&mut self.notified);
        self.kicked |= notified;
        self.received |= !self.sent.is_empty();
        match (notified, self.received) {
            (true, _) => SleepEnd::Notification,
            (false, true) => SleepEnd::OtherEvent,
            (false, false) => SleepEnd::TimeOver,
        }
    }

    /// Runs a round of the modelled port. Checks that no store and no message has waited too long.
    fn round(&mut self) {
        let received = std::mem::take(&mut self.received);
        self.unreceived = if received || self.sent.is_empty() { 0 } else { self.unreceived + 1 };
        // One round was running when the message came.
        assert!(
            self.unreceived <= UNPOLLED_ROUNDS + 1,
            "a message has waited for {} rounds",
            self.unreceived
        );
        let longest = SPIN * u32::from(UNPOLLED_ROUNDS + 1) + KERNEL_CALL;
        if std::mem::take(&mut self.kicked) || self.polls_ring {
            self.polls_ring = true;
            for at in self.packets.drain(..) {
                assert!(self.now.since(at) <= longest, "a packet has waited for {:?}", self.now.since(at));
            }
        }
        for (at, must_poll_pages) in self.sent.extract_if(.., |_| received) {
            assert!(self.now.since(at) <= longest, "a message has waited for {:?}", self.now.since(at));
            (self.must_poll_pages, self.since) = (must_poll_pages, self.now);
        }
        for at in std::mem::take(&mut self.stored) {
            let waited = self.now.since(at.max(self.since));
            assert!(!self.must_poll_pages || waited <= LONGEST, "a store has waited for {waited:?}");
        }
        (self.noted, self.logged) = (false, false);
    }
}

impl PortWaitEnvironment for WaitingPortModel<'_> {
    fn now(&self) -> Time {
        self.now
    }

    fn sleep(&mut self, time: Option<Duration>) -> io::Result<SleepEnd> {
        self.kernel_calls += 1;
        assert!(self.logged || time == Some(Duration::ZERO), "the port sleeps before it logs changes");
        self.moment();
        if self.has_event() {
            return Ok(self.wake());
        }
        match time {
            Some(time) => {
                let time = time.max(KERNEL_CALL);
                self.now = self.now + time / 2;
                self.moment();
                if !self.has_event() {
                    self.now = self.now + (time - time / 2);
                }
            }
            // Only an event ends this sleep.
            None => {
                assert!(!self.must_poll_pages, "the port sleeps although pages must be polled");
                assert!(!self.polls_ring, "the port sleeps although no packet in its ring would wake it");
                while !self.has_event() && !self.script.is_empty() {
                    self.act();
                }
                // The script is over. Any other event could wake a port here.
                self.received |= !self.has_event();
            }
        }
        Ok(self.wake())
    }

    fn doorbell_mode(&self) -> DoorbellMode {
        self.wait
    }

    fn must_poll_pages(&self) -> bool {
        self.must_poll_pages
    }

    fn must_receive(&self) -> bool {
        self.must_receive
    }

    fn polls_rings(&self) -> bool {
        self.polls_ring
    }

    fn arm_rings(&mut self) -> bool {
        self.moment();
        let polled = std::mem::take(&mut self.polls_ring);
        self.moment();
        let found = polled && !self.packets.is_empty();
        self.kicked |= found;
        found
    }

    fn poll_memory(&mut self, time: Duration) -> bool {
        self.now = self.now + time / 2;
        self.moment();
        let found =
            self.must_poll_pages && !self.stored.is_empty() || self.polls_ring && !self.packets.is_empty();
        self.now = if found { self.now } else { self.now + (time - time / 2) };
        found
    }

    fn may_note(&self) -> bool {
        !self.noted
    }

    fn note(&mut self) {
        self.noted = true;
        self.moment();
    }

    fn log_changes(&mut self) {
        self.logged = true;
    }
}

/// Runs the model with a script of the guest, for every choice of moments. Returns the number of choices.
fn play(wait: DoorbellMode, script: &[ModelGuestAction], time: Option<Duration>) -> usize {
    let (mut choices, mut orders) = (GuestActionTimes::default(), 0);
    loop {
        let mut model = WaitingPortModel::new(&mut choices, wait, script);
        let mut naps = PollingNapBackoff::default();
        while !model.script.is_empty()
            || !model.sent.is_empty()
            || !model.packets.is_empty()
            || (model.must_poll_pages && !model.stored.is_empty())
        {
            naps.pass(&mut model, time).unwrap();
            model.moment();
            // A real round includes what came after the wait too.
            model.round();
        }
        orders += 1;
        if !choices.advance() {
            return orders;
        }
    }
}

#[test]
fn waiting_port_misses_no_doorbell_or_message_in_any_order() {
    let scripts: [&[ModelGuestAction]; 7] = [
        &[START, Store, Store, STOP],
        &[Store, START, Store],
        &[START, STOP, Store, START],
        &[START, Store, STOP, Store, START],
        &[Put, Put, Put],
        &[Put, Put, START, Put, Store],
        &[START, Put, STOP, Put],
    ];
    let times =
        [None, Some(Duration::ZERO), Some(Duration::from_micros(10)), Some(Duration::from_millis(60))];
    for wait in [DoorbellMode::Sleep, DoorbellMode::Mapped, DoorbellMode::Busy] {
        for script in scripts {
            let orders: usize = times.iter().map(|time| play(wait, script, *time)).sum();
            assert!(orders > 100, "{orders} orders of {script:?}");
        }
    }
}

#[test]
fn polling_port_doubles_its_sleeps_up_to_a_limit_while_idle() {
    let mut naps = PollingNapBackoff::default();
    let first: Vec<_> = (0..6).map(|_| naps.next(DoorbellMode::Mapped)).collect();
    let grown = [16, 32, 64, 128, 160, 160].map(Duration::from_micros);
    assert_eq!(first, grown);
    assert_eq!((SHORTEST, LONGEST), (grown[0], grown[5]));
    naps.restart();
    assert_eq!(naps.next(DoorbellMode::Mapped), SHORTEST);
    let mut busy = PollingNapBackoff::default();
    assert!((0..8).all(|_| busy.next(DoorbellMode::Busy).is_zero()));
}

#[test]
fn port_busy_with_mapped_doorbells_rarely_calls_the_kernel() {
    const ROUNDS: usize = 900;
    let every = usize::from(UNPOLLED_ROUNDS) + 1;
    for (wait, must_receive, every) in [
        (DoorbellMode::Mapped, false, every),
        (DoorbellMode::Busy, false, every),
        (DoorbellMode::Mapped, true, 1),
    ] {
        let mut choices = GuestActionTimes::default();
        let idle = WaitingPortModel::new(&mut choices, wait, &[]);
        let mut model = WaitingPortModel { must_poll_pages: true, must_receive, ..idle };
        let mut naps = PollingNapBackoff::default();
        for _ in 0..ROUNDS {
            model.stored.push(model.now);
            naps.pass(&mut model, None).unwrap();
            model.round();
        }
        assert_eq!(model.kernel_calls, ROUNDS / every, "{wait:?}, a client rings by message: {must_receive}");
    }
}

#[test]
fn port_polls_doorbell_pages_once_before_sleeping() {
    let mut choices = GuestActionTimes::default();
    let idle = WaitingPortModel::new(&mut choices, DoorbellMode::Mapped, &[]);
    let mut model = WaitingPortModel { must_poll_pages: true, ..idle };
    let mut naps = PollingNapBackoff::default();
    let began = model.now;
    naps.pass(&mut model, Some(SPIN)).unwrap();
    assert_eq!(model.now.since(began), SPIN + KERNEL_CALL, "polls for SPIN, then calls the kernel");
    naps.pass(&mut model, Some(SHORTEST)).unwrap();
    assert_eq!(model.kernel_calls, 2, "it does not poll a second time");
}

#[test]
fn port_polls_rings_before_a_sleep_only_while_that_pays() {
    let mut choices = GuestActionTimes::default();
    let idle = WaitingPortModel::new(&mut choices, DoorbellMode::Sleep, &[]);
    let (mut model, mut naps) = (WaitingPortModel { polls_ring: true, ..idle }, PollingNapBackoff::default());
    let mut wait = |script: &[ModelGuestAction]| {
        (model.script, model.noted) = (script.iter().copied().collect(), true);
        let began = model.now;
        naps.pass(&mut model, None).unwrap();
        model.round();
        model.polls_ring = true;
        (model.now.since(began), naps.pays)
    };
    assert_eq!(wait(&[Put]), (Duration::ZERO, true), "sleeps at once, and a notification follows soon");
    assert_eq!(wait(&[]), (SPIN, false), "polls, and finds nothing");
    assert_eq!(wait(&[]), (Duration::ZERO, false), "sleeps at once");
}

#[test]
fn busy_port_never_asks_drivers_for_notifications() {
    let mut choices = GuestActionTimes::default();
    let idle = WaitingPortModel::new(&mut choices, DoorbellMode::Busy, &[]);
    let (mut model, mut naps) = (WaitingPortModel { polls_ring: true, ..idle }, PollingNapBackoff::default());
    for _ in 0..100 {
        naps.pass(&mut model, Some(Duration::from_millis(1))).unwrap();
        assert!(model.polls_ring);
        model.round();
    }
}
