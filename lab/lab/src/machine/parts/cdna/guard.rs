//! The hypervisor's ring for one direction of a CDNA context. A guest enqueues a batch by hypercall. The hypervisor
//! checks the owner of every page, references the pages, numbers the descriptors and writes them where no guest can. It
//! releases references once the card has completed a descriptor: at the next enqueue, and at teardown. The caller
//! charges the hypercall.

use super::pages::PageOwners;
use super::{GuestNumber, PageBuffer, RING, SEQUENCES, SequencedDescriptor};
use thiserror::Error;

/// Error of enqueueing a batch of buffers for a CDNA card. The whole batch is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub(crate) enum CdnaEnqueueError {
    /// The caller's domain does not own the CDNA context.
    #[error("the card's context belongs to another domain")]
    Context,
    /// A page of the batch does not belong to the caller's domain. The number is the index of the page's buffer in the
    /// batch.
    #[error("buffer {0} of the batch has a page of another domain")]
    Page(usize),
    /// The CDNA context's ring has too few free slots.
    #[error("the descriptor ring of the CDNA context has too few free slots for the batch of buffers")]
    Full,
}

/// Ring of a CDNA context that only the hypervisor writes.
#[derive(Debug)]
pub(crate) struct CdnaGuardedRing {
    owner: GuestNumber,
    ring: Vec<Option<SequencedDescriptor>>,
    /// Number of descriptors that the hypervisor wrote to the CDNA context's ring.
    produced: u32,
    /// Number of descriptors of the CDNA context's ring whose pages the hypervisor released.
    released: u32,
    torn_down: bool,
}

impl CdnaGuardedRing {
    /// Creates an empty ring for a context of the domain `owner`.
    pub(crate) fn new(owner: GuestNumber) -> Self {
        Self { owner, ring: vec![None; RING as usize], produced: 0, released: 0, torn_down: false }
    }

    /// Enqueues a domain's batch as a whole, after releasing the descriptors the card has consumed. Returns
    /// the producer index for the guest to write to its mailbox.
    ///
    /// # Errors
    /// [`CdnaEnqueueError`], with nothing enqueued.
    pub(crate) fn enqueue(
        &mut self,
        by: GuestNumber,
        batch: &[PageBuffer],
        consumed: u32,
        pages: &mut PageOwners,
    ) -> Result<u32, CdnaEnqueueError> {
        if by != self.owner || self.torn_down {
            return Err(CdnaEnqueueError::Context);
        }
        self.release(consumed, pages);
        if batch.len() > self.room() as usize {
            return Err(CdnaEnqueueError::Full);
        }
        if let Some(at) = batch.iter().position(|buffer| !pages.are_of(*buffer, by)) {
            return Err(CdnaEnqueueError::Page(at));
        }
        for buffer in batch {
            pages.refer(*buffer);
            let sequence = self.produced % SEQUENCES;
            self.ring[(self.produced % RING) as usize] =
                Some(SequencedDescriptor { buffer: *buffer, sequence });
            self.produced = self.produced.wrapping_add(1);
        }
        Ok(self.produced)
    }

    /// Returns the number of free descriptor slots of the CDNA context's ring.
    pub(crate) fn room(&self) -> u32 {
        RING - self.produced.wrapping_sub(self.released)
    }

    /// Releases the pages of the descriptors that the card has consumed.
    pub(crate) fn release(&mut self, consumed: u32, pages: &mut PageOwners) {
        let enqueued = self.produced.wrapping_sub(self.released);
        for _ in 0..consumed.wrapping_sub(self.released).min(enqueued) {
            if let Some(descriptor) = self.ring[(self.released % RING) as usize] {
                pages.release(descriptor.buffer);
            }
            self.released = self.released.wrapping_add(1);
        }
    }

    /// Rejects further batches of buffers for the context. References to pages stay until [`CdnaGuardedRing::quiesced`].
    pub(crate) fn tear_down(&mut self) {
        self.torn_down = true;
    }

    /// Releases the pages of all descriptors, after the card has removed the context.
    pub(crate) fn quiesced(&mut self, pages: &mut PageOwners) {
        self.release(self.produced, pages);
    }

    /// Returns the descriptor that the CDNA card reads at this index of the context's ring.
    pub(super) fn slot(&self, index: u32) -> Option<SequencedDescriptor> {
        self.ring[(index % RING) as usize]
    }

    /// Returns the domain that owns the CDNA context.
    pub(super) fn owner(&self) -> GuestNumber {
        self.owner
    }
}
