//! Slot of a function: its socket, its client if one is connected, and counters over all clients. The card and the
//! SR-IOV manager hold the function itself.

use super::calls::DriverRestartNoticeSchedule;
use super::changes::VfDriverEventLog;
use super::connection::ClientConnection;
use super::ending::PendingDisconnect;
use super::endpoint::{DoorState, FunctionEndpoint};
use super::held_front_end::HeldFrontEnd;
use super::holdings::ClientResources;
use super::listening::FunctionSocketConfig;
use super::pages::SharedRegisterPages;
use super::privacy::PrivacyCheck;
use crate::control::status::{ClientRefusals, VmmInterventions};
use crate::flight::FlightRecordKind;
use crate::flight::recording::PendingFlightRecording;
use crate::limit::LogRateLimit;
use crate::pcapng;
use crate::port::engine::PortEngine;
use crate::port::engine::bus::FunctionBus;
use crate::port::engine::family::PortCard;
use crate::state::port::ClientState;
use driver::conduct::VfConductVerdict;
use i82576::{MacAddress, Time};
use pcie::Function;
use std::fmt::Display;
use std::path::PathBuf;
use vfio_user::server::SessionCounters;

/// Maximum number of log lines per minute that clients of one function can cause.
const LOG_BURST: u32 = 20;

/// Hint in status and log for a function whose worker thread is behind.
pub(in crate::port) const BEHIND_HINT: &str = "a file descriptor of a client takes long to close, so the function accepts no \
     further clients until it is closed; end the program that keeps it open, such as the peer of a socket";

/// Function that the port offers, with its socket and its client.
#[derive(Debug)]
pub(in crate::port) struct OfferedFunction {
    pub(in crate::port) function: Function,
    pub(in crate::port) name: String,
    /// MAC address that the function has after a reset.
    pub(in crate::port) mac: MacAddress,
    pub(in crate::port) socket: PathBuf,
    pub(in crate::port) endpoint: FunctionEndpoint,
    pub(super) connection: Option<Box<dyn ClientConnection>>,
    /// Resources that the host holds for the function's client.
    pub(in crate::port) own: ClientResources,
    /// Refused front end whose connection the port holds for a while.
    pub(super) held: Option<HeldFrontEnd>,
    /// True if a client waits in the listening socket's queue until the function's client, which has hung up, is disconnected.
    pub(super) has_queued_client: bool,
    /// State of the listening socket for clients.
    pub(super) door: DoorState,
    /// True if the poller reports new clients of the listening socket.
    pub(super) watched: bool,
    /// True if the function accepts no clients until its worker thread has done the jobs that it had.
    pub(in crate::port) is_worker_behind: bool,
    /// Clients that the function has refused.
    pub(in crate::port) refusals: ClientRefusals,
    /// State of the disconnection, while the client is being disconnected and served until it is silent.
    pub(super) ending: Option<PendingDisconnect>,
    /// Schedule of interrupts to the guest's driver, while the driver has to restart.
    pub(super) calls: Option<DriverRestartNoticeSchedule>,
    /// True if the client has pending messages that the port has not handled yet.
    pub(super) more: bool,
    /// Earliest time at which the client's pending messages may have arrived.
    pub(super) pending_since: Time,
    /// State of the check whether the guest writes to private copies of the memory that its VMM has shared.
    pub(super) privacy: PrivacyCheck,
    /// True if the log has a warning that the client shares no memory.
    pub(super) warned: bool,
    pub(super) log: LogRateLimit,
    pub(super) changes: VfDriverEventLog,
    /// Counts of messages and interrupts between the card and the function's former clients.
    past: VmmInterventions,
}

