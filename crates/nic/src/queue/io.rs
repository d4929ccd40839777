//! Registers, owner and bus that a queue's methods need beside the queue's own state.

use crate::file::RegisterFile;
use pcie::Function;

/// Registers, owner and bus that a receive or transmit queue works with.
#[derive(Debug)]
pub(crate) struct QueueIo<'a, B> {
    /// Register file of the card.
    pub file: &'a mut RegisterFile,
    /// Function that owns the ring and its buffers.
    pub function: Function,
    /// Bus for the queue's memory requests.
    pub bus: &'a mut B,
}
