//! Counters of a VF for the card's owner. Left out: statistics that its driver asks for (`avf::virtchnl::Statistics`).

use serde::{Deserialize, Serialize};

/// What a card counts of one VF beyond its statistics: what went wrong, and why.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename = "CardCounters")]
pub struct Counters {
    /// Messages and commands taken from the VF.
    pub messages: u64,
    /// Descriptors of its mailbox that were neither.
    pub strange: u64,
    /// Messages to the VF that found no room.
    pub overflowed: u64,
    /// Memory that could not be reached.
    pub dma_faults: u64,
    /// Malformed packets: descriptors that no card would take.
    pub malformed: u64,
    /// Queues stopped for malformed ones.
    pub stopped: u64,
    /// Interrupts sent.
    pub interrupts: u64,
}

impl Counters {
    /// Every counter.
    pub(crate) fn all(&self) -> [u64; 7] {
        let Self { messages, strange, overflowed, dma_faults, malformed, stopped, interrupts } = *self;
        [messages, strange, overflowed, dma_faults, malformed, stopped, interrupts]
    }
}
