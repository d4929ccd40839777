//! The clients of a port's functions. Each function that the port offers has a slot, with its socket and
//! its client, if one is connected.
//!
//! | module | content |
//! |---|---|
//! | `slot` | a function's socket and client, and counters over all clients |
//! | `endpoint`, `listening` | the listening socket, or the attempts to connect to a VMM's socket |
//! | `dialing`, `doors` | connections to VMMs that listen; listening sockets that are shut while a VF is disabled |
//! | `dialer`, `dialer_event`, `shut_door` | the thread that connects to VMMs, and shuts listening sockets |
//! | `connection` | trait of a client's connection, and the bounds of every client |
//! | `vfio` | a vfio-user client's connection, and its session |
//! | `vhost` | a vhost-user client's connection, for virtio functions |
//! | `holdings` | the host's resources for a client, those of the next three rows, and its flight recorder |
//! | `pages` | pages of BAR0 that a client maps |
//! | `privacy` | check whether a guest writes to private copies of its memory |
//! | `errand` | calls for a client that may block, on a worker thread |
//! | `successor`, `keeper` | a client's state for the successor process; the keeper's copies of file descriptors |
//! | `device` | a function as a vfio-user device: messages become accesses to the card |
//! | `service` | accepts, serves and disconnects clients |
//! | `hand_over` | prepares clients for the successor process |
//! | `refusal`, `held_front_end` | clients that are refused, and front ends that are held then |
//! | `ending`, `parting` | the end of a connection that leaves the client's VMM alive |
//! | `journal` | saved state of clients in shared memory |
//! | `answers` | delays of the PF driver's answers to requests |
//! | `changes`, `calls` | events of VFs, and interrupts to drivers that have to restart |
//!
//! Clients reach the card through [`PortEngine`], and a successor through the trait [`successor::ClientStateSaver`]. Time is
//! an argument. Only [`PortClients::serve`] takes a clock, which bounds each visit. `run` calls all this.

pub(in crate::port) mod answers;
mod calls;
mod changes;
pub(in crate::port) mod connection;
mod device;
pub(in crate::port) mod dialer;
mod dialer_event;
mod dialing;
mod doors;
mod ending;
pub(in crate::port) mod endpoint;
pub(in crate::port) mod errand;
mod hand_over;
mod held_front_end;
pub(in crate::port) mod holdings;
pub(in crate::port) mod journal;
pub(in crate::port) mod keeper;
pub(in crate::port) mod listening;
pub(in crate::port) mod orphans;
mod pages;
mod parting;
mod privacy;
mod refusal;
pub(in crate::port) mod service;
mod shut_door;
pub(in crate::port) mod slot;
pub(in crate::port) mod successor;
pub(in crate::port) mod vfio;
pub(in crate::port) mod vhost;

use super::engine::PortEngine;
use super::tokens;
use crate::config::file::DoorbellMode;
use crate::control::status::PfAnswerStatus as AnswerStatus;
use crate::flight::files::FlightRecordingSender;
use crate::flight::recording::PendingFlightRecording;
use crate::state::port::ClientState;
use crate::totals::MailboxAnswerTotals;
use answers::{MailboxAnswerStatistics, MessageArrivalTimes};
use connection::DisconnectReason;
use dialer::VmmDialer;
use ending::HalfClosedConnections;
use endpoint::DoorState;
use errand::CompletedBlockingCall;
use host::poll::{PollInterest, Poller};
use host::socket::{SocketListener, StreamSocket};
use i82576::Time;
use pcie::{Function, VfIndex, VfSet};
use policy::OffenceAction;
use slot::OfferedFunction;
use std::io;
use std::sync::mpsc::Receiver;
use std::time::Duration;

/// Maximum bytes of one receive from a client: hundreds of a guest's doorbells, or a part of a long transfer.
const RECEIVE_BUFFER: usize = 64 * 1024;
/// Interval at which the PF driver checks the VFs for offences.
const WATCH: Duration = Duration::from_secs(1);

/// Tokens of the file descriptors that woke the port.
pub(in crate::port) type ReadyTokens = [Option<u64>; 64];

