//! The port's loop. Left out: how it waits (`waiting`), what is done to the card in each step, commands (`commands`),
//! changes of policy (`order`), and the end (`ending`).

use super::connection::{Connection, Over, Visit};
use super::device::FunctionDevice;
use super::family::Family;
use super::hal::now;
use super::pages::SharedPages;
use super::slot::Slot;
use super::status::{SHARE_HINT, is_private, lacks_memory};
use super::{CONNECTIONS, Inbox, Outcome, Phase, Port, UPLINK};
use crate::config::file::Wait;
use crate::flight::What;
use driver::conduct::Verdict;
use host::cpus::Cpus;
use host::socket::Stream;
use i82576::Time;
use policy::Action;
use std::time::Duration;

/// How often VFs are judged, if there is anything to do at all.
const WATCH: Duration = Duration::from_secs(1);
/// The longest sleep while a link notice or a refusal of the PF driver waits for its time.
const LONGEST_SLEEP: Duration = Duration::from_secs(1);

impl Port {
    /// Runs until told to stop, and then until every client is let go; or until a successor takes over.
    /// Its thread is held to `cpus`.
    pub fn run(mut self, inbox: &Inbox, cpus: &Cpus) -> Outcome {
        self.note_software();
        host::poll::wake_in_time();
        // Its list of system calls lets a port's thread do that for itself alone.
        if let Err(error) = self.run_on(cpus.clone()) {
            tracing::error!(port = self.name, %error, "the port's thread runs on any CPU, and not on {cpus} alone");
        }
        self.slots.iter_mut().for_each(|slot| slot.listener.own());
        self.uplink.own();
        let mut timeout = Some(Duration::ZERO);
        while !self.is_over() {
            if let Err(error) = self.wait(inbox, timeout) {
                tracing::error!(port = self.name, %error, "cannot wait for events; the port fails");
                return Outcome::Failed;
            }
            self.obey(inbox);
            if self.phase == Phase::Left {
                self.uplink.leave();
                self.slots.into_iter().for_each(|slot| slot.listener.leave());
                return Outcome::HandedOver;
            }
            timeout = self.round();
            if std::mem::take(&mut self.unproven) {
                self.journal.succeeded();
            }
        }
        self.vault.forget_all();
        Outcome::Ended
    }

    /// One round: clients, PF driver, card. Answers how long to sleep before the next; `None` is for ever.
    fn round(&mut self) -> Option<Duration> {
        self.finish_errands();
        self.look();
        for index in 0..self.slots.len() {
            if self.slots[index].more {
                self.serve(index);
            }
        }
        let notice = self.visit_pf();
        let started = now();
        self.watch(started);
        let poll = self.card.poll(started, &mut self.bus, &mut self.uplink);
        self.uplink.flush();
        self.evict_poisoned();
        let link_changed = self.follow_uplink();
        let parting = self.part();
        self.show();
        let kick = self.kick();
        let more = poll.more || link_changed || self.slots.iter().any(|slot| slot.more);
        if more || !self.uplink.may_sleep() {
            return Some(Duration::ZERO);
        }
        let sleep = |deadline: Time| deadline.since(now());
        let notice = notice.map(|deadline| sleep(deadline).min(LONGEST_SLEEP));
        let deadlines = [poll.deadline, parting, kick, self.uplink.deadline()];
        deadlines.map(|deadline| deadline.map(sleep)).into_iter().chain([notice]).flatten().min()
    }

    /// Has the PF driver judge its VFs once a second, by what card and host have counted.
    fn watch(&mut self, now: Time) {
        if now.since(self.watched) < WATCH {
            return;
        }
        self.watched = now;
        self.tell_changes();
        let mut judged = false;
        for slot in &mut self.slots {
            let Some(vf) = slot.function.vf() else { continue };
            let interrupts = self.bus.reach(slot.function).interrupts;
            slot.flight.count(now, self.card.counters(slot.function));
            let Some(verdict) = self.card.judge(vf, interrupts, &mut self.bus) else { continue };
            let Verdict { offence, rate, action } = verdict;
            judged = true;
            slot.flight.event(now, What::Offence(offence.name()), rate);
            slot.show_link(&mut *self.card, &mut self.bus);
            if let Some(suppressed) = slot.log.allow(now) {
                let (name, offence) = (&slot.name, offence.name());
                tracing::warn!(function = name, offence, rate, ?action, suppressed, "the VF does too much");
            }
            if action == Action::Quarantine {
                self.flights.write(slot.take_flight(self.card.family(), Some(offence.name())));
            }
        }
        if judged {
            self.note_software();
        }
    }

