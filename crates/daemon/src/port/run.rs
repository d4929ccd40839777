//! The port's loop, which reads the clock for everything that it calls. Left out: how long it waits (`waiting`), commands
//! (`commands`), and the beginning (`open`).

#[cfg(test)]
mod tests;

use super::clients::errand::Desk;
use super::clients::{Clients, Event};
use super::command::Inbox;
use super::engine::Engine;
use super::engine::family::Visit;
use super::status::Report;
use super::succession::Succession;
use super::waiting::{Naps, Wake};
use crate::clock::{Clock, HostClock};
use host::cpus::Cpus;
use i82576::{MacAddress, Time};
use std::io;
use std::time::Duration;

/// The longest sleep while a link notice or a refusal of the PF driver waits for its time.
const LONGEST_SLEEP: Duration = Duration::from_secs(1);

/// A port that is set up and does not run yet.
#[derive(Debug)]
pub struct Port {
    pub(super) name: String,
    pub(super) mac: MacAddress,
    pub(super) engine: Engine,
    pub(super) clients: Clients,
    pub(super) succession: Succession,
    /// Where errands of VFs to come report.
    pub(super) desk: Desk,
    /// The processors that the thread is held to; none named is any.
    pub(super) cpus: Cpus,
    /// Those that the host may run on.
    pub(super) anywhere: Cpus,
    pub(super) phase: Phase,
    pub(super) naps: Naps,
}

/// Phase of a port between its beginning and its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    Serving,
    /// Every client is let go, and no new one is taken.
    Ending,
    /// A successor goes on with everything.
    Left,
}

/// How a port's thread ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// Every client is let go.
    Ended,
    /// A successor has the port.
    HandedOver,
    /// It could not go on, and has logged why; whoever opens the port again goes on with its clients.
    Failed,
}

impl Port {
    /// Runs until told to stop, and then until every client is let go; or until a successor takes over.
    /// Its thread is held to `cpus`.
    pub fn run(mut self, inbox: &Inbox, cpus: &Cpus) -> Outcome {
        let clock = HostClock;
        self.succession.note_software(self.engine.card_mut());
        host::poll::wake_in_time();
        // Its list of system calls lets a port's thread do that for itself alone.
        if let Err(error) = self.run_on(cpus.clone()) {
            tracing::error!(port = self.name, %error, "the port's thread runs on any CPU, and not on {cpus} alone");
        }
        self.clients.own_sockets();
        self.engine.own_uplink();
        let mut timeout = Some(Duration::ZERO);
        while !self.is_over() {
            if let Err(error) = self.wait(inbox, timeout, &clock) {
                tracing::error!(port = self.name, %error, "cannot wait for events; the port fails");
                return Outcome::Failed;
            }
            self.obey(inbox, &clock);
            if self.phase == Phase::Left {
                self.engine.leave_uplink();
                self.clients.leave_sockets();
                return Outcome::HandedOver;
            }
            timeout = self.round(&clock);
            self.succession.prove();
        }
        self.succession.vault().forget_all();
        Outcome::Ended
    }

    /// Returns whether the end has begun and every client is let go.
    fn is_over(&self) -> bool {
        self.phase == Phase::Ending && self.clients.are_gone()
    }

