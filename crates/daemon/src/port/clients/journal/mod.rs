//! Journal of a port: saved state in shared memory. A successor process can resume the port's clients from the
//! journal, even if this process was killed at any instruction.
//!
//! The journal holds the state of each function's client (socket, replies, negotiated capabilities), of its DMA
//! windows and eventfds, and of its configuration space; the port's driver state with the policies in force; and the
//! state of the whole port while it has no work ([`PortSnapshot`]); and the records of packed rings. Saved state refers to descriptors by number, and
//! the vault keeps these (`vault`). The journal does not hold the card's work in progress. After a crash in the middle
//! of a round, the card starts as after a reset.
//!
//! # How a torn update is recognised
//! A process that is killed has executed everything before some instruction, and nothing after it. So each update
//! is written beside the valid data, and one store makes it valid:
//! - A function's [`ClientMessageProgress`] has two copies. A number says which copy is valid, and is written last. The
//!   port's driver state has two copies too. So has the saved PCI configuration of one function, which is valid until
//!   the driver state is saved again.
//! - A window or an eventfd carries the number of the step that added it and of the step that removed it. It is
//!   valid if the step is. So a message's changes become valid at the moment at which the message counts as
//!   handled.
//! - Before bytes are consumed from a socket, their number and the socket's peek offset are saved. The kernel moves
//!   the offset back together with consuming, so it tells how many bytes are consumed. Before the first part of an
//!   incomplete message is consumed, it is held in the reply file, and its descriptors are kept.
//! - The state of the whole port is marked as valid after it was written, and as invalid before the port changes.
//!
//! `adopt` reads the saved state.

pub(in crate::port) mod check;
mod configuration;
mod function;
mod layout;
mod memory;
mod progress;
mod rest;
#[cfg(test)]
mod rewriting;
#[cfg(test)]
mod tests;

pub(in crate::port) use function::{FunctionJournal, SavedClient, SavedDmaWindow, SavedEventfd};
pub(in crate::port) use progress::{ClientMessageProgress, NOT_KEPT};
pub(in crate::port) use rest::PortSnapshot;

use crate::port::engine::ring_records::RingRecords;
use host::shared::{SharedMemory, SharedMemoryError};
use layout::{COUNT_LIMIT, HEADER, MAGIC};
use memory::{get, load, put, store};
use pcie::Function;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

/// Reason why the previous host process's journal cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// The shared memory of a port's journal, which outlives the process, cannot be created or opened.
    #[error(transparent)]
    Memory(#[from] SharedMemoryError),
    /// The shared memory is not a journal of this version.
    #[error("the saved state of the previous host process is of another version of softiov")]
    Version,
    /// A number in the journal is larger than any process counts.
    #[error(
        "the saved state of the previous host process is damaged: a number in it is too large; restart the port"
    )]
    Damaged,
    /// The journal was made with room for fewer VFs, by an earlier version or for another family.
    #[error(
        "the saved state of the previous host process has room for {room} VFs, and the configuration has \
         {wanted}; set vfs to at most {room}, or restart the host, which takes the port from its guests"
    )]
    Room {
        /// Number of VFs that the journal has room for.
        room: usize,
        /// Number of VFs that the port is to offer.
        wanted: usize,
    },
}

/// Journal of a port: shared memory with saved state, which the successor process reads.
#[derive(Debug)]
pub(in crate::port) struct PortJournal {
    memory: Arc<SharedMemory>,
    /// Number of VFs that the journal has room for.
    vfs: usize,
}

impl PortJournal {
    /// Creates an empty journal with room for `vfs` VFs.
    pub(in crate::port) fn new(vfs: usize) -> Result<Self, JournalError> {
        let memory = Arc::new(SharedMemory::new(layout::size(vfs))?);
        put(&memory, HEADER.magic, &[MAGIC]);
        put(&memory, HEADER.next, &[1]);
        Ok(Self { memory, vfs })
    }

    /// Opens the journal that the previous host process left.
    pub(in crate::port) fn adopt(fd: OwnedFd) -> Result<Self, JournalError> {
        let memory = Arc::new(SharedMemory::adopt(fd)?);
        let vfs = layout::vfs(memory.memory().len()).filter(|_| get(&memory, HEADER.magic) == MAGIC);
        let vfs = vfs.ok_or(JournalError::Version)?;
        let counts = [HEADER.next, HEADER.attempts, HEADER.software, HEADER.highest];
        if counts.into_iter().any(|count| get(&memory, count) >= COUNT_LIMIT) {
            return Err(JournalError::Damaged);
        }
        Ok(Self { memory, vfs })
    }