    pub(super) fn mark(&mut self, index: usize) {
        if let Some(slot) = self.slots.get_mut(index) {
            if !slot.more {
                slot.heard = self.heard.since();
            }
            slot.more = slot.connection.is_some();
        }
    }

    /// Takes a new client for a function; one that has a client keeps it, and the new one is turned away.
    pub(super) fn accept(&mut self, index: usize) {
        let Some(slot) = self.slots.get_mut(index) else { return };
        let name = &slot.name;
        let stream = match slot.listener.accept() {
            Ok(Some(stream)) => stream,
            Ok(None) => return,
            Err(error) => {
                if let Some(suppressed) = slot.log.allow(now()) {
                    tracing::warn!(function = name, %error, suppressed, "cannot accept a client");
                }
                return;
            }
        };
        match &slot.connection {
            None => self.attach(index, stream),
            // Its end may lie behind much that is still to be read; whoever comes next need not see that.
            Some(connection) if slot.next.is_none() && connection.stream().is_hung_up() => {
                slot.next = Some(stream);
                slot.more = true;
            }
            Some(_) => {
                let peer = peer_pid(&stream);
                // It may have sent descriptors already.
                self.bus.reach(slot.function).errands.turn_away(stream);
                if let Some(suppressed) = slot.log.allow(now()) {
                    tracing::warn!(
                        function = name,
                        peer,
                        suppressed,
                        "turned away: another client has this function"
                    );
                }
            }
        }
    }

    /// Serves a client from now on.
    fn attach(&mut self, index: usize, stream: Stream) {
        let slot = &mut self.slots[index];
        let name = &slot.name;
        match Connection::new(stream) {
            Ok(connection) => {
                slot.flight.event(now(), What::Said("a client has connected"), 0);
                if let Some(suppressed) = slot.log.allow(now()) {
                    let peer = peer_pid(connection.stream());
                    tracing::info!(function = name, peer, suppressed, "a client has connected");
                }
                slot.pages = pages(slot, self.naps.wait(), &*self.card);
                let shared = slot.pages.as_ref().and_then(|pages| pages.fd().ok());
                let mut fds = connection.copies();
                fds.extend(shared.filter(|_| !fds.is_empty()));
                let fds = slot.keeping.begin().into_iter().zip(fds).collect();
                self.bus.reach(slot.function).errands.keep_client(fds, slot.keeping.keeper_of(0));
                slot.connection = Some(connection);
            }
            Err(error) => {
                if let Some(suppressed) = slot.log.allow(now()) {
                    tracing::error!(function = name, %error, suppressed, "cannot serve a client");
                }
            }
        }
    }

    /// One visit to a client.
    fn serve(&mut self, index: usize) {
        let slot = &mut self.slots[index];
        let Some(connection) = slot.connection.as_mut() else { return };
        let (function, card) = (slot.function, &mut *self.card);
        let keeping = &mut slot.keeping;
        let (bus, pages, flight) = (&mut self.bus, &mut slot.pages, &mut slot.flight);
        let mut device = FunctionDevice { function, card, bus, keeping, pages, flight };
        match connection.visit(&mut device, &mut self.buffer) {
            // It has hung up and reads no replies; somebody else waits for the function.
            Ok(Visit::Done) if slot.next.is_some() => return self.disconnect(index, &Over::Closed),
            Ok(visit) => slot.more = visit == Visit::More,
            Err(over) => return self.disconnect(index, &over),
        }
        if let Err(error) = connection.update_interest(&self.poller, CONNECTIONS + index as u64) {
            return self.disconnect(index, &Over::Failed(error.to_string()));
        }
        self.warn_of_refusals(index);
        self.warn_of_unshared_memory(index);
    }