impl OfferedFunction {
    /// Creates an offered function without a client, from its configuration and endpoint.
    pub(in crate::port) fn new(
        place: &FunctionSocketConfig<'_>,
        endpoint: FunctionEndpoint,
        own: ClientResources,
    ) -> Self {
        let FunctionSocketConfig { function, name, mac, socket, .. } = *place;
        Self {
            function,
            name: name.to_owned(),
            mac,
            socket: socket.to_owned(),
            endpoint,
            connection: None,
            own,
            held: None,
            has_queued_client: false,
            door: DoorState::Unknown,
            watched: false,
            is_worker_behind: false,
            refusals: ClientRefusals::default(),
            ending: None,
            calls: None,
            more: false,
            pending_since: Time::ZERO,
            privacy: PrivacyCheck::Due,
            warned: false,
            log: LogRateLimit::per_minute(LOG_BURST),
            changes: VfDriverEventLog::default(),
            past: VmmInterventions::default(),
        }
    }

    /// Returns the client's connection, if a client is connected.
    pub(in crate::port) fn connection(&self) -> Option<&dyn ClientConnection> {
        self.connection.as_deref()
    }

    /// Returns the reason why the host is not connected to the socket on which the function's VMM listens. Returns
    /// `None` if the host is connected, or listens itself.
    pub(in crate::port) fn unconnected(&self, card: &dyn PortCard) -> Option<String> {
        let dial = self.endpoint.dial().filter(|_| self.connection.is_none())?;
        let off = self.function.vf().is_some_and(|vf| card.is_disconnected(vf));
        let reason = if off { Some("the VF is disabled or in quarantine") } else { dial.why.as_deref() };
        Some(reason.unwrap_or("the host connects").to_owned())
    }

    /// Notes if the function's worker thread is behind: the function then accepts no further clients, since each may leave
    /// descriptors to the worker. The worker reports when it has caught up.
    pub(super) fn note_backlog(&mut self, now: Time) {
        if self.is_worker_behind || !self.own.errands.are_many() {
            return;
        }
        self.is_worker_behind = true;
        self.own.errands.report_emptied_queue();
        if let Some(suppressed) = self.log.allow(now) {
            tracing::warn!(function = self.name, suppressed, "{BEHIND_HINT}");
        }
    }

    /// Reconnects a client of the previous host process to this function.
    pub(in crate::port) fn resume(&mut self, connection: Box<dyn ClientConnection>) {
        (self.connection, self.more) = (Some(connection), true);
    }

    /// Restores the register pages that the previous host process's client may have mapped. If the card is not
    /// `exactly` as it was, schedules interrupts to the guest's driver until the driver restarts.
    pub(in crate::port) fn resume_driver(&mut self, card: &mut dyn PortCard, exactly: bool, now: Time) {
        let restarting =
            self.connection.as_ref().filter(|connection| connection.outlives_reset() && !exactly);
        self.calls = restarting.map(|_| DriverRestartNoticeSchedule::new(now));
        let pages = self.own.successor.kept_pages().zip(self.function.vf());
        self.own.pages = pages.and_then(|(fd, vf)| SharedRegisterPages::adopt(fd, vf, card, exactly, now));
    }

    /// Shows a VF the link that the PF driver has set, or no link while its client is being disconnected.
    pub(super) fn show_link(&mut self, engine: &mut PortEngine, now: Time) {
        if let Some(vf) = self.function.vf()
            && let Err(error) = engine.show_link(vf, self.ending.is_some(), now)
        {
            self.warn(now, "cannot apply the VF's policy", &error);
        }
    }

    /// Logs an error of the function, unless its clients have caused too many log lines.
    pub(in crate::port) fn warn(&mut self, now: Time, what: &str, error: &dyn Display) {
        self.log.warn(now, &self.name, what, error);
    }

    /// Logs the changes of the VF's state since the last call.
    pub(super) fn log_changes(&mut self, engine: &PortEngine, now: Time) {
        let (card, flight) = (engine.card(), &mut self.own.flight);
        let Some(vf) = self.function.vf() else { return };
        if let Some(state) = card.driver_state(vf) {
            self.changes.update(&self.name, state, |place| card.reason(place), flight, now);
        }
        self.changes.note_claims(&self.name, engine.refused_claims(vf), flight, now);
    }

