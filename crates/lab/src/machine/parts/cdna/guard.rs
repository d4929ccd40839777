//! The hypervisor's ring for one direction of a context. A guest asks it by hypercall to enqueue a batch; it looks
//! whose every page is, refers to them, numbers the descriptors and writes them where no guest can. References go when
//! the card is done with a descriptor: at the next enqueue, and when the context is torn down. Left out: what the
//! hypercall costs.

use super::pages::Pages;
use super::{Buffer, Descriptor, Domain, RING, SEQUENCES};
use thiserror::Error;

/// Why a batch is refused: nothing of it is enqueued.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub(crate) enum Refused {
    /// The context is another domain's.
    #[error("the context is another domain's")]
    Context,
    /// A page is not the domain's.
    #[error("buffer {0} of the batch is not in pages of the domain")]
    Page(usize),
    /// There is no room.
    #[error("the ring has no room for the batch")]
    Full,
}

/// A ring that only the hypervisor writes.
#[derive(Debug)]
pub(crate) struct Guard {
    owner: Domain,
    ring: Vec<Option<Descriptor>>,
    /// Descriptors written, and those whose references are gone.
    produced: u32,
    released: u32,
    torn_down: bool,
}

impl Guard {
    /// The ring of a domain's context.
    pub(crate) fn new(owner: Domain) -> Self {
        Self { owner, ring: vec![None; RING as usize], produced: 0, released: 0, torn_down: false }
    }

    /// Enqueues a batch of a domain, all or nothing, after releasing what the card has consumed. Answers the index that
    /// the guest is to write to its mailbox.
    ///
    /// # Errors
    /// [`Refused`].
    pub(crate) fn enqueue(
        &mut self,
        by: Domain,
        batch: &[Buffer],
        consumed: u32,
        pages: &mut Pages,
    ) -> Result<u32, Refused> {
        if by != self.owner || self.torn_down {
            return Err(Refused::Context);
        }
        self.release(consumed, pages);
        if batch.len() > self.room() as usize {
            return Err(Refused::Full);
        }
        if let Some(at) = batch.iter().position(|buffer| !pages.are_of(*buffer, by)) {
            return Err(Refused::Page(at));
        }
        for buffer in batch {
            pages.refer(*buffer);
            let sequence = self.produced % SEQUENCES;
            self.ring[(self.produced % RING) as usize] = Some(Descriptor { buffer: *buffer, sequence });
            self.produced = self.produced.wrapping_add(1);
        }
        Ok(self.produced)
    }

    /// Slots that are free.
    pub(crate) fn room(&self) -> u32 {
        RING - self.produced.wrapping_sub(self.released)
    }

    /// Drops the references of what the card is done with.
    pub(crate) fn release(&mut self, consumed: u32, pages: &mut Pages) {
        let enqueued = self.produced.wrapping_sub(self.released);
        for _ in 0..consumed.wrapping_sub(self.released).min(enqueued) {
            if let Some(descriptor) = self.ring[(self.released % RING) as usize] {
                pages.release(descriptor.buffer);
            }
            self.released = self.released.wrapping_add(1);
        }
    }

    /// Nothing is enqueued any more. References stay until [`Guard::quiesced`].
    pub(crate) fn tear_down(&mut self) {
        self.torn_down = true;
    }

    /// The card has let go of the context: whatever was enqueued is released.
    pub(crate) fn quiesced(&mut self, pages: &mut Pages) {
        self.release(self.produced, pages);
    }

    /// What the card reads at an index.
    pub(super) fn slot(&self, index: u32) -> Option<Descriptor> {
        self.ring[(index % RING) as usize]
    }

    /// Whose it is.
    pub(super) fn owner(&self) -> Domain {
        self.owner
    }
}