    /// A client without shared memory works in every respect but that no frame can move: say so, once.
    fn warn_of_unshared_memory(&mut self, index: usize) {
        let slot = &mut self.slots[index];
        let reach = self.bus.reach(slot.function);
        if !slot.judged && self.card.is_bus_master(slot.function) {
            // Now, because the card has not written to the memory itself yet.
            (slot.judged, slot.private_memory) = (true, is_private(&reach.memory));
        }
        if slot.warned || !lacks_memory(&*self.card, slot, reach) {
            return;
        }
        slot.warned = true;
        if slot.log.allow(now()).is_some() {
            tracing::warn!(function = slot.name, "{SHARE_HINT}");
        }
    }

    /// Lets go of a client: its memory and interrupts at once, its socket when it has read that this is the end. The
    /// function is reset, so that the next client finds nothing of this one.
    pub(super) fn disconnect(&mut self, index: usize, over: &Over) {
        let slot = &mut self.slots[index];
        let Some(connection) = slot.connection.take() else { return };
        // Closing the descriptor removes it from the poller too; a failure here has no consequence.
        let _ = self.poller.remove(connection.stream());
        slot.retire(connection.counters());
        slot.flight.event(now(), What::Said(over.words()), 0);
        let (function, card) = (slot.function, &mut *self.card);
        let keeping = &mut slot.keeping;
        let (bus, pages, flight) = (&mut self.bus, &mut slot.pages, &mut slot.flight);
        let mut device = FunctionDevice { function, card, bus, keeping, pages, flight };
        if !device.reset_function() {
            tracing::error!(function = slot.name, "the function of a client that is gone cannot be reset");
        }
        let stream = connection.close(&mut device);
        slot.pages = None;
        if let Some(suppressed) = slot.log.allow(now()) {
            let name = &slot.name;
            match over {
                Over::Closed => tracing::info!(function = name, suppressed, "the client has gone"),
                Over::Ended => tracing::info!(function = name, suppressed, "the client is let go"),
                Over::Failed(why) => {
                    tracing::warn!(function = name, why, suppressed, "the client is cut off");
                }
            }
        }
        let next = slot.next.take();
        self.show_links();
        match over {
            Over::Closed => self.bus.reach(function).errands.discard(stream),
            Over::Ended | Over::Failed(_) => self.hang_up(function, stream),
        }
        if let Some(next) = next {
            self.attach(index, next);
        }
    }

    /// A client that has shrunk memory it had shared is cut off; the others never notice.
    fn evict_poisoned(&mut self) {
        let events = host::memory::poison_events();
        if std::mem::replace(&mut self.poisoned, events) == events {
            return;
        }
        for index in 0..self.slots.len() {
            let function = self.slots[index].function;
            if self.bus.reach(function).memory.poisoned() {
                self.disconnect(
                    index,
                    &Over::Failed("its shared memory was truncated under the card".into()),
                );
            }
        }
    }

    /// Gives the card the link that its uplink has; `true` if that has changed it, so that the PF driver has to see
    /// to it. Without its uplink the card goes on: its switch needs none.
    fn follow_uplink(&mut self) -> bool {
        if !self.uplink.follow(&self.poller, UPLINK) {
            return false;
        }
        let before = self.card.link();
        self.card.set_link(self.uplink.link());
        self.card.link() != before
    }

    /// Shows every VF the link that the PF driver has decided on, and none to a client that is to be let go.
    pub(super) fn show_links(&mut self) {
        for slot in &mut self.slots {
            slot.show_link(&mut *self.card, &mut self.bus);
        }
    }
}

/// Pages for a new client of a function to map, if the port offers any. Without them it is served by messages alone.
fn pages(slot: &mut Slot, wait: Wait, card: &dyn Family) -> Option<SharedPages> {
    let vf = slot.function.vf().filter(|_| wait != Wait::Sleep)?;
    let pages = SharedPages::new(vf, card);
    if let (Err(error), Some(suppressed)) = (&pages, slot.log.allow(now())) {
        tracing::warn!(function = slot.name, %error, suppressed, "the client gets no pages to map");
    }
    pages.ok().flatten()
}

fn peer_pid(stream: &Stream) -> i32 {
    stream.peer().map(|peer| peer.pid).unwrap_or_default()
}
