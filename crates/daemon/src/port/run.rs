//! Loop of a port's thread. It creates the clock, and passes the clock to commands and clients, and the time to
//! everything else that it calls. `waiting` decides how long the loop waits.

#[cfg(test)]
mod tests;

use super::clients::PortClients;
use super::clients::errand::BlockingCallCompletionSender;
use super::command::PortCommandInbox;
use super::engine::PortEngine;
use super::engine::family::PfDriverRunResult;
use super::pending_pause::PendingPause;
use super::succession::PortHandOverState;
use super::tokens::WakeSource;
use super::waiting::{PollingNapBackoff, PortWaitEnvironment, SleepEnd};
use crate::clock::{HostClock, TimeSource};
use crate::config::file::DoorbellMode;
use host::cpus::CpuList;
use i82576::{MacAddress, Time};
use std::io;
use std::time::Duration;

/// Longest sleep while the PF driver has a deadline for a link notice or a refusal.
const LONGEST_SLEEP: Duration = Duration::from_secs(1);

/// Opened port with its card, clients and uplink, before its thread runs.
#[derive(Debug)]
pub struct OpenPort {
    pub(super) name: String,
    pub(super) mac: MacAddress,
    pub(super) engine: PortEngine,
    pub(super) clients: PortClients,
    pub(super) succession: PortHandOverState,
    /// Sender by which the worker threads of later VFs report the outcomes of clients' blocking calls.
    pub(super) desk: BlockingCallCompletionSender,
    /// Processors that the port's thread is pinned to. An empty set means any.
    pub(super) cpus: CpuList,
    /// Processors that the host may run on, for a thread that is not pinned.
    pub(super) anywhere: CpuList,
    pub(super) phase: PortPhase,
    pub(super) naps: PollingNapBackoff,
    /// Time at which the whole port has work, while other threads have parts of the card.
    pub(super) due: Option<Time>,
    /// Pause that waits for front ends.
    pub(super) pausing: Option<PendingPause>,
}

/// Phase of a port: serving clients, ending, left to a successor process, or about to be opened again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PortPhase {
    Serving,
    /// The port ends: every client is disconnected, and no new one is accepted.
    Ending,
    /// A successor process has taken over the port, and this process serves the port no more.
    Left,
    /// The port was opened by an outdated configuration, and has to be opened again.
    Outdated,
}

/// End of one turn of a port's loop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PortTurn {
    /// The port continues. Its next turn waits for at most this time, or without a limit.
    Continues(Option<Duration>),
    Ended(PortThreadOutcome),
}

/// Reason why a port's thread has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PortThreadOutcome {
    /// The port ended and every client was disconnected.
    Ended,
    /// The host's successor process has taken over the port.
    HandedOver,
    /// The port failed and has logged the reason. Opening the port again resumes its clients.
    Failed,
    /// The port was opened by an outdated configuration, and has to be opened again.
    Outdated,
}

impl OpenPort {
    /// Runs the port's loop until the stop command, and then until every client is disconnected; or until the successor
    /// process takes over. Pins the thread to `cpus`.
    pub fn run(mut self, inbox: &PortCommandInbox, cpus: &CpuList) -> PortThreadOutcome {
        let clock = HostClock;
        self.succession.note_software(self.engine.card_mut());
        host::poll::wake_in_time();
        // The seccomp filter of a port's thread allows pinning for that thread alone.
        if let Err(error) = self.run_on(cpus.clone()) {
            tracing::error!(port = self.name, %error, "cannot pin the port's thread to CPUs {cpus}; it runs on any CPU");
        }
        self.clients.own_sockets();
        self.engine.own_uplink();
        let mut timeout = Some(Duration::ZERO);
        loop {
            match self.turn(inbox, timeout, &clock) {
                PortTurn::Continues(next) => timeout = next,
                PortTurn::Ended(outcome) => {
                    if matches!(outcome, PortThreadOutcome::Failed | PortThreadOutcome::Outdated) {
                        self.clients.leave_socket_files();
                        self.engine.leave_uplink();
                    }
                    return outcome;
                }
            }
        }
    }

