//! What a port notes in shared memory, so that a successor can go on with its clients though the process died in the
//! middle of anything.
//!
//! Noted are: each function's client (socket, replies, what was agreed on), its DMA windows and eventfds, its
//! configuration space; the port's software with the policy in force; and the whole port when it is at rest
//! ([`Rest`]). Descriptors are named by number, and kept elsewhere (`vault`). Not noted is what the card does under way:
//! after a death in the middle of a round the card starts as after a reset.
//!
//! # How a torn update is recognised
//! A process that is killed has done everything before some instruction, and nothing after. What belongs together is
//! therefore written beside what counts, and made to count by one store:
//! - A function's [`Progress`] has two places; a number says which one counts, and is written last. So have the port's
//!   software, and the note of one function's configuration beside it: that counts as long as no later software does.
//! - A window or an eventfd carries the number of the step that made it and the one that took it away. It counts if
//!   the step does: what a message has changed counts from the moment in which the message counts as handled.
//! - Bytes that are consumed from a socket are noted before, with the socket's peek offset, which the kernel moves back
//!   in one with consuming them: it says how many are. The first part of a message that has not come whole is held in the
//!   file of replies, and its descriptors are kept, before it is consumed.
//! - The port at rest is marked as valid after it was written, and as invalid before anything else happens.
//!
//! Left out: reading it all again (`adopt`).

mod configuration;
mod function;
mod layout;
mod memory;
mod rest;
#[cfg(test)]
mod tests;

pub(in crate::port) use function::{FunctionJournal, Irq, NOT_KEPT, Noted, Progress, Window};
pub(in crate::port) use rest::Rest;

use host::shared::{SharedMemory, SharedMemoryError};
use layout::{HEADER, MAGIC};
use memory::{get, load, put, store};
use pcie::Function;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

/// Why a predecessor's notes cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// The memory cannot be had.
    #[error(transparent)]
    Memory(#[from] SharedMemoryError),
    /// Another program's, or another version's.
    #[error("the notes of the process before are of another version of softiov")]
    Version,
    /// The journal was made by a version, or for a family, with fewer VFs.
    #[error(
        "the notes of the process before have room for {room} VFs, and the port is to offer {wanted}; offer {room} at \
         most, or restart the host, which takes the port from its guests"
    )]
    Room {
        /// The number of VFs that the journal has room for.
        room: usize,
        /// The number of VFs that the port is to offer.
        wanted: usize,
    },
}

/// A port's notes.
#[derive(Debug)]
pub(in crate::port) struct Journal {
    memory: Arc<SharedMemory>,
    /// The number of VFs that the journal has room for.
    vfs: usize,
}

impl Journal {
    /// Creates an empty journal with room for `vfs` VFs.
    pub(in crate::port) fn new(vfs: usize) -> Result<Self, JournalError> {
        let memory = Arc::new(SharedMemory::new(layout::size(vfs))?);
        put(&memory, HEADER.magic, &[MAGIC]);
        put(&memory, HEADER.next, &[1]);
        Ok(Self { memory, vfs })
    }

    /// Opens the journal that a predecessor left.
    pub(in crate::port) fn adopt(fd: OwnedFd) -> Result<Self, JournalError> {
        let memory = Arc::new(SharedMemory::adopt(fd)?);
        let vfs = layout::vfs(memory.memory().len()).filter(|_| get(&memory, HEADER.magic) == MAGIC);
        Ok(Self { memory, vfs: vfs.ok_or(JournalError::Version)? })
    }

    /// Checks that the journal has room for `wanted` VFs. A journal cannot grow: a port keeps using the one that it opened.
    ///
    /// # Errors
    /// [`JournalError::Room`].
    pub(in crate::port) fn check_room(&self, wanted: usize) -> Result<(), JournalError> {
        let room = self.vfs;
        if wanted <= room { Ok(()) } else { Err(JournalError::Room { room, wanted }) }
    }

    /// The notes on one function, for which there is room.
    pub(in crate::port) fn function(&self, function: Function) -> FunctionJournal {
        FunctionJournal::open(Arc::clone(&self.memory), self.place(function))
    }

    /// Reads the configuration of a function that was noted after the port's software. Returns `None` if the software has the
    /// latest.
    pub(in crate::port) fn configuration(&self, function: Function) -> Option<Vec<u8>> {
        configuration::read(&self.memory, &self.place(function))
    }

    fn place(&self, function: Function) -> layout::Function {
        layout::Function::at(match function {
            Function::Pf => 0,
            Function::Vf(n) => 1 + usize::from(n) % self.vfs,
        })
    }

    /// The port at rest.
    pub(in crate::port) fn rest(&self) -> Rest {
        Rest::new(Arc::clone(&self.memory), layout::PortPlaces::of(self.vfs))
    }

    /// A number for a descriptor, that no other has had.
    pub(in crate::port) fn number(&self) -> u64 {
        let number = get(&self.memory, HEADER.next);
        put(&self.memory, HEADER.next, &[number + 1]);
        number
    }

    /// Counts a successor that begins with these notes; answers how many did so since one has got going.
    pub(in crate::port) fn attempt(&self) -> u64 {
        let attempts = get(&self.memory, HEADER.attempts) + 1;
        put(&self.memory, HEADER.attempts, &[attempts]);
        attempts
    }

    /// The successor has got going.
    pub(in crate::port) fn succeeded(&self) {
        put(&self.memory, HEADER.attempts, &[0]);
    }

    /// Notes the port's software; `false` if it is too long.
    pub(in crate::port) fn note_software(&self, bytes: &[u8]) -> bool {
        let places = layout::PortPlaces::of(self.vfs);
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

    /// The software noted last; nothing if none was.
    pub(in crate::port) fn software(&self) -> Vec<u8> {
        let places = layout::PortPlaces::of(self.vfs);
        let at = places.software[(get(&self.memory, HEADER.software) % 2) as usize];
        let length = get(&self.memory, at).min(places.software_room - 8);
        load(&self.memory, at + 8, length as usize)
    }
}

impl AsFd for Journal {
    /// The memory, to be kept for a successor.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.memory.as_fd()
    }
}