    /// Checks that the journal has room for `wanted` VFs. A journal cannot grow: a port keeps using the journal that
    /// it opened.
    ///
    /// # Errors
    /// [`JournalError::Room`].
    pub(in crate::port) fn check_room(&self, wanted: usize) -> Result<(), JournalError> {
        let room = self.vfs;
        if wanted <= room { Ok(()) } else { Err(JournalError::Room { room, wanted }) }
    }

    /// Opens the part of the journal that holds the state of one function's client. The journal must have room for the
    /// function.
    pub(in crate::port) fn function(&self, function: Function) -> FunctionJournal {
        FunctionJournal::open(Arc::clone(&self.memory), self.place(function))
    }

    /// Returns the records of a function's packed rings. Their writer keeps them consistent, so no step of a client makes
    /// them valid.
    pub(in crate::port) fn ring_records(&self, function: Function) -> RingRecords {
        RingRecords::new(Arc::clone(&self.memory), self.place(function).records)
    }

    /// Reads the PCI configuration of a function that was saved after the port's driver state. Returns `None` if there
    /// is none.
    pub(in crate::port) fn configuration(&self, function: Function) -> Option<Vec<u8>> {
        configuration::read(&self.memory, &self.place(function))
    }

    fn place(&self, function: Function) -> layout::FunctionJournalOffsets {
        layout::FunctionJournalOffsets::at(match function {
            Function::Pf => 0,
            Function::Vf(n) => 1 + usize::from(n) % self.vfs,
        })
    }

    /// Opens the part of the journal with the saved state of the whole port.
    pub(in crate::port) fn rest(&self) -> PortSnapshot {
        PortSnapshot::new(Arc::clone(&self.memory), layout::PortJournalOffsets::of(self.vfs))
    }

    /// Returns a new number under which to keep a file descriptor for the successor process. Numbers are never used
    /// twice.
    pub(in crate::port) fn number(&self) -> u64 {
        let number = get(&self.memory, HEADER.next);
        put(&self.memory, HEADER.next, &[number + 1]);
        number
    }

    /// Counts an attempt to continue from this journal. Returns the number of attempts since the last
    /// [`Self::succeeded`].
    pub(in crate::port) fn attempt(&self) -> u64 {
        let attempts = get(&self.memory, HEADER.attempts) + 1;
        put(&self.memory, HEADER.attempts, &[attempts]);
        attempts
    }

    /// Records that this process runs with the journal's state, which resets the number of attempts.
    pub(in crate::port) fn succeeded(&self) {
        put(&self.memory, HEADER.attempts, &[0]);
    }

    /// Saves the port's driver state (drivers and policies). Returns `false` if the state is too long.
    pub(in crate::port) fn note_software(&self, bytes: &[u8]) -> bool {
        let places = layout::PortJournalOffsets::of(self.vfs);
        if bytes.len() as u64 > places.software_room - 8 {
            return false;
        }
        let (before, highest) = (get(&self.memory, HEADER.software), get(&self.memory, HEADER.highest));
        let number = configuration::next_software(before, highest);
        put(&self.memory, HEADER.highest, &[number]);
        let at = places.software[(number % 2) as usize];
        store(&self.memory, at + 8, bytes);
        put(&self.memory, at, &[bytes.len() as u64]);
        put(&self.memory, HEADER.software, &[number]);
        true
    }

    /// Returns the port's driver state (drivers and policies) that was saved last, or an empty vector.
    pub(in crate::port) fn software(&self) -> Vec<u8> {
        let places = layout::PortJournalOffsets::of(self.vfs);
        let at = places.software[(get(&self.memory, HEADER.software) % 2) as usize];
        let length = get(&self.memory, at).min(places.software_room - 8);
        load(&self.memory, at + 8, length as usize)
    }
}

impl AsFd for PortJournal {
    /// Returns the file descriptor of the journal's memory, to be kept for the successor process.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.memory.as_fd()
    }
}