    /// Runs one turn of the port's loop: waits for at most `timeout`, and handles what has happened.
    fn turn(
        &mut self,
        inbox: &PortCommandInbox,
        timeout: Option<Duration>,
        clock: &dyn TimeSource,
    ) -> PortTurn {
        if self.has_ended() {
            self.succession.vault().forget_all();
            return PortTurn::Ended(PortThreadOutcome::Ended);
        }
        if let Err(error) = self.wait(inbox, timeout, clock) {
            tracing::error!(port = self.name, %error, "cannot wait for events; the port fails");
            return PortTurn::Ended(PortThreadOutcome::Failed);
        }
        if self.engine.is_divided() && !self.needs_the_card(clock.now()) {
            return PortTurn::Continues(self.move_frames(clock));
        }
        if !self.gathers() {
            return PortTurn::Ended(PortThreadOutcome::Failed);
        }
        self.carry_out_commands(inbox, clock);
        if self.phase == PortPhase::Left {
            // A process that hands over before its first round has not failed with the saved state.
            self.succession.note_round();
            self.engine.leave_uplink();
            self.clients.leave_sockets(&mut self.engine, clock.now());
            return PortTurn::Ended(PortThreadOutcome::HandedOver);
        }
        if self.phase == PortPhase::Outdated {
            return PortTurn::Ended(PortThreadOutcome::Outdated);
        }
        let timeout = self.round(clock);
        self.succession.note_round();
        if let Some(pausing) = &self.pausing {
            return PortTurn::Continues(Some(pausing.limit(timeout, clock.now())));
        }
        if self.clients.have_more() || self.engine.needs_whole_card() || !self.assign(clock.now()) {
            // Such as a client's message that is handled in part, a learned address, a request to the PF driver or a client
            // that was disconnected. The next turn follows at once.
            return PortTurn::Continues(Some(Duration::ZERO));
        }
        match self.divide() {
            Ok(()) if self.engine.is_divided() => PortTurn::Continues(Some(Duration::ZERO)),
            Ok(()) => PortTurn::Continues(timeout),
            Err(error) => {
                tracing::error!(port = self.name, %error, "cannot share the VFs among workers; the port fails");
                PortTurn::Ended(PortThreadOutcome::Failed)
            }
        }
    }

    /// Returns true if the port is ending and every client is disconnected.
    fn has_ended(&self) -> bool {
        self.phase == PortPhase::Ending && self.clients.are_gone()
    }

    /// Runs one round of the port's loop: serves clients, runs the PF driver, polls the card. Returns how long to sleep
    /// before the next round, or `None` without a deadline.
    fn round(&mut self, clock: &dyn TimeSource) -> Option<Duration> {
        let Self { engine, clients, succession, pausing, .. } = self;
        let began = clock.now();
        clients.finish_errands(engine, began);
        clients.read_doorbells(engine, began);
        if pausing.is_none() {
            clients.serve(engine, clock);
        }
        // After the messages, so that their requests are answered in the same round.
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
        clients.settle_work(engine);
        // The poll may have found memory that a client has truncated.
        clients.evict_poisoned(engine, polled);
        let link_changed = engine.follow_uplink(clients.poller(), polled);
        let disconnects = clients.continue_disconnects(engine, polled);
        // After everything that may have disconnected a client.
        clients.dial(engine, polled);
        succession.save_addresses(engine, polled);
        clients.publish_registers(engine, polled);
        let call = clients.call_drivers(engine, polled);
        let ended = clock.now();
        // A port that is too busy to sleep needs both too: the dispatcher its load, and a divided card the next deadline
        // instead of one that has passed.
        engine.note_busy(ended.since(began));
        let notice = visit.deadline.map(|deadline| deadline.min(ended + LONGEST_SLEEP));
        self.due = [disconnects, call, notice].into_iter().flatten().min();
        // A port whose pause waits handles no message.
        let has_messages = pausing.is_none() && clients.have_more();
        let more = poll.more || link_changed || has_messages;
        if more || !engine.may_sleep() {
            return Some(Duration::ZERO);
        }
        let deadlines = [self.due, poll.deadline, engine.uplink_deadline()];
        self.sleep_until(deadlines, ended)
    }

    /// Returns how long a port without work sleeps until the first of the deadlines, or `None` without a deadline. Forgets the
    /// debts of its functions if it sleeps.
    fn sleep_until(&mut self, deadlines: [Option<Time>; 3], now: Time) -> Option<Duration> {
        let time = deadlines.into_iter().flatten().min().map(|deadline| deadline.since(now));
        if time != Some(Duration::ZERO) {
            self.clients.forget_debts();
        }
        time
    }

    /// Returns true if the port has work that needs the whole card.
    fn needs_the_card(&self, now: Time) -> bool {
        self.clients.need_the_card() || self.engine.must_gather() || self.due.is_some_and(|due| due <= now)
    }

    /// Takes the parts of the card back from other threads. Returns false if one is lost.
    fn gathers(&mut self) -> bool {
        let gathered = self.engine.gather();
        if let Err(error) = &gathered {
            tracing::error!(port = self.name, %error, "cannot gather the card; the port fails");
        }
        gathered.is_ok()
    }

    /// Decides which thread serves each VF, and moves the VFs' kicks there. Returns false if that has disconnected a client, whose
    /// VF the card may not be divided with.
    fn assign(&mut self, now: Time) -> bool {
        let Self { engine, clients, .. } = self;
        engine.assign(now);
        clients.move_kicks(engine, now)
    }

    /// Shares the card with other threads, as the dispatcher has decided.
    fn divide(&mut self) -> io::Result<()> {
        self.engine.divide().map_err(io::Error::other)?;
        self.due = [self.due, self.engine.end_of_window()].into_iter().flatten().min();
        Ok(())
    }

