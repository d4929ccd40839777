//! The port's loop. Left out: what is done to the card in each step.

use super::connection::{Connection, Over, Visit};
use super::device::FunctionDevice;
use super::hal::{PfHal, RunningHal, now};
use super::side::{Hosted, Side, vf};
use super::status::{SHARE_HINT, is_private, lacks_memory};
use super::{CONNECTIONS, Command, LISTENERS, Port, RefusedChange, UPLINK, WAKER};
use crate::control::protocol::{Change, PortChange};
use crate::policy::ChangeError;
use driver::pf::{Cause, Totals, Verdict};
use host::poll::Interest;
use host::socket::Stream;
use i82576::{Time, VfIndex};
use nic::{Budget, Nic, PoolCounters};
use pcie::Function;
use pcie::config::offset::{COMMAND, COMMAND_BUS_MASTER};
use std::time::Duration;

/// How often VFs are judged, if there is anything to do at all.
const WATCH: Duration = Duration::from_secs(1);
/// The longest sleep while a link notice or a refusal of the PF driver waits for its time.
const LONGEST_SLEEP: Duration = Duration::from_secs(1);

impl Port {
    /// Runs until told to stop. Sockets are gone afterwards.
    pub fn run(mut self) {
        let mut timeout = Some(Duration::ZERO);
        loop {
            if let Err(error) = self.wait(timeout) {
                tracing::error!(port = self.name, %error, "cannot wait for events; the port ends");
                return;
            }
            if !self.obey() {
                return self.take_leave();
            }
            timeout = self.round();
        }
    }

    /// Sleeps until something happens, and serves the sockets that woke it.
    fn wait(&mut self, timeout: Option<Duration>) -> std::io::Result<()> {
        let ready: [Option<u64>; 64] = {
            let mut ready = [None; 64];
            for (place, event) in ready.iter_mut().zip(self.poller.wait(timeout)?) {
                *place = Some(event.token);
            }
            ready
        };
        for token in ready.into_iter().flatten() {
            match token {
                WAKER => self.waker.drain(),
                UPLINK => self.uplink.set_readable(),
                CONNECTIONS.. => self.mark((token - CONNECTIONS) as usize),
                _ => self.accept((token - LISTENERS) as usize),
            }
        }
        Ok(())
    }

    /// One round: clients, PF driver, card. Answers how long to sleep before the next; `None` is for ever.
    fn round(&mut self) -> Option<Duration> {
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
        if poll.more || link_changed || self.slots.iter().any(|slot| slot.more) {
            return Some(Duration::ZERO);
        }
        let sleep = |deadline: Time| deadline.since(now());
        let notice = notice.map(|deadline| sleep(deadline).min(LONGEST_SLEEP));
        [poll.deadline.map(sleep), notice].into_iter().flatten().min()
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
        for slot in &mut self.slots {
            let Some(vf) = vf(slot.function) else { continue };
            let totals = conduct(&self.nic.counters()[vf.index()], self.bus.reach(slot.function).interrupts);
            let Some(Verdict { offence, rate, action }) = pf.watch(&mut PfHal(&mut self.nic), vf, totals)
            else {
                continue;
            };
            self.nic.set_vf_link(vf, pf.link_override(vf));
            if let Some(suppressed) = slot.log.allow(now) {
                let (name, offence) = (&slot.name, offence.name());
                tracing::warn!(function = name, offence, rate, ?action, suppressed, "the VF does too much");
            }
        }
    }

    fn mark(&mut self, index: usize) {
        if let Some(slot) = self.slots.get_mut(index) {
            slot.more = slot.connection.is_some();
        }
    }