/// Functions that a port offers, with their sockets and clients.
#[derive(Debug)]
pub(in crate::port) struct PortClients {
    slots: Vec<OfferedFunction>,
    /// Clients that the port has disconnected and that have not closed their end of the connection yet.
    hung_up: HalfClosedConnections,
    poller: Poller,
    /// Doorbell mode of the port, which decides whether new clients get register pages to map.
    wait: DoorbellMode,
    message_times: MessageArrivalTimes,
    answers: MailboxAnswerStatistics,
    /// Receiver of the outcomes of clients' blocking calls.
    done: Receiver<CompletedBlockingCall>,
    /// Buffer for messages received from clients.
    buffer: Box<[u8]>,
    /// Time when the VFs were last checked for offences.
    watched: Time,
    /// Value of [`host::memory::poison_events`] at the last check for truncated guest memory.
    poisoned: u64,
    /// Channel to the thread that writes flight recordings of quarantined VFs.
    flights: FlightRecordingSender,
    /// Thread that connects to VMMs and shuts listening sockets, for virtio functions of a port that does not end.
    dialer: Option<VmmDialer>,
    /// Number of the last order to the dialer.
    dials: u64,
    /// True if functions may need orders to the dialer: one has lost its client, was added, or its VF's policy has changed.
    unsettled: bool,
}

impl PortClients {
    /// Creates an empty set of functions. `poller` comes from [`Self::poller_of`].
    pub(in crate::port) fn new(
        poller: Poller,
        wait: DoorbellMode,
        done: Receiver<CompletedBlockingCall>,
        watched: Time,
        flights: FlightRecordingSender,
    ) -> Self {
        Self {
            slots: Vec::new(),
            hung_up: HalfClosedConnections::default(),
            poller,
            wait,
            message_times: MessageArrivalTimes::default(),
            answers: MailboxAnswerStatistics::default(),
            done,
            buffer: vec![0; RECEIVE_BUFFER].into(),
            watched,
            poisoned: host::memory::poison_events(),
            flights,
            dialer: None,
            dials: 0,
            unsettled: true,
        }
    }

    /// Creates the poller of a port, which reports events of `waker`.
    pub(in crate::port) fn poller_of(waker: &host::poll::ThreadWaker) -> io::Result<Poller> {
        let poller = Poller::new()?;
        poller.add(waker, tokens::WAKER, PollInterest::READ)?;
        Ok(poller)
    }

    /// Adds a function to the port's other functions, and begins to accept its clients.
    pub(in crate::port) fn add(&mut self, mut slot: OfferedFunction) -> io::Result<()> {
        // The dialer first opens or shuts a listening socket that it may shut.
        if self.dialer.is_none()
            && let Some(listener) = slot.endpoint.listener()
        {
            self.poller.add(listener, tokens::listener(self.slots.len()), PollInterest::READ)?;
            (slot.door, slot.watched) = (DoorState::Open, true);
        }
        self.slots.push(slot);
        self.unsettled = true;
        Ok(())
    }

    /// Has `adopt` resume the previous host process's client of each function. Returns the sockets of clients that
    /// could not be resumed.
    pub(in crate::port) fn inherit(
        &mut self,
        mut adopt: impl FnMut(&Poller, usize, &mut OfferedFunction) -> Option<StreamSocket>,
    ) -> Vec<(Function, StreamSocket)> {
        let adopt = |(index, slot): (usize, &mut OfferedFunction)| {
            Some((slot.function, adopt(&self.poller, index, slot)?))
        };
        self.slots.iter_mut().enumerate().filter_map(adopt).collect()
    }

    /// Returns the port's functions with their clients. Other methods take an index into this list.
    pub(in crate::port) fn slots(&self) -> &[OfferedFunction] {
        &self.slots
    }

    /// Returns the port's poller, to add file descriptors of the uplink.
    pub(in crate::port) fn poller(&self) -> &Poller {
        &self.poller
    }

