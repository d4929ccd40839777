//! Counters of a VF for the program that owns the card. The VF's driver reads different counters
//! (`avf::virtchnl::VfTrafficStatistics`).

use serde::{Deserialize, Serialize};

/// Counters of a VF's messages, interrupts and errors.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename = "CardCounters")]
pub struct VfEventCounters {
    /// Number of messages and commands that the card took from the VF's mailbox.
    pub messages: u64,
    /// Number of mailbox descriptors of the VF that were neither a message nor a known command.
    pub strange: u64,
    /// Number of messages to the VF that were dropped because too many were pending.
    pub overflowed: u64,
    /// Number of memory accesses for the VF that the bus refused.
    pub dma_faults: u64,
    /// Number of malformed packets of the VF, whose descriptors a real card would reject.
    pub malformed: u64,
    /// Number of the VF's queues that were stopped because of malformed packets.
    pub stopped: u64,
    /// Number of interrupts sent to the VF.
    pub interrupts: u64,
}

impl VfEventCounters {
    /// Returns the values of all counters of the VF.
    pub(crate) fn all(&self) -> [u64; 7] {
        let Self { messages, strange, overflowed, dma_faults, malformed, stopped, interrupts } = *self;
        [messages, strange, overflowed, dma_faults, malformed, stopped, interrupts]
    }
}
