//! Counters that never fall: what a port last published is noted in memory of its own, and a successor adds what its own
//! counters lack of it. After a hand-over that is all that was counted; after a crash, all that anybody had read.
//!
//! The memory is apart from the journal, so that notes of another version of it cost no counter. Left out: the counters
//! (`state::totals`).

use super::Port;
use crate::control::status::PortStatus;
use crate::state::{self, Totals};
use crate::vault::PortVault;
use host::shared::SharedMemory;
use std::os::fd::AsFd;

/// Name of the memory in the vault.
const NAME: &str = "counters";
/// Bytes for one note: 64 VFs with every reason to refuse a request take half of it.
const ROOM: u64 = 256 << 10;
/// Two notes, behind a word that says which counts. A process that is killed while it writes leaves the other one whole.
const PLACES: [u64; 2] = [4096, 4096 + ROOM];
/// Bytes of the length before a note.
const LENGTH: u64 = 8;

/// Counters of predecessors, and the place where those of a successor's predecessor are noted.
#[derive(Debug)]
pub(super) struct Carried {
    /// Counters of predecessors that this process does not count itself.
    predecessors: Totals,
    /// Memory for a successor; `None` if there was none to have, and a successor counts from 0.
    notes: Option<Notes>,
}

#[derive(Debug)]
struct Notes(SharedMemory);

impl Carried {
    /// Opens the notes that a predecessor has left, or new ones. Nothing is carried over before [`Port::count_on`].
    pub(super) fn open(vault: &PortVault) -> (Self, Option<Totals>) {
        let left = vault.copy_named(NAME).and_then(|fd| SharedMemory::adopt(fd).ok()).map(Notes);
        let noted = left.as_ref().and_then(Notes::read);
        let notes = left.or_else(|| {
            let made = SharedMemory::new(PLACES[1] + ROOM);
            if let Err(error) = &made {
                tracing::error!(port = vault.port(), %error, "counters would not outlive this process");
            }
            let memory = made.ok()?;
            vault.keep_named(NAME, memory.as_fd());
            Some(Notes(memory))
        });
        (Self { predecessors: Totals::default(), notes }, noted)
    }
}

impl Notes {
    fn read(&self) -> Option<Totals> {
        let place = PLACES[usize::try_from(self.word(0).checked_sub(1)?).ok()?.min(1)];
        let length = self.word(place).min(ROOM - LENGTH);
        let mut bytes = vec![0; usize::try_from(length).ok()?];
        self.0.memory().read(place + LENGTH, &mut bytes).ok()?;
        match state::read(&bytes) {
            Ok(totals) => Some(totals),
            Err(error) => {
                tracing::warn!(%error, "counters begin at 0");
                None
            }
        }
    }

    fn write(&self, totals: &Totals) {
        let Ok(bytes) = state::write(totals) else { return };
        let length = bytes.len() as u64;
        if length > ROOM - LENGTH {
            return;
        }
        // The place that does not count: 1 and 2 name places, 0 none.
        let next = if self.word(0) == 1 { 2 } else { 1 };
        let place = PLACES[next - 1];
        let memory = self.0.memory();
        let written =
            memory.write(place + LENGTH, &bytes).and_then(|()| memory.write(place, &length.to_ne_bytes()));
        if written.is_ok() {
            let _ = memory.write(0, &(next as u64).to_ne_bytes());
        }
    }

    fn word(&self, at: u64) -> u64 {
        let mut word = [0; 8];
        // The place is inside.
        let _ = self.0.memory().read(at, &mut word);
        u64::from_ne_bytes(word)
    }
}

impl Port {
    /// Goes on from the counters that a predecessor has noted.
    pub(super) fn count_on(&mut self, noted: Option<Totals>) {
        let Some(noted) = noted else { return };
        self.answers.resume(&noted.answers);
        let status = self.uncarried_status();
        self.carried.predecessors = noted.beyond(&self.totals(&status));
    }

    /// Adds predecessors' counters to a status, and notes what is published.
    pub(super) fn publish(&self, status: &mut PortStatus) {
        self.carried.predecessors.add_to(status);
        if let Some(notes) = &self.carried.notes {
            notes.write(&self.totals(status));
        }
    }

    /// The port has another uplink, which counts from 0.
    pub(super) fn forget_uplink_totals(&mut self) {
        self.carried.predecessors.forget_uplink();
    }

    fn totals(&self, status: &PortStatus) -> Totals {
        Totals::of(status, self.uplink.configured(), self.answers.save())
    }
}