    /// Moves the kick eventfds of each VF to the worker that serves the VF. Disconnects a client whose eventfds the kernel does
    /// not watch, and returns false then.
    pub(in crate::port) fn move_kicks(&mut self, engine: &mut PortEngine, now: Time) -> bool {
        let mut failures = Vec::new();
        for (place, slot) in self.slots.iter_mut().enumerate() {
            let Some(workers) = engine.card_mut().workers() else { return true };
            let (Some(connection), Some(vf)) = (&mut slot.connection, slot.function.vf()) else { continue };
            match connection.move_kicks(workers.poller(vf.get()), &self.poller, place) {
                Ok(false) => {}
                Ok(true) => engine.reach_mut(slot.function).kicks_mut().move_all(),
                Err(error) => failures.push((place, error)),
            }
        }
        for (place, error) in &failures {
            let why = format!("cannot watch the eventfds of the guest's kicks: {error}");
            self.disconnect(*place, &DisconnectReason::Failed(why), engine, now);
        }
        failures.is_empty()
    }

    /// Makes each later move of the kick eventfds of a function's client fail.
    #[cfg(test)]
    pub(in crate::port) fn fail_kicks(&mut self, index: usize) {
        let connection = self.slots[index].connection.take().unwrap();
        self.slots[index].connection = Some(Box::new(connection::FailingKicks(connection)));
    }

    /// Returns true if the port's clients have work for its thread beside the frames of guests.
    pub(in crate::port) fn need_the_card(&self) -> bool {
        self.have_more() || self.poisoned != host::memory::poison_events()
    }

    /// Returns the index of a VF among the port's functions.
    pub(in crate::port) fn place(&self, vf: VfIndex) -> Option<usize> {
        self.slots.iter().position(|slot| slot.function.vf() == Some(vf))
    }

    /// Returns the doorbell mode of the port.
    pub(in crate::port) fn doorbell_mode(&self) -> DoorbellMode {
        self.wait
    }

    /// Waits until a file descriptor is ready, or `time` is over. Returns tokens for [`tokens::WakeSource::of`].
    pub(in crate::port) fn wait(&mut self, time: Option<Duration>) -> io::Result<ReadyTokens> {
        let mut ready = [None; 64];
        for (place, event) in ready.iter_mut().zip(self.poller.wait(time)?) {
            *place = Some(event.token);
        }
        Ok(ready)
    }

    /// Records a poll of the kernel for events: its begin, its end, and true if there was an event.
    pub(in crate::port) fn note_wait(&mut self, asked: Time, returned: Time, news: bool) {
        self.message_times.note_poll(asked, returned, news);
    }

    /// Deletes the files of listening sockets when the port ends.
    pub(in crate::port) fn own_sockets(&mut self) {
        self.slots.iter_mut().filter_map(|slot| slot.endpoint.listener_mut()).for_each(SocketListener::own);
    }

    /// Has the card read the doorbells that guests have stored into their register pages.
    pub(in crate::port) fn read_doorbells(&self, engine: &mut PortEngine, now: Time) {
        for pages in self.slots.iter().filter_map(|slot| slot.own.pages.as_ref()) {
            pages.read_doorbells(engine.card_mut(), now);
        }
    }

    /// Has the card store registers into the guests' register pages, for the guests to read.
    pub(in crate::port) fn publish_registers(&self, engine: &mut PortEngine, now: Time) {
        for pages in self.slots.iter().filter_map(|slot| slot.own.pages.as_ref()) {
            pages.publish_registers(engine.card_mut(), now);
        }
    }

    /// Returns true if a guest has stored a doorbell since the card last read the register pages.
    pub(in crate::port) fn have_new_doorbells(&self, engine: &PortEngine) -> bool {
        let mut pages = self.slots.iter().filter_map(|slot| slot.own.pages.as_ref());
        pages.any(|pages| pages.has_new_doorbells(engine.card()))
    }

    /// Returns true if the port has to poll register pages: a client has register pages, and the card may act on stores
    /// of the client's guest.
    pub(in crate::port) fn must_poll_pages(&self, engine: &PortEngine) -> bool {
        self.slots.iter().any(|slot| has_pages(slot) && engine.card().is_bus_master(slot.function))
    }

    /// Returns true if the doorbells of a client come by message.
    pub(in crate::port) fn must_receive(&self) -> bool {
        let mut clients = self.slots.iter().filter_map(|slot| Some((slot, slot.connection.as_ref()?)));
        clients.any(|(slot, connection)| !has_pages(slot) && connection.rings_by_message())
    }