    /// Has the PF driver check the VF for offences by the counters of card and bus.
    pub(super) fn judge(&mut self, engine: &mut PortEngine, now: Time) -> Option<VfConductVerdict> {
        let vf = self.function.vf()?;
        self.own.flight.count(now, engine.card_mut().counters(self.function));
        let verdict = engine.judge(vf, now)?;
        let VfConductVerdict { offence, rate, action } = verdict;
        self.own.flight.event(now, FlightRecordKind::Offence(offence.name()), rate);
        self.show_link(engine, now);
        if let Some(suppressed) = self.log.allow(now) {
            let (name, offence) = (&self.name, offence.name());
            tracing::warn!(function = name, offence, rate, ?action, suppressed, "the VF exceeds a threshold");
        }
        Some(verdict)
    }

    /// Sends a due interrupt to the function's guest driver if the driver has to restart. Returns the time of the next
    /// interrupt.
    pub(super) fn call(&mut self, engine: &mut PortEngine, now: Time) -> Option<Time> {
        let calls = self.calls.as_mut()?;
        let active = self.function.vf().is_some_and(|vf| engine.card().is_active(vf));
        let due = calls.due(now).filter(|_| !active && self.connection.is_some());
        let next = calls.next();
        match due {
            Some(due) => {
                if due {
                    engine.signal_all(self.function);
                }
                Some(next)
            }
            None => {
                self.calls = None;
                None
            }
        }
    }

    /// Returns a flight recording of the VF. The recorder keeps its entries.
    pub(super) fn take_flight(
        &self,
        card: &dyn PortCard,
        because: Option<&'static str>,
        now: Time,
    ) -> PendingFlightRecording {
        let family = self.function.vf().map_or_else(|| card.family(), |vf| card.vf_family(vf));
        let (vf, notes) = (self.name.clone(), self.own.flight.copy());
        PendingFlightRecording { vf, family, because, now, time_ns: pcapng::time(), notes }
    }

    /// Returns the counts of accesses and interrupts between card and VMM, over all clients so far.
    pub(in crate::port) fn interventions(&self, interrupts: u64) -> VmmInterventions {
        let now = self.connection.as_ref().map(|connection| connection.counters()).unwrap_or_default();
        VmmInterventions { interrupts, ..add(self.past, now) }
    }

    /// Returns the part of the client's state that the journal does not hold.
    pub(in crate::port) fn state(&self, reach: &FunctionBus) -> ClientState {
        ClientState {
            interventions: self.interventions(reach.interrupts()),
            pin: reach.pin(),
            judged: self.privacy.judged(),
            warned: self.warned,
        }
    }

    /// Restores the state of the function's client that the previous host process has saved.
    pub(in crate::port) fn restore(&mut self, state: &ClientState, reach: &mut FunctionBus) {
        self.past = state.interventions;
        reach.restore(state.pin, state.interventions.interrupts);
        self.privacy = PrivacyCheck::from_judged(state.judged);
        self.warned = state.warned;
    }

    /// Disconnects the held front end, if there is one, of a port that accepts no more clients. The front end may have sent
    /// descriptors, so the worker thread closes the socket.
    pub(super) fn turn_held_away(&mut self) {
        if let Some(held) = self.held.take() {
            self.own.errands.turn_away(held.into_stream());
        }
    }

    /// Adds the counters of a disconnected client to those of the former clients, and resets the state of the
    /// connection.
    pub(super) fn retire(&mut self, counters: SessionCounters) {
        self.past = add(self.past, counters);
        (self.ending, self.calls) = (None, None);
        (self.more, self.warned, self.has_queued_client) = (false, false, false);
        self.privacy = PrivacyCheck::Due;
    }
}

fn add(past: VmmInterventions, now: SessionCounters) -> VmmInterventions {
    VmmInterventions {
        reads: past.reads + now.reads,
        posted_writes: past.posted_writes + now.posted_writes,
        synchronous_writes: past.synchronous_writes + now.synchronous_writes,
        interrupts: past.interrupts,
    }
}
