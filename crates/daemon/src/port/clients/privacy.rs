//! Check whether a guest writes to private copies of the memory that its VMM shares. QEMU does so with `share=off` on a memory
//! backend with a file. The card would read only zeros.

use super::errand::BlockingCallQueue;
use host::dma::DmaTable;

/// Minimum size in bytes of guest memory for the check. No operating system fits in less, and a small program may well begin
/// with blank memory.
const JUDGED: u64 = 64 << 20;

/// State of the check of a client's memory. It begins when the guest enables bus mastering, since the card's first write makes
/// the memory non-blank. If the worker thread is busy, or the host hands over, that write may come first, and the check then misses
/// a private memory: it is a diagnosis only.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PrivacyCheck {
    /// The check has not begun.
    Due,
    /// The worker thread reads samples of the memory.
    Pending,
    /// The guest writes to the memory that the card reads, or has too little memory to judge.
    Shared,
    /// The guest writes to private copies.
    Private,
}

impl PrivacyCheck {
    /// Begins the check.
    pub(super) fn begin(memory: &DmaTable, errands: &BlockingCallQueue) -> Self {
        if memory.mapped_bytes() < JUDGED {
            return Self::Shared;
        }
        errands.sample_memory(memory.samples());
        Self::Pending
    }

    /// Returns the state after the samples were read.
    pub(super) fn sampled(is_blank: bool) -> Self {
        if is_blank { Self::Private } else { Self::Shared }
    }

    /// Returns the saved form: whether the check has ended, and whether the guest writes to private copies. A successor
    /// process repeats a check that has not ended.
    pub(super) fn judged(self) -> (bool, bool) {
        (matches!(self, Self::Shared | Self::Private), self == Self::Private)
    }

    /// Returns the state from its saved form.
    pub(super) fn from_judged((has_ended, is_private): (bool, bool)) -> Self {
        if has_ended { Self::sampled(is_private) } else { Self::Due }
    }
}