    /// Returns true if a client has pending messages that the port has not handled yet.
    pub(in crate::port) fn have_more(&self) -> bool {
        self.slots.iter().any(|slot| slot.more)
    }

    /// Shows every VF the link that the PF driver has set. A VF whose client is being disconnected sees no link.
    pub(in crate::port) fn show_links(&mut self, engine: &mut PortEngine, now: Time) {
        self.slots.iter_mut().for_each(|slot| slot.show_link(engine, now));
        self.shut_disabled(engine, now);
    }

    /// Records, before the PF driver runs, which VFs' requests wait for the driver.
    pub(in crate::port) fn note_requests(&mut self, engine: &mut PortEngine, now: Time) {
        let (slots, answers) = (&self.slots, &mut self.answers);
        let since = |vf: VfIndex| slots.get(vf.index()).map_or(now, |slot| slot.pending_since);
        answers.ask(engine.card_mut().pending_requests(now), since);
    }

    /// Records, after the PF driver has run, which VFs the driver has answered.
    pub(in crate::port) fn note_answers(&mut self, answered: VfSet, now: Time) {
        self.answers.answer(answered, now);
    }

    /// Returns the numbers of mailbox requests and their delays, for the port's status.
    pub(in crate::port) fn answers(&self) -> AnswerStatus {
        self.answers.status()
    }

    /// Returns the statistics of the PF driver's answers, to be saved for the successor process.
    pub(in crate::port) fn save_answers(&self) -> MailboxAnswerTotals {
        self.answers.save()
    }

    /// Continues the statistics of mailbox answers that the previous host process has saved.
    pub(in crate::port) fn resume_answers(&mut self, totals: &MailboxAnswerTotals) {
        self.answers.resume(totals);
    }

    /// Logs state changes of VFs' drivers since the last call.
    pub(in crate::port) fn log_changes(&mut self, engine: &PortEngine, now: Time) {
        self.slots.iter_mut().for_each(|slot| slot.log_changes(engine, now));
    }

    /// Has the PF driver check its VFs for offences once a second. Returns true if a VF has offended.
    pub(in crate::port) fn watch(&mut self, engine: &mut PortEngine, now: Time) -> bool {
        if now.since(self.watched) < WATCH {
            return false;
        }
        self.watched = now;
        engine.review_claims(now);
        self.log_changes(engine, now);
        let mut judged = false;
        for slot in &mut self.slots {
            let Some(verdict) = slot.judge(engine, now) else { continue };
            judged = true;
            if verdict.action == OffenceAction::Quarantine {
                let because = Some(verdict.offence.name());
                self.flights.write(slot.take_flight(engine.card(), because, now));
            }
        }
        if judged {
            self.shut_disabled(engine, now);
        }
        judged
    }

    /// Returns the time when the VFs were last checked for offences.
    pub(in crate::port) fn watched(&self) -> Time {
        self.watched
    }

    /// Returns the flight recording of a VF.
    pub(in crate::port) fn flight(
        &mut self,
        vf: VfIndex,
        engine: &mut PortEngine,
        now: Time,
    ) -> Option<PendingFlightRecording> {
        let slot = self.slots.iter_mut().find(|slot| slot.function.vf() == Some(vf))?;
        slot.own.flight.count(now, engine.card_mut().counters(slot.function));
        Some(slot.take_flight(engine.card(), None, now))
    }

    /// Sends interrupts to the guests' drivers that have to restart. Returns the time of the next call.
    pub(in crate::port) fn call_drivers(&mut self, engine: &mut PortEngine, now: Time) -> Option<Time> {
        self.slots.iter_mut().filter_map(|slot| slot.call(engine, now)).min()
    }

    /// Returns, for each function, the part of its client's state that the journal does not hold.
    pub(in crate::port) fn states(&self, engine: &PortEngine) -> Vec<ClientState> {
        self.slots.iter().map(|slot| slot.state(engine.reach(slot.function))).collect()
    }
}

/// Returns true if the function's client has received register pages to map.
fn has_pages(slot: &OfferedFunction) -> bool {
    slot.own.pages.as_ref().is_some_and(pages::SharedRegisterPages::are_given)
}
