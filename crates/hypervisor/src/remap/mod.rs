//! Interrupt remapping of MSI messages to physical vectors. A guest programs its message into its device, but the
//! device sends another one, which names an entry of the hypervisor's table. The entry leads to a physical vector
//! that no other domain shares, so a vector identifies its owner.
//!
//! - [`message`]: messages in the compatibility and the remappable format;
//! - [`vectors`]: physical vectors and their owners;
//! - here: the table (Intel VT-d specification, chapter 5).
//!
//! Posted interrupts, I/O APIC interrupts and migration of a vector to another CPU are not supported.

pub mod message;
#[cfg(test)]
mod tests;
pub mod vectors;

pub use message::{Remappable, Request};
pub use vectors::{Exhausted, PhysicalVector, VectorSpace};

use crate::domain::DomainId;
use alloc::vec::Vec;
use pcie::Rid;
use pcie::msix::Message;

/// Entries of the remapping table, at most: a handle has 16 bits.
const MAX_ENTRIES: usize = 1 << 16;

/// Owner of a physical interrupt vector.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Owner {
    /// Domain that owns the vector.
    pub domain: DomainId,
    /// Routing id of the function that sends the vector's interrupts.
    pub rid: Rid,
    /// Index of the vector in the function's MSI-X table.
    pub entry: u16,
}

/// Interrupt that has arrived at a CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Interrupt {
    /// Physical vector seen by the CPU.
    pub vector: PhysicalVector,
    /// Owner of the vector.
    pub owner: Owner,
    /// Vector and destination programmed by the guest.
    pub guest: Request,
}

/// Error of remapping a guest's message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum RemapError {
    /// The message is not an interrupt that a device may request.
    #[error("the device's message is not an interrupt with a vector")]
    Message,
    /// No physical vector is free.
    #[error(transparent)]
    Exhausted(#[from] Exhausted),
    /// The table entry belongs to another domain.
    #[error("the interrupt's function belongs to another domain")]
    Owner,
    /// The interrupt remapping table is full.
    #[error("the interrupt-remapping table has no free entry")]
    Full,
}

/// Reason why an interrupt was blocked (VT-d 5.1.4).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Blocked {
    /// The message has the compatibility format, so the device forged it.
    Compatibility,
    /// The interrupt remapping entry does not exist.
    NoEntry,
    /// The sender is not the entry's function.
    Source,
}

#[derive(Debug, Clone, Copy)]
struct Entry {
    owner: Owner,
    vector: PhysicalVector,
    guest: Request,
}

/// Interrupt remapping table and physical vectors.
#[derive(Debug, Clone)]
pub struct Remapper {
    entries: Vec<Option<Entry>>,
    vectors: VectorSpace,
    blocked: u64,
}

impl Remapper {
    /// Creates an empty table over these vectors.
    #[must_use]
    pub fn new(vectors: VectorSpace) -> Self {
        Self { entries: Vec::new(), vectors, blocked: 0 }
    }

    /// Returns the machine's physical vectors.
    #[must_use]
    pub fn vectors(&self) -> &VectorSpace {
        &self.vectors
    }

    /// Returns the number of interrupts blocked so far.
    #[must_use]
    pub fn blocked(&self) -> u64 {
        self.blocked
    }

    /// Programs a guest's message for a vector of its function. Returns the message that the device sends
    /// instead. A vector programmed again keeps its entry and physical vector.
    ///
    /// # Errors
    /// [`RemapError`], with nothing changed.
    pub fn program(&mut self, owner: Owner, message: Message) -> Result<Message, RemapError> {
        let guest = Request::from_message(message).ok_or(RemapError::Message)?;
        if let Some(handle) = self.handle(owner.rid, owner.entry) {
            let entry = self.entries[handle].as_mut().filter(|entry| entry.owner.domain == owner.domain);
            entry.ok_or(RemapError::Owner)?.guest = guest;
            return Ok(Remappable { handle: handle as u16 }.message());
        }
        let handle = self.entries.iter().position(Option::is_none).unwrap_or(self.entries.len());
        if handle >= MAX_ENTRIES {
            return Err(RemapError::Full);
        }
        let vector = self.vectors.allocate(owner)?;
        let entry = Some(Entry { owner, vector, guest });
        match self.entries.get_mut(handle) {
            Some(free) => *free = entry,
            None => self.entries.push(entry),
        }
        Ok(Remappable { handle: handle as u16 }.message())
    }

    /// Releases all vectors of a function, as when it is unassigned.
    pub fn release(&mut self, rid: Rid) {
        for slot in &mut self.entries {
            if let Some(entry) = slot.take_if(|entry| entry.owner.rid == rid) {
                self.vectors.free(entry.vector);
            }
        }
    }

    /// Translates the interrupt message of a function into an interrupt, or blocks it.
    ///
    /// # Errors
    /// [`Blocked`]; the interrupt is dropped and counted.
    pub fn deliver(&mut self, rid: Rid, message: Message) -> Result<Interrupt, Blocked> {
        let found = self.find(rid, message);
        self.blocked += u64::from(found.is_err());
        found
    }

    fn find(&self, rid: Rid, message: Message) -> Result<Interrupt, Blocked> {
        let Remappable { handle } = Remappable::from_message(message).ok_or(Blocked::Compatibility)?;
        let entry = self.entries.get(usize::from(handle)).and_then(Option::as_ref).ok_or(Blocked::NoEntry)?;
        if entry.owner.rid != rid {
            return Err(Blocked::Source);
        }
        Ok(Interrupt { vector: entry.vector, owner: entry.owner, guest: entry.guest })
    }

    fn handle(&self, rid: Rid, entry: u16) -> Option<usize> {
        let is = |slot: &Option<Entry>| slot.is_some_and(|e| e.owner.rid == rid && e.owner.entry == entry);
        self.entries.iter().position(is)
    }
}