    /// Moves frames of the VFs that the port's own thread serves, while other threads have the other VFs. Returns how long to
    /// sleep, or `None` without a deadline.
    fn move_frames(&mut self, clock: &dyn TimeSource) -> Option<Duration> {
        let Self { engine, clients, due, .. } = self;
        let began = clock.now();
        clients.read_doorbells(engine, began);
        clients.begin_round(engine);
        let poll = engine.poll(began);
        clients.settle_work(engine);
        clients.publish_registers(engine, began);
        // A stream that is full or broken may not wait for the end of the window.
        engine.follow_uplink(clients.poller(), began);
        let sleeps = !poll.more && !engine.must_gather() && engine.may_sleep();
        let ended = clock.now();
        engine.note_busy(ended.since(began));
        if !sleeps {
            return Some(Duration::ZERO);
        }
        let deadlines = [poll.deadline, engine.uplink_deadline(), *due];
        self.sleep_until(deadlines, ended)
    }

    /// Waits until an event wakes the port, or `time` is over.
    fn wait(
        &mut self,
        inbox: &PortCommandInbox,
        time: Option<Duration>,
        clock: &dyn TimeSource,
    ) -> io::Result<()> {
        let mut naps = self.naps;
        let passed = naps.pass(&mut WaitingPort { port: self, inbox, clock }, time);
        self.naps = naps;
        // The round that follows changes the port, so the saved state of the whole port becomes invalid.
        self.succession.disturb();
        passed
    }
}

/// Runs the PF driver, if the host drives the PF, so that it answers its VFs. Records the VFs whose requests wait for an answer.
fn visit_pf(engine: &mut PortEngine, clients: &mut PortClients, now: Time) -> PfDriverRunResult {
    if !engine.card().is_hosted() {
        return PfDriverRunResult::default();
    }
    clients.note_requests(engine, now);
    engine.visit(now)
}

/// Port that waits for events between two rounds of its loop.
struct WaitingPort<'a> {
    port: &'a mut OpenPort,
    inbox: &'a PortCommandInbox,
    clock: &'a dyn TimeSource,
}

impl PortWaitEnvironment for WaitingPort<'_> {
    fn now(&self) -> Time {
        self.clock.now()
    }

    /// Sleeps until an event or for `time`, and marks the sockets that woke the port.
    fn sleep(&mut self, time: Option<Duration>) -> io::Result<SleepEnd> {
        let asked = self.now();
        let ready = self.port.clients.wait(self.clock.blocking_time(time))?;
        let returned = self.now();
        let woken = ready[0].is_some();
        self.port.clients.note_wait(asked, returned, woken);
        if woken {
            self.port.succession.disturb();
        }
        let mut sources = ready.into_iter().flatten().map(WakeSource::of);
        if self.port.engine.is_divided() && !sources.clone().all(WakeSource::is_of_frames) {
            self.port.engine.gather().map_err(io::Error::other)?;
        }
        let mut end = if woken { SleepEnd::OtherEvent } else { SleepEnd::TimeOver };
        for source in &mut sources {
            match source {
                WakeSource::Command => self.inbox.waker.drain(),
                WakeSource::Uplink => self.port.engine.set_uplink_readable(),
                WakeSource::Trunk => self.port.engine.drain_trunk_waker(),
                WakeSource::Connection(index) => self.port.clients.mark(index),
                WakeSource::Kick { place, ring } => {
                    end = SleepEnd::Notification;
                    self.port.clients.kick(place, ring, &mut self.port.engine);
                }
                WakeSource::Listener(index) => {
                    self.port.clients.accept(index, &mut self.port.engine, returned);
                }
            }
        }
        Ok(end)
    }

    fn doorbell_mode(&self) -> DoorbellMode {
        self.port.clients.doorbell_mode()
    }

    fn must_poll_pages(&self) -> bool {
        self.port.clients.must_poll_pages(&self.port.engine)
    }

    fn must_receive(&self) -> bool {
        self.port.clients.must_receive()
    }

    fn polls_rings(&self) -> bool {
        self.port.engine.polls_rings()
    }

    fn arm_rings(&mut self) -> bool {
        // A look at a ring may have found memory that a client has truncated, which a round has to evict.
        self.port.engine.arm_rings() || self.port.clients.need_the_card()
    }

    fn poll_memory(&mut self, time: Duration) -> bool {
        let began = self.now();
        let OpenPort { clients, engine, .. } = &mut *self.port;
        while !(clients.have_new_doorbells(engine) || engine.look_at_rings()) {
            if time.is_zero() || self.clock.now().since(began) >= time {
                return false;
            }
            std::hint::spin_loop();
        }
        true
    }

    fn may_note(&self) -> bool {
        self.port.phase == PortPhase::Serving
            && !self.port.succession.is_at_rest()
            && !self.port.engine.is_divided()
    }

    fn note(&mut self) {
        let now = self.now();
        self.port.note_all(now);
    }

    fn log_changes(&mut self) {
        if !self.port.engine.is_divided() {
            let now = self.now();
            self.port.clients.log_changes(&self.port.engine, now);
        }
    }
}
