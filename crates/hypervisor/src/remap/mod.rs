//! Interrupt remapping: a guest programs a message of its own into its device; the device sends another one,
//! which names an entry of the hypervisor's table and leads to a physical vector that no other domain has.
//! So a vector says who owns the interrupt.
//!
//! - [`message`]: what a message says, in the compatibility and the remappable format;
//! - [`vectors`]: physical vectors and their owners;
//! - here: the table, after Intel's VT-d specification, chapter 5.
//!
//! Left out: posted interrupts, interrupts of an I/O APIC, migration of a vector to another CPU.

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

/// Entries at most: a handle has 16 bits.
const MOST_ENTRIES: usize = 1 << 16;

/// Whose a physical vector is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Owner {
    /// The domain.
    pub domain: DomainId,
    /// The function that sends.
    pub rid: Rid,
    /// The vector's number in the function's MSI-X table.
    pub entry: u16,
}

/// An interrupt that has arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Interrupt {
    /// The physical vector that the CPU sees.
    pub vector: PhysicalVector,
    /// Whose it is.
    pub owner: Owner,
    /// What the guest had programmed: its own vector and its own CPU's id.
    pub guest: Request,
}

/// Why a guest's message is not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// The message is no interrupt that a device may ask for.
    #[error("message is not an interrupt with a vector")]
    Message,
    /// No physical vector is left.
    #[error(transparent)]
    Exhausted(#[from] Exhausted),
    /// The table entry is another domain's.
    #[error("the function belongs to another domain")]
    Owner,
    /// No table entry is left.
    #[error("no remapping entry left")]
    Full,
}

/// Why an interrupt was blocked (VT-d 5.1.4).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Blocked {
    /// A message in the compatibility format: a device made up its own.
    Compatibility,
    /// The entry is not there.
    NoEntry,
    /// Another function than the entry's sent it.
    Source,
}

#[derive(Debug, Clone, Copy)]
struct Entry {
    owner: Owner,
    vector: PhysicalVector,
    guest: Request,
}

/// The remapping table and the physical vectors.
#[derive(Debug, Clone)]
pub struct Remapper {
    entries: Vec<Option<Entry>>,
    vectors: VectorSpace,
    blocked: u64,
}

impl Remapper {
    /// An empty table over these vectors.
    #[must_use]
    pub fn new(vectors: VectorSpace) -> Self {
        Self { entries: Vec::new(), vectors, blocked: 0 }
    }

    /// The physical vectors.
    #[must_use]
    pub fn vectors(&self) -> &VectorSpace {
        &self.vectors
    }

    /// Interrupts blocked so far.
    #[must_use]
    pub fn blocked(&self) -> u64 {
        self.blocked
    }

    /// A guest has programmed `message` into a vector of its function: the message that the device is to send
    /// instead. Programmed again, the vector keeps its entry and its physical vector.
    ///
    /// # Errors
    /// [`Refused`]; nothing has changed then.
    pub fn program(&mut self, owner: Owner, message: Message) -> Result<Message, Refused> {
        let guest = Request::from_message(message).ok_or(Refused::Message)?;
        if let Some(handle) = self.handle(owner.rid, owner.entry) {
            let entry = self.entries[handle].as_mut().filter(|entry| entry.owner.domain == owner.domain);
            entry.ok_or(Refused::Owner)?.guest = guest;
            return Ok(Remappable { handle: handle as u16 }.message());
        }
        let handle = self.entries.iter().position(Option::is_none).unwrap_or(self.entries.len());
        if handle >= MOST_ENTRIES {
            return Err(Refused::Full);
        }
        let vector = self.vectors.allocate(owner)?;
        let entry = Some(Entry { owner, vector, guest });
        match self.entries.get_mut(handle) {
            Some(free) => *free = entry,
            None => self.entries.push(entry),
        }
        Ok(Remappable { handle: handle as u16 }.message())
    }

    /// Takes every vector of a function back, as when it is unassigned.
    pub fn release(&mut self, rid: Rid) {
        for slot in &mut self.entries {
            if let Some(entry) = slot.take_if(|entry| entry.owner.rid == rid) {
                self.vectors.free(entry.vector);
            }
        }
    }

    /// A message of a function arrives from the bus.
    ///
    /// # Errors
    /// [`Blocked`]; the interrupt goes nowhere and is counted.
    pub fn arrive(&mut self, rid: Rid, message: Message) -> Result<Interrupt, Blocked> {
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
