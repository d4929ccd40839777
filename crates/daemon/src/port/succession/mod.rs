//! Succession of a port: state that this process leaves for its successor process, which replaces it after an upgrade
//! or a crash, and state that the previous host process has left.
//!
//! | module | content |
//! |---|---|
//! | `keeping` | each function's client, as [`ClientStateSaver`]: descriptors in the vault, their purpose in the journal |
//! | `notes` | saved driver state of the port, and one function's configuration |
//! | `trust`, `inheritance` | how much of a predecessor's saved state is used; the card made from it |
//! | `adopt` | a predecessor's clients, resumed |
//! | `counters` | counters that never fall |
//! | `addresses` | addresses that VFs hold, and those of stations at the uplink |
//! | `carried` | memory of the last two |
//!
//! `journal` and `state` define the format of saved state; `vault` leads to the keeper outside of this process.

mod addresses;
mod adopt;
mod carried;
mod counters;
mod inheritance;
mod keeping;
mod notes;
mod trust;

#[cfg(test)]
pub(in crate::port) use trust::JOURNAL;
pub(in crate::port) use trust::{SavedStateTrust, check_versions};

use super::clients::journal::{JournalError, PortJournal, PortSnapshot};
use super::clients::slot::OfferedFunction;
use super::clients::successor::ClientStateSaver;
use super::engine::PortEngine;
use super::engine::bus::GuestBus;
use super::engine::error::PortEngineStartError;
use super::engine::family::{InheritedCard, PortCard};
use super::engine::ring_records::RingRecords;
use crate::config::PortConfig;
use crate::control::export::ExportedCounters;
use crate::control::status::PortStatus;
use crate::state::port::ClientState;
use crate::state::{HeldAddresses, SavedState, SavedStations};
use crate::totals::{MailboxAnswerTotals, PortCounterTotals};
use crate::vault::PortFileDescriptorStore;
use addresses::AddressRecords;
use adopt::ClientAdopter;
use counters::PredecessorCounters;
use host::poll::Poller;
use host::socket::StreamSocket;
use host::worker::BlockingWorker;
use i82576::Time;
use keeping::JournalStateSaver;
use pcie::{Function, VfIndex};
use std::sync::Arc;

/// Saved state of this port for the successor process, and trust in the state that the previous host process saved.
#[derive(Debug)]
pub(in crate::port) struct PortHandOverState {
    journal: Arc<PortJournal>,
    rest: PortSnapshot,
    vault: PortFileDescriptorStore,
    counters: PredecessorCounters,
    addresses: AddressRecords,
    trust: SavedStateTrust,
    /// True if the card is exactly as the previous host process left it, so that drivers need not restart.
    exact: bool,
    /// True while the port continues from a previous process and has not completed a round of its loop yet.
    unproven: bool,
}

impl PortHandOverState {
    /// Opens the journal that the previous host process left, or creates a new one.
    pub(in crate::port) fn open(
        config: &PortConfig,
        vault: PortFileDescriptorStore,
    ) -> Result<Self, JournalError> {
        let (journal, trust) = trust::open(config, &vault)?;
        Ok(Self {
            rest: journal.rest(),
            journal: Arc::new(journal),
            vault,
            counters: PredecessorCounters::default(),
            addresses: AddressRecords::default(),
            trust,
            exact: false,
            unproven: trust != SavedStateTrust::Nothing,
        })
    }

    /// Returns the store of the port's kept file descriptors.
    pub(in crate::port) fn vault(&self) -> &PortFileDescriptorStore {
        &self.vault
    }

    /// Creates the port's card from that part of the previous host process's saved state that is trusted.
    pub(in crate::port) fn card(
        &mut self,
        config: &PortConfig,
        link: bool,
        bus: &mut GuestBus,
        now: Time,
    ) -> Result<InheritedCard, PortEngineStartError> {
        let (card, exact) = inheritance::card(config, link, (&self.journal, self.trust), bus, now)?;
        self.exact = exact;
        Ok(card)
    }

    /// Returns the saver of a function's client. `worker` releases file descriptors, since the keeper process may
    /// block.
    pub(in crate::port) fn of_client(
        &self,
        function: Function,
        worker: BlockingWorker,
    ) -> Box<dyn ClientStateSaver> {
        Box::new(JournalStateSaver::new(&self.journal, function, &self.vault, worker))
    }

    /// Returns the records of a function's packed rings, which the previous host process may have left.
    pub(in crate::port) fn ring_records(&self, function: Function) -> RingRecords {
        self.journal.ring_records(function)
    }

    /// Resumes the previous host process's client of a function, if there is one. If the client cannot be resumed,
    /// resets the function and returns the client's socket.
    pub(in crate::port) fn adopt(
        &self,
        slot: &mut OfferedFunction,
        engine: &mut PortEngine,
        (poller, place): (&Poller, usize),
        now: Time,
    ) -> Option<StreamSocket> {
        if !self.trust.has_clients() {
            return None;
        }
        let function = slot.function;
        let had_client = slot.own.successor.progress().stream != 0;
        let is_virtio = engine.card().is_virtio(function);
        let orphan =
            ClientAdopter { poller, reach: engine.reach_mut(function), is_virtio, now }.adopt(place, slot);
        if had_client && slot.connection().is_none() {
            engine.card_mut().reset_for_next_client(function);
            slot.own.successor.note_configuration(engine.card_mut());
        }
        slot.resume_driver(engine.card_mut(), self.exact, now);
        orphan
    }

