//! Everything that a queue works on beside its own state. Left out: the queues.

use crate::file::RegisterFile;
use pcie::Function;

/// Registers, owner and bus of a queue.
#[derive(Debug)]
pub struct QueueIo<'a, B> {
    /// Every register.
    pub file: &'a mut RegisterFile,
    /// The owner of the ring and of its buffers.
    pub function: Function,
    /// The bus.
    pub bus: &'a mut B,
}
