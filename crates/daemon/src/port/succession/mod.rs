//! Succession of a port: state that this process leaves for a successor, and state that its predecessor has left.
//!
//! | module | content |
//! |---|---|
//! | `keeping` | each function's client, as [`Successor`]: descriptors in the vault, and notes on them |
//! | `notes` | the software of the port, and one function's configuration |
//! | `trust`, `inheritance` | how much of a predecessor's notes is used; the card made of them |
//! | `adopt` | a predecessor's clients, resumed |
//! | `counters`, `carried` | counters that never fall |
//!
//! `journal` and `state` define the format of the notes; `vault` leads to the keeper outside of this process.

mod adopt;
mod carried;
mod counters;
mod inheritance;
mod keeping;
mod notes;
mod trust;

pub(in crate::port) use trust::Trust;

use super::clients::journal::{Journal, JournalError, NoteAtRest};
use super::clients::slot::Slot;
use super::clients::successor::Successor;
use super::engine::Engine;
use super::engine::bus::LiveBus;
use super::engine::error::EngineError;
use super::engine::family::{Family, Inherited};
use crate::config::PortConfig;
use crate::control::status::PortStatus;
use crate::state::port::ClientState;
use crate::totals::{AnswerTotals, Totals};
use crate::vault::PortVault;
use adopt::Adopter;
use counters::Counters;
use host::poll::Poller;
use host::socket::Stream;
use host::worker::Worker;
use i82576::Time;
use keeping::Keeping;
use pcie::Function;
use std::sync::Arc;

/// State that this port saves for the next process, and trust in the state that the previous process saved.
#[derive(Debug)]
pub(in crate::port) struct Succession {
    journal: Arc<Journal>,
    rest: NoteAtRest,
    vault: PortVault,
    counters: Counters,
    trust: Trust,
    /// The card is exactly as the previous process left it, and drivers need not restart.
    exact: bool,
    /// The port continues from a previous process and has not completed a round yet.
    unproven: bool,
}

impl Succession {
    /// Opens the journal that the previous process left, or a new one.
    pub(in crate::port) fn open(config: &PortConfig, vault: PortVault) -> Result<Self, JournalError> {
        let (journal, trust) = trust::open(config, &vault)?;
        Ok(Self {
            rest: journal.rest(),
            journal: Arc::new(journal),
            vault,
            counters: Counters::default(),
            trust,
            exact: false,
            unproven: trust != Trust::Nothing,
        })
    }

    /// Returns the port's kept descriptors.
    pub(in crate::port) fn vault(&self) -> &PortVault {
        &self.vault
    }

    /// Creates the port's card, with as much of the previous process's saved state as is trusted.
    pub(in crate::port) fn card(
        &mut self,
        config: &PortConfig,
        link: bool,
        bus: &mut LiveBus,
        now: Time,
    ) -> Result<Inherited, EngineError> {
        let (card, exact) = inheritance::card(config, link, (&self.journal, self.trust), bus, now)?;
        self.exact = exact;
        Ok(card)
    }

    /// Returns the saved state of a function's client for the next process. `worker` releases descriptors, since the
    /// keeper may block.
    pub(in crate::port) fn of_client(&self, function: Function, worker: Worker) -> Box<dyn Successor> {
        Box::new(Keeping::new(&self.journal, function, &self.vault, worker))
    }

    /// Resumes the previous process's client of a function, if there is one. If the client cannot be resumed, resets
    /// the function and returns the client's socket.
    pub(in crate::port) fn adopt(
        &self,
        slot: &mut Slot,
        engine: &mut Engine,
        (poller, token): (&Poller, u64),
        now: Time,
    ) -> Option<Stream> {
        if !self.trust.has_clients() {
            return None;
        }
        let function = slot.function;
        let had_client = slot.own.successor.progress().stream != 0;
        let orphan = Adopter { poller, reach: engine.reach_mut(function), now }.adopt(token, slot);
        if had_client && slot.connection().is_none() {
            engine.card_mut().reset_function(function);
            slot.own.successor.note_configuration(engine.card_mut());
        }
        slot.resume_driver(engine.card_mut(), self.exact, now);
        orphan
    }

    /// Releases descriptors that the previous process kept and no function needs. Returns the sockets of clients whose
    /// function is gone or that cannot be resumed.
    pub(in crate::port) fn forget_others(&self, slots: &[Slot]) -> Vec<Stream> {
        let needed: Vec<u64> = slots.iter().flat_map(|slot| slot.own.successor.needed()).collect();
        let lost = self.vault.forget_others(&needed);
        lost.into_iter().filter_map(|fd| Stream::adopt(fd).ok()).collect()
    }

    /// Checks that the journal has room for `vfs` VFs.
    pub(in crate::port) fn check_room(&self, vfs: usize) -> Result<(), JournalError> {
        self.journal.check_room(vfs)
    }

    /// Saves the state of the port's drivers and its policy.
    pub(in crate::port) fn note_software(&self, card: &mut dyn Family) {
        notes::note_software(&self.journal, card);
    }

    /// Saves the whole port for a successor. [`Self::disturb`] must precede the port's next change. Returns `false` if
    /// the state cannot be saved.
    pub(in crate::port) fn note_all(
        &mut self,
        engine: &mut Engine,
        (watched, functions): (Time, Vec<ClientState>),
        now: Time,
    ) -> bool {
        // A successor of an earlier version does not read the notes of single functions, so the software is noted
        // whole.
        self.note_software(engine.card_mut());
        match engine.save_all(watched, functions, now) {
            Ok(bytes) => self.rest.note(&bytes),
            Err(error) => {
                tracing::error!(
                    port = self.vault.port(),
                    %error,
                    "cannot save the port's state for a hand-over"
                );
                false
            }
        }
    }

    /// Returns whether the saved state of the whole port is valid.
    pub(in crate::port) fn is_at_rest(&self) -> bool {
        self.rest.is_valid()
    }

    /// Makes the saved state of the whole port void, before a change of the port.
    pub(in crate::port) fn disturb(&mut self) {
        self.rest.disturb();
    }

    /// Records that the port works: it has completed a round, or the next process has refused it.
    pub(in crate::port) fn note_working(&mut self) {
        self.unproven = false;
        self.journal.succeeded();
    }

    /// Records that the port works, unless that is recorded already.
    pub(in crate::port) fn note_round(&mut self) {
        if self.unproven {
            self.note_working();
        }
    }

    /// Opens the counters that the previous process has saved. Returns the counters that a predecessor saved.
    pub(in crate::port) fn open_counters(&mut self) -> Option<Totals> {
        self.counters.open(self.vault.port(), &self.vault)
    }

    /// Continues the previous process's counters. `status` and `answers` hold those of this process.
    pub(in crate::port) fn carry_counters_over(
        &mut self,
        noted: Totals,
        status: &PortStatus,
        uplink: String,
        answers: AnswerTotals,
    ) {
        self.counters.carry_over(noted, &Totals::of(status, uplink, answers));
    }

    /// Adds the counters of earlier processes to a status, and saves the sums for the next process.
    pub(in crate::port) fn publish(&self, status: &mut PortStatus, uplink: String, answers: AnswerTotals) {
        self.counters.add_to(status);
        self.counters.note(&Totals::of(status, uplink, answers));
    }

    /// Restarts the uplink's counters at 0, because the port has another uplink.
    pub(in crate::port) fn forget_uplink_counters(&mut self) {
        self.counters.forget_uplink();
    }
}