    /// Releases file descriptors that the previous host process kept and no function needs. Returns the sockets of
    /// clients whose function is gone or that cannot be resumed.
    pub(in crate::port) fn forget_others(&self, slots: &[OfferedFunction]) -> Vec<StreamSocket> {
        let needed: Vec<u64> = slots.iter().flat_map(|slot| slot.own.successor.needed()).collect();
        let lost = self.vault.forget_others(&needed);
        lost.into_iter().filter_map(|fd| StreamSocket::adopt(fd).ok()).collect()
    }

    /// Checks that the journal has room for `vfs` VFs.
    pub(in crate::port) fn check_room(&self, vfs: usize) -> Result<(), JournalError> {
        self.journal.check_room(vfs)
    }

    /// Saves the port's driver state, which includes the policies, for the successor process.
    pub(in crate::port) fn note_software(&self, card: &mut dyn PortCard) {
        notes::note_software(&self.journal, card);
    }

    /// Saves the state of the whole port for a successor process. [`Self::disturb`] must precede the port's next
    /// change. Returns `false` if the state cannot be saved.
    pub(in crate::port) fn note_all(
        &mut self,
        engine: &mut PortEngine,
        (watched, functions): (Time, Vec<ClientState>),
        now: Time,
    ) -> bool {
        // The port rests, so a flood of source addresses does not make it save in each round.
        self.addresses.save_stations(engine, now);
        // A successor of an earlier version does not read the saved states of single functions, so the whole driver
        // state is saved.
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

    /// Returns true if the saved state of the whole port is valid.
    pub(in crate::port) fn is_at_rest(&self) -> bool {
        self.rest.is_valid()
    }

    /// Makes the saved state of the whole port invalid, before a change of the port.
    pub(in crate::port) fn disturb(&mut self) {
        self.rest.disturb();
    }

    /// Records that the port works: its loop has completed a round, or the successor process has refused to take over
    /// the port.
    pub(in crate::port) fn note_working(&mut self) {
        self.unproven = false;
        self.journal.succeeded();
    }

    /// Records that the port has completed a round of its loop, or hands over, which proves that it works. Later calls do nothing.
    pub(in crate::port) fn note_round(&mut self) {
        if self.unproven {
            self.note_working();
        }
    }

    /// Returns the addresses that the VFs have held in the previous host process, if the port continues from it.
    pub(in crate::port) fn held_addresses(&self) -> HeldAddresses {
        self.saved_addresses(addresses::HELD).unwrap_or_default()
    }

    /// Returns the stations at the uplink that the previous host process knew, if the port continues from it.
    pub(in crate::port) fn stations(&self) -> Option<SavedStations> {
        self.saved_addresses(addresses::STATIONS)
    }

    fn saved_addresses<T: SavedState>(&self, name: &str) -> Option<T> {
        self.trust.has_addresses().then(|| addresses::read_saved(name, &self.vault)).flatten()
    }

    /// Saves the addresses that the VFs hold and those of stations at the uplink, if they have changed. Stations wait for some seconds
    /// after the last save.
    pub(in crate::port) fn save_addresses(&mut self, engine: &PortEngine, now: Time) {
        self.addresses.save(engine, now);
    }

    /// Opens the memory of saved addresses.
    pub(in crate::port) fn open_addresses(&mut self) {
        self.addresses.open(&self.vault);
    }

    /// Opens the memory of saved counters. Returns the counters that the previous host process saved.
    pub(in crate::port) fn open_counters(&mut self) -> Option<PortCounterTotals> {
        self.counters.open(self.vault.port(), &self.vault)
    }

    /// Continues the counters `noted` that the previous host process saved. `status` and `answers` hold those of this
    /// process.
    pub(in crate::port) fn carry_counters_over(
        &mut self,
        noted: PortCounterTotals,
        status: &PortStatus,
        uplink: String,
        answers: MailboxAnswerTotals,
    ) {
        self.counters.carry_over(noted, &PortCounterTotals::of(status, uplink, answers));
    }

    /// Continues the counters of a VF from those of another host's VF. `own` holds the counters of this process.
    pub(in crate::port) fn import_counters(
        &mut self,
        vf: VfIndex,
        counters: ExportedCounters,
        own: &PortStatus,
    ) {
        self.counters.import(vf, counters, own);
    }

    /// Adds the counters of earlier processes to a port's status, and saves the sums for the successor process.
    pub(in crate::port) fn publish(
        &self,
        status: &mut PortStatus,
        uplink: String,
        answers: MailboxAnswerTotals,
    ) {
        self.counters.add_to(status);
        self.counters.note(&PortCounterTotals::of(status, uplink, answers));
    }

    /// Resets the uplink's counts of earlier processes, because the port has another uplink now.
    pub(in crate::port) fn forget_uplink_counters(&mut self) {
        self.counters.forget_uplink();
    }
}
