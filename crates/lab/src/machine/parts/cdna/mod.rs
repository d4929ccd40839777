//! CDNA (Willmann et al., HPCA 2007): a card with a context for each guest, and the hypervisor's part: it checks what
//! guests hand to the card, and tells guests of the card's interrupts.
//!
//! | module | what it is |
//! |---|---|
//! | `pages` | whose each page of memory is, and how many descriptors refer to it |
//! | `guard` | the hypervisor's ring for a context: it checks, refers, numbers, and releases late |
//! | `card` | contexts, their mailbox pages, and the check of sequence numbers |
//! | `bits` | which contexts an interrupt is for |
//!
//! Left out: the bytes of frames, and the card's processors.

pub(crate) mod bits;
pub(crate) mod card;
pub(crate) mod guard;
pub(crate) mod pages;
#[cfg(test)]
mod tests;

/// Slots of a ring.
pub(crate) const RING: u32 = 256;

/// Sequence numbers before they begin again: with twice as many as slots, what a slot held a turn ago never has the
/// number that is due.
pub(crate) const SEQUENCES: u32 = 2 * RING;

/// A guest, by number.
pub(crate) type Domain = u16;

/// Memory that a guest hands to the card: pages of 4 KiB one after the other, as far as bytes go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Buffer {
    /// Byte address of the first byte.
    pub(crate) address: u64,
    /// Bytes.
    pub(crate) length: u16,
}

impl Buffer {
    /// The pages that it lies in.
    pub(crate) fn pages(self) -> std::ops::Range<u64> {
        let end = self.address.saturating_add(u64::from(self.length).max(1));
        self.address / PAGE..end.div_ceil(PAGE)
    }
}

/// Bytes of a page.
pub(crate) const PAGE: u64 = 4_096;

/// A slot of a ring: memory, and the number that it has among all descriptors of the ring.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Descriptor {
    pub(crate) buffer: Buffer,
    pub(crate) sequence: u32,
}