    /// Takes a new client for a function; one that has a client keeps it, and the new one is turned away.
    fn accept(&mut self, index: usize) {
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
                if let Some(suppressed) = slot.log.allow(now()) {
                    let peer = peer_pid(&stream);
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
        let added = self.poller.add(&stream, CONNECTIONS + index as u64, Interest::READ);
        if let Some(suppressed) = slot.log.allow(now()) {
            let peer = peer_pid(&stream);
            match &added {
                Ok(()) => tracing::info!(function = name, peer, suppressed, "a client has connected"),
                Err(error) => {
                    tracing::error!(function = name, peer, %error, suppressed, "cannot serve a client");
                }
            }
        }
        if added.is_ok() {
            slot.connection = Some(Connection::new(stream));
            slot.more = true;
        }
    }

    /// One visit to a client.
    fn serve(&mut self, index: usize) {
        let slot = &mut self.slots[index];
        let Some(connection) = slot.connection.as_mut() else { return };
        let (function, nic, side) = (slot.function, &mut self.nic, &mut self.side);
        let mut device = FunctionDevice { function, nic, side, bus: &mut self.bus };
        match connection.visit(&mut device, &mut self.buffer) {
            // It has hung up and reads no replies; somebody else waits for the function.
            Ok(Visit::Done) if slot.next.is_some() => return self.disconnect(index, Over::Closed),
            Ok(visit) => slot.more = visit == Visit::More,
            Err(over) => return self.disconnect(index, over),
        }
        if let Some(interest) = connection.new_interest() {
            let modified = self.poller.modify(connection.stream(), CONNECTIONS + index as u64, interest);
            if let Err(error) = modified {
                return self.disconnect(index, Over::Failed(error.to_string()));
            }
        }
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

    /// Lets go of a client: its memory and interrupts at once. The function's state stays, but that it masters the
    /// bus: its rings name addresses of this client, and the next one's memory must not be written to by them.
    fn disconnect(&mut self, index: usize, over: Over) {
        let slot = &mut self.slots[index];
        let Some(connection) = slot.connection.take() else { return };
        // Closing the descriptor removes it from the poller too; a failure here has no consequence.
        let _ = self.poller.remove(connection.stream());
        slot.retire(connection.counters());
        let (function, nic, side) = (slot.function, &mut self.nic, &mut self.side);
        end_bus_mastering(nic, side, function);
        connection.close(&mut FunctionDevice { function, nic, side, bus: &mut self.bus });
        if let Some(suppressed) = slot.log.allow(now()) {
            let name = &slot.name;
            match over {
                Over::Closed => tracing::info!(function = name, suppressed, "the client has gone"),
                Over::Failed(why) => {
                    tracing::warn!(function = name, why, suppressed, "the client is cut off");
                }
            }
        }
        if let Some(next) = slot.next.take() {
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
                self.disconnect(index, Over::Failed("its shared memory was truncated under the card".into()));
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

    /// Does what was commanded; `false` is the end.
    fn obey(&mut self) -> bool {
        loop {
            match self.commands.try_recv() {
                Ok(Command::Status(answer)) => {
                    // Whoever asked may have given up waiting.
                    let _ = answer.send(self.status());
                }
                Ok(Command::Change(vf, change, answer)) => {
                    let _ = answer.send(self.change(vf, &change).map(|()| self.status()));
                }
                Ok(Command::ChangePort(change, answer)) => {
                    let _ = answer.send(self.change_port(&change).map(|()| self.status()));
                }
                Ok(Command::Reset(answer)) => {
                    let _ = answer.send(self.reset().map(|()| self.status()));
                }
                Ok(Command::Stop) | Err(std::sync::mpsc::TryRecvError::Disconnected) => return false,
                Err(std::sync::mpsc::TryRecvError::Empty) => return true,
            }
        }
    }

    /// Puts a changed policy to work, whole or not at all. A VF of a port that a guest drives has none.
    fn change(&mut self, index: VfIndex, change: &Change) -> Result<(), RefusedChange> {
        let Some(Hosted { pf, .. }) = self.side.hosted() else { return Ok(()) };
        let slot = self.slots.iter().find(|slot| vf(slot.function) == Some(index));
        let own = slot.map_or(self.mac, |slot| slot.mac);
        let policy = change.apply(*pf.policy(index), own)?;
        pf.set_policy(&mut PfHal(&mut self.nic), index, policy).map_err(ChangeError::from)?;
        match change.quarantine {
            Some(true) => pf.quarantine(&mut PfHal(&mut self.nic), index, Cause::Administrator),
            Some(false) => pf.release(&mut PfHal(&mut self.nic), index),
            None => {}
        }
        self.show_links();
        Ok(())
    }

    /// Puts a changed policy of the port to work, whole or not at all.
    fn change_port(&mut self, change: &PortChange) -> Result<(), RefusedChange> {
        let vfs = self.slots.len();
        let Some(Hosted { pf, .. }) = self.side.hosted() else { return Err(RefusedChange::Guests) };
        let policy = change.apply(*pf.port_policy(), vfs)?;
        pf.set_port_policy(&mut PfHal(&mut self.nic), policy).map_err(ChangeError::from)?;
        Ok(())
    }

    /// Resets the card and sets it up again, policy and all. Guests are told before, and their drivers start anew.
    fn reset(&mut self) -> Result<(), RefusedChange> {
        let Self { nic, bus, uplink, .. } = self;
        let Some(Hosted { pf, .. }) = self.side.hosted() else { return Err(RefusedChange::Guests) };
        pf.reset(&mut RunningHal { nic, bus, uplink })?;
        tracing::info!(port = self.name, "the port was reset");
        self.show_links();
        Ok(())
    }

    /// Guests are told that their VFs stop, rather than finding out. The last poll sends the interrupts.
    fn take_leave(&mut self) {
        let Some(Hosted { pf, .. }) = self.side.hosted() else { return };
        pf.remove(&mut PfHal(&mut self.nic));
        self.show_links();
        self.nic.poll(now(), Budget::default(), &mut self.bus, &mut self.uplink);
    }

    /// Shows every VF the link that the PF driver has decided on.
    fn show_links(&mut self) {
        let Some(Hosted { pf, .. }) = self.side.hosted() else { return };
        for vf in self.slots.iter().filter_map(|slot| vf(slot.function)) {
            self.nic.set_vf_link(vf, pf.link_override(vf));
        }
    }
}

/// What a VF has done, in the order of [`driver::pf::Offence`]. Requests the PF driver counts itself.
fn conduct(counters: &PoolCounters, interrupts: u64) -> Totals {
    let groups = counters.tx_broadcast + counters.tx_multicast;
    [0, counters.tx_blocked, groups, interrupts, counters.tx_invalid, counters.dma_faults]
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
