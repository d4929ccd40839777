//! The port's loop. Left out: how it waits (`waiting`), what is done to the card in each step, commands (`commands`), changes of policy (`order`),
//! and the end (`ending`).

use super::connection::{Connection, Over, Visit};
use super::device::FunctionDevice;
use super::hal::{PfHal, now};
use super::pages::SharedPages;
use super::side::{Hosted, Side, vf};
use super::slot::Slot;
use super::status::{SHARE_HINT, is_private, lacks_memory};
use super::{CONNECTIONS, Inbox, Outcome, Phase, Port, UPLINK};
use crate::config::file::Wait;
use driver::pf::{Totals, Verdict};
use host::socket::Stream;
use i82576::Time;
use nic::{Budget, Nic, PoolCounters};
use pcie::Function;
use pcie::config::offset::{COMMAND, COMMAND_BUS_MASTER};
use std::time::Duration;

/// How often VFs are judged, if there is anything to do at all.
const WATCH: Duration = Duration::from_secs(1);
/// The longest sleep while a link notice or a refusal of the PF driver waits for its time.
const LONGEST_SLEEP: Duration = Duration::from_secs(1);

impl Port {
    /// Runs until told to stop, and then until every client is let go; or until a successor takes over.
    pub fn run(mut self, inbox: &Inbox) -> Outcome {
        self.note_software();
        host::poll::wake_in_time();
        self.slots.iter_mut().for_each(|slot| slot.listener.own());
        let mut timeout = Some(Duration::ZERO);
        while !self.is_over() {
            if let Err(error) = self.wait(inbox, timeout) {
                tracing::error!(port = self.name, %error, "cannot wait for events; the port fails");
                return Outcome::Failed;
            }
            self.obey(inbox);
            if self.phase == Phase::Left {
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
        let poll = self.nic.poll(started, Budget::default(), &mut self.bus, &mut self.uplink);
        self.evict_poisoned();
        let link_changed = self.follow_uplink();
        let parting = self.part();
        self.show();
        let kick = self.kick();
        if poll.more || link_changed || self.slots.iter().any(|slot| slot.more) {
            return Some(Duration::ZERO);
        }
        let sleep = |deadline: Time| deadline.since(now());
        let notice = notice.map(|deadline| sleep(deadline).min(LONGEST_SLEEP));
        [poll.deadline.map(sleep), parting.map(sleep), kick.map(sleep), notice].into_iter().flatten().min()
    }

    /// Lets the PF driver, if it is here, see to its VFs. Answers when it wants to be visited again.
    fn visit_pf(&mut self) -> Option<Time> {
        let visit = self.side.hosted()?.pf.visit(&mut PfHal(&mut self.nic));
        if visit.link_changed {
            self.show_links();
        }
        visit.deadline
    }

    /// Has the PF driver judge its VFs once a second, by what card and host have counted.
    fn watch(&mut self, now: Time) {
        if now.since(self.watched) < WATCH {
            return;
        }
        self.watched = now;
        let Some(Hosted { pf, .. }) = self.side.hosted() else { return };
        let mut judged = false;
        for slot in &mut self.slots {
            let Some(vf) = vf(slot.function) else { continue };
            let totals = conduct(&self.nic.counters()[vf.index()], self.bus.reach(slot.function).interrupts);
            let Some(Verdict { offence, rate, action }) = pf.watch(&mut PfHal(&mut self.nic), vf, totals)
            else {
                continue;
            };
            judged = true;
            if slot.ending.is_none() {
                self.nic.set_vf_link(vf, pf.link_override(vf));
            }
            if let Some(suppressed) = slot.log.allow(now) {
                let (name, offence) = (&slot.name, offence.name());
                tracing::warn!(function = name, offence, rate, ?action, suppressed, "the VF does too much");
            }
        }
        if judged {
            self.note_software();
        }
    }

    pub(super) fn mark(&mut self, index: usize) {
        if let Some(slot) = self.slots.get_mut(index) {
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
                if let Some(suppressed) = slot.log.allow(now()) {
                    let peer = peer_pid(connection.stream());
                    tracing::info!(function = name, peer, suppressed, "a client has connected");
                }
                slot.pages = pages(slot, self.naps.wait());
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
        let (function, nic, side) = (slot.function, &mut self.nic, &mut self.side);
        let keeping = &mut slot.keeping;
        let (bus, pages) = (&mut self.bus, &mut slot.pages);
        let mut device = FunctionDevice { function, nic, side, bus, keeping, pages };
        match connection.visit(&mut device, &mut self.buffer) {
            // It has hung up and reads no replies; somebody else waits for the function.
            Ok(Visit::Done) if slot.next.is_some() => return self.disconnect(index, &Over::Closed),
            Ok(visit) => slot.more = visit == Visit::More,
            Err(over) => return self.disconnect(index, &over),
        }
        if let Err(error) = connection.update_interest(&self.poller, CONNECTIONS + index as u64) {
            return self.disconnect(index, &Over::Failed(error.to_string()));
        }
        self.warn_of_refused_memory(index);
        self.warn_of_unshared_memory(index);
    }

    /// A client without shared memory works in every respect but that no frame can move: say so, once.
    fn warn_of_unshared_memory(&mut self, index: usize) {
        let slot = &mut self.slots[index];
        let reach = self.bus.reach(slot.function);
        if !slot.judged && self.nic.is_bus_master(slot.function) {
            // Now, because the card has not written to the memory itself yet.
            (slot.judged, slot.private_memory) = (true, is_private(&reach.memory));
        }
        if slot.warned || !lacks_memory(&self.nic, slot, reach) {
            return;
        }
        slot.warned = true;
        if slot.log.allow(now()).is_some() {
            tracing::warn!(function = slot.name, "{SHARE_HINT}");
        }
    }

    /// Lets go of a client: its memory and interrupts at once, its socket when it has read that this is the end. The
    /// function's state stays, but that it masters the bus: its rings name addresses of this client, and the next
    /// one's memory must not be written to by them.
    pub(super) fn disconnect(&mut self, index: usize, over: &Over) {
        let slot = &mut self.slots[index];
        let Some(connection) = slot.connection.take() else { return };
        // Closing the descriptor removes it from the poller too; a failure here has no consequence.
        let _ = self.poller.remove(connection.stream());
        slot.retire(connection.counters());
        let (function, nic, side) = (slot.function, &mut self.nic, &mut self.side);
        end_bus_mastering(nic, side, function);
        let keeping = &mut slot.keeping;
        let (bus, pages) = (&mut self.bus, &mut slot.pages);
        let stream = connection.close(&mut FunctionDevice { function, nic, side, bus, keeping, pages });
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
        let before = self.nic.link();
        self.nic.set_link(self.uplink.link());
        self.nic.link() != before
    }

    /// Shows every VF the link that the PF driver has decided on, and none to a client that is to be let go.
    pub(super) fn show_links(&mut self) {
        let Some(Hosted { pf, .. }) = self.side.hosted() else { return };
        for slot in &self.slots {
            let Some(vf) = vf(slot.function) else { continue };
            let link = if slot.ending.is_some() { Some(false) } else { pf.link_override(vf) };
            self.nic.set_vf_link(vf, link);
        }
    }
}

/// What a VF has done, in the order of [`driver::pf::Offence`]. Requests the PF driver counts itself.
fn conduct(counters: &PoolCounters, interrupts: u64) -> Totals {
    let groups = counters.tx_broadcast + counters.tx_multicast;
    [0, counters.tx_blocked, groups, interrupts, counters.tx_invalid, counters.dma_faults]
}

/// Pages for a new client of a function to map, if the port offers any. Without them it is served by messages alone.
fn pages(slot: &mut Slot, wait: Wait) -> Option<SharedPages> {
    let vf = vf(slot.function).filter(|_| wait != Wait::Sleep)?;
    let pages = SharedPages::new(vf);
    if let (Err(error), Some(suppressed)) = (&pages, slot.log.allow(now())) {
        tracing::warn!(function = slot.name, %error, suppressed, "the client gets no pages to map");
    }
    pages.ok()
}

fn peer_pid(stream: &Stream) -> i32 {
    stream.peer().map(|peer| peer.pid).unwrap_or_default()
}

/// As if software had cleared the bit in the command register.
fn end_bus_mastering(nic: &mut Nic, side: &mut Side, function: Function) {
    let mut command = [0; 2];
    side.config_read(nic, function, COMMAND.into(), &mut command);
    let command = u16::from_le_bytes(command) & !COMMAND_BUS_MASTER;
    side.config_write(nic, function, COMMAND.into(), &command.to_le_bytes());
}