    /// Goes round once: clients, PF driver, card. Returns how long to sleep before the next round; `None` is for ever.
    fn round(&mut self, clock: &dyn Clock) -> Option<Duration> {
        let Self { engine, clients, succession, .. } = self;
        let began = clock.now();
        clients.finish_errands(engine, began);
        clients.read_doorbells(engine, began);
        clients.serve(engine, clock);
        let visit = visit_pf(engine, clients, clock.now());
        let polled = clock.now();
        clients.note_answers(visit.served, polled);
        if visit.link_changed {
            clients.show_links(engine, polled);
        }
        if clients.watch(engine, polled) {
            succession.note_software(engine.card_mut());
        }
        let poll = engine.poll(polled);
        clients.evict_poisoned(engine, polled);
        let link_changed = engine.follow_uplink(clients.poller(), polled);
        let parting = clients.part(engine, polled);
        clients.publish_registers(engine, polled);
        let call = clients.call_drivers(engine, polled);
        let more = poll.more || link_changed || clients.have_more();
        if more || !engine.may_sleep() {
            return Some(Duration::ZERO);
        }
        let ended = clock.now();
        let notice = visit.deadline.map(|deadline| deadline.min(ended + LONGEST_SLEEP));
        let deadlines = [poll.deadline, parting, call, engine.uplink_deadline(), notice];
        deadlines.into_iter().flatten().min().map(|deadline| deadline.since(ended))
    }

    /// Waits until something happens, or the time is over.
    fn wait(&mut self, inbox: &Inbox, time: Option<Duration>, clock: &dyn Clock) -> io::Result<()> {
        let mut naps = self.naps;
        let passed = naps.pass(&mut Awaiting { port: self, inbox, clock }, time);
        self.naps = naps;
        // A round follows.
        self.succession.disturb();
        passed
    }

    /// Notes the whole port for a successor. Returns `false` if it cannot be noted.
    pub(super) fn note_all(&mut self, now: Time) -> bool {
        let Self { engine, clients, succession, .. } = self;
        let states = (clients.watched(), clients.states(engine));
        succession.note_all(engine, states, now)
    }

    /// Returns what the port reports from.
    pub(super) fn report(&mut self, now: Time) -> Report<'_> {
        let Self { name, mac, cpus, clients, engine, .. } = self;
        Report { name, mac: *mac, cpus, clients, engine, now }
    }
}

/// Has the PF driver, if it is the host's, serve its VFs, and notes whose requests wait for it.
fn visit_pf(engine: &mut Engine, clients: &mut Clients, now: Time) -> Visit {
    if !engine.card().is_hosted() {
        return Visit::default();
    }
    clients.note_requests(engine, now);
    engine.visit(now)
}

/// A port that waits.
struct Awaiting<'a> {
    port: &'a mut Port,
    inbox: &'a Inbox,
    clock: &'a dyn Clock,
}

impl Wake for Awaiting<'_> {
    fn now(&self) -> Time {
        self.clock.now()
    }

    /// Marks the sockets that woke the port.
    fn sleep(&mut self, time: Option<Duration>) -> io::Result<bool> {
        let asked = self.now();
        let ready = self.port.clients.wait(time)?;
        let told = self.now();
        let woken = ready[0].is_some();
        self.port.clients.note_wait(asked, told, woken);
        if woken {
            self.port.succession.disturb();
        }
        for token in ready.into_iter().flatten() {
            match Event::of(token) {
                Event::Command => self.inbox.waker.drain(),
                Event::Uplink => self.port.engine.set_uplink_readable(),
                Event::Connection(index) => self.port.clients.mark(index),
                Event::Listener(index) => self.port.clients.accept(index, &self.port.engine, told),
            }
        }
        Ok(woken)
    }

    fn must_look(&self) -> bool {
        self.port.clients.must_poll_pages(&self.port.engine)
    }

    fn must_hear(&self) -> bool {
        self.port.clients.must_hear()
    }

    fn look(&mut self, time: Duration) -> bool {
        let began = self.now();
        while !self.port.clients.have_new_doorbells(&self.port.engine) {
            if time.is_zero() || self.now().since(began) >= time {
                return false;
            }
            std::hint::spin_loop();
        }
        true
    }

    fn may_rest(&self) -> bool {
        self.port.phase == Phase::Serving && !self.port.succession.is_at_rest()
    }

    fn rest(&mut self) {
        let now = self.now();
        self.port.note_all(now);
    }

    fn tell(&mut self) {
        let now = self.now();
        self.port.clients.tell_changes(&self.port.engine, now);
    }
}
