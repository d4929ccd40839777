//! CDNA (Willmann et al., HPCA 2007): a card with a context for each guest. The hypervisor checks the buffers that
//! guests give to the card, and distributes the card's interrupts.
//!
//! | module | contents |
//! |---|---|
//! | `pages` | owner of each page, and its descriptor references |
//! | `guard` | hypervisor's ring for a context: checks, references, numbers, and releases |
//! | `card` | contexts, mailbox pages, and sequence-number checks |
//! | `bits` | contexts of an interrupt |
//!
//! Frame contents and the card's processors are not modelled.

pub(crate) mod bits;
pub(crate) mod card;
pub(crate) mod guard;
pub(crate) mod pages;
#[cfg(test)]
mod tests;

/// Number of descriptor slots in each ring of a CDNA context.
pub(crate) const RING: u32 = 256;

/// Number of CDNA sequence numbers before they wrap: twice the number of slots, so a slot's stale descriptor never has
/// the expected number.
pub(crate) const SEQUENCES: u32 = 2 * RING;

/// Index of a guest, by which the CDNA card and the hypervisor name domains.
pub(crate) type GuestNumber = u16;

/// Buffer that a guest gives to the card: consecutive bytes in pages of 4 KiB.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PageBuffer {
    /// Address of the buffer's first byte.
    pub(crate) address: u64,
    /// Length of the buffer in bytes.
    pub(crate) length: u16,
}

impl PageBuffer {
    /// Returns the numbers of the memory pages that the buffer occupies.
    pub(crate) fn pages(self) -> std::ops::Range<u64> {
        let end = self.address.saturating_add(u64::from(self.length).max(1));
        self.address / PAGE..end.div_ceil(PAGE)
    }
}

/// Size of a memory page, the unit of ownership, in bytes.
pub(crate) const PAGE: u64 = 4_096;

/// Descriptor in a slot of a CDNA ring: a buffer, and its sequence number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SequencedDescriptor {
    pub(crate) buffer: PageBuffer,
    pub(crate) sequence: u32,
}
