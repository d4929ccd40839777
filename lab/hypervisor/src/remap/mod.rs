//! Interrupt remapping of MSI messages to physical interrupt vectors. A guest programs its message into its device, but
//! the device sends another message, which names an entry of the hypervisor's table. The entry leads to a physical
//! vector that no other domain shares, so a vector identifies its owner.
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

pub use message::{GuestInterrupt, RemappableInterruptMessage};
pub use vectors::{PhysicalVector, PhysicalVectorSpace, VectorsExhausted};

use crate::domain::DomainId;
use alloc::vec::Vec;
use pcie::Rid;
use pcie::msix::InterruptMessage;

/// Maximum number of entries of the interrupt remapping table: a handle has 16 bits.
const MAX_ENTRIES: usize = 1 << 16;

/// Owner of a physical interrupt vector.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VectorOwner {
    /// Domain that owns the physical vector.
    pub domain: DomainId,
    /// Routing id of the function that sends the vector's interrupts.
    pub rid: Rid,
    /// Index of the vector in the function's MSI-X table.
    pub entry: u16,
}

/// Interrupt of a device as it arrives at a CPU after remapping.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RemappedInterrupt {
    /// Physical interrupt vector seen by the CPU.
    pub vector: PhysicalVector,
    /// Owner of the physical vector.
    pub owner: VectorOwner,
    /// Interrupt vector and destination programmed by the guest.
    pub guest: GuestInterrupt,
}

/// Error of remapping a guest's interrupt message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum InterruptRemapError {
    /// The message is not an interrupt that a device may request.
    #[error("the device's message is not an interrupt in compatibility format with a vector from 16 to 255")]
    Message,
    /// No physical interrupt vector is free for the device.
    #[error(transparent)]
    Exhausted(#[from] VectorsExhausted),
    /// The remapping table entry belongs to another domain.
    #[error("the interrupt's function belongs to another domain")]
    Owner,
    /// The interrupt remapping table is full.
    #[error("the interrupt-remapping table has no free entry")]
    Full,
}

/// Reason why the remapping table blocked a device's interrupt (VT-d 5.1.4).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InterruptBlockReason {
    /// The message has the compatibility format, so the device did not get it from the hypervisor.
    Compatibility,
    /// The interrupt remapping entry does not exist.
    NoEntry,
    /// The sender is not the function that owns the remapping entry.
    Source,
}

#[derive(Debug, Clone, Copy)]
struct RemappingTableEntry {
    owner: VectorOwner,
    vector: PhysicalVector,
    guest: GuestInterrupt,
}

/// Interrupt remapping table, with the physical vectors that its entries lead to.
#[derive(Debug, Clone)]
pub struct InterruptRemapper {
    entries: Vec<Option<RemappingTableEntry>>,
    vectors: PhysicalVectorSpace,
    blocked: u64,
}

impl InterruptRemapper {
    /// Creates an empty interrupt remapping table that allocates from `vectors`.
    #[must_use]
    pub fn new(vectors: PhysicalVectorSpace) -> Self {
        Self { entries: Vec::new(), vectors, blocked: 0 }
    }

    /// Returns the machine's physical interrupt vectors.
    #[must_use]
    pub fn vectors(&self) -> &PhysicalVectorSpace {
        &self.vectors
    }

    /// Returns the number of interrupts blocked so far.
    #[must_use]
    pub fn blocked(&self) -> u64 {
        self.blocked
    }

    /// Programs a guest's message for an MSI-X vector of its function. Returns the message that the device sends
    /// instead. A vector programmed again keeps its entry and physical vector.
    ///
    /// # Errors
    /// [`InterruptRemapError`], with nothing changed.
    pub fn program(
        &mut self,
        owner: VectorOwner,
        message: InterruptMessage,
    ) -> Result<InterruptMessage, InterruptRemapError> {
        let guest = GuestInterrupt::from_message(message).ok_or(InterruptRemapError::Message)?;
        if let Some(handle) = self.handle(owner.rid, owner.entry) {
            let entry = self.entries[handle].as_mut().filter(|entry| entry.owner.domain == owner.domain);
            entry.ok_or(InterruptRemapError::Owner)?.guest = guest;
            return Ok(RemappableInterruptMessage { handle: handle as u16 }.message());
        }
        let handle = self.entries.iter().position(Option::is_none).unwrap_or(self.entries.len());
        if handle >= MAX_ENTRIES {
            return Err(InterruptRemapError::Full);
        }
        let vector = self.vectors.allocate(owner)?;
        let entry = Some(RemappingTableEntry { owner, vector, guest });
        match self.entries.get_mut(handle) {
            Some(free) => *free = entry,
            None => self.entries.push(entry),
        }
        Ok(RemappableInterruptMessage { handle: handle as u16 }.message())
    }

    /// Releases all remapping entries and physical vectors of a function, as when it is unassigned.
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
    /// [`InterruptBlockReason`]; the interrupt is dropped and counted.
    pub fn deliver(
        &mut self,
        rid: Rid,
        message: InterruptMessage,
    ) -> Result<RemappedInterrupt, InterruptBlockReason> {
        let found = self.find(rid, message);
        self.blocked += u64::from(found.is_err());
        found
    }

    fn find(&self, rid: Rid, message: InterruptMessage) -> Result<RemappedInterrupt, InterruptBlockReason> {
        let RemappableInterruptMessage { handle } =
            RemappableInterruptMessage::from_message(message).ok_or(InterruptBlockReason::Compatibility)?;
        let entry = self
            .entries
            .get(usize::from(handle))
            .and_then(Option::as_ref)
            .ok_or(InterruptBlockReason::NoEntry)?;
        if entry.owner.rid != rid {
            return Err(InterruptBlockReason::Source);
        }
        Ok(RemappedInterrupt { vector: entry.vector, owner: entry.owner, guest: entry.guest })
    }

    fn handle(&self, rid: Rid, entry: u16) -> Option<usize> {
        let is = |slot: &Option<RemappingTableEntry>| {
            slot.is_some_and(|e| e.owner.rid == rid && e.owner.entry == entry)
        };
        self.entries.iter().position(is)
    }
}
