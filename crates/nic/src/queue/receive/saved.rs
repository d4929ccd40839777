//! Saved form of a receive queue. Its registers are saved with the register file.

use super::ReceiveQueue;
use crate::damaged::InvalidStateError;
use crate::file::RegisterFile;
use crate::queue::ring;
use crate::queue::write_back::WriteBackBatch;
use alloc::vec::Vec;
use i82576::QueueIndex;
use i82576::descriptor::SIZE;
use i82576::descriptor::rx::PostedRxDescriptor;
use serde::{Deserialize, Serialize};

/// Saved form of a receive queue: its unused descriptors. Between two polls no filled descriptor is pending, since a
/// poll ends with the write-back; only a ring that has faulted keeps some, which are never written.
#[derive(Serialize, Deserialize)]
#[serde(rename = "SavedReceive")]
pub(super) struct SavedReceiveQueue {
    queue: QueueIndex,
    posted: Vec<PostedRxDescriptor>,
    fetch_at: u32,
    done: WriteBackBatch,
}

impl From<ReceiveQueue> for SavedReceiveQueue {
    fn from(from: ReceiveQueue) -> Self {
        let ReceiveQueue { queue, posted, halted, .. } = from;
        let unused = posted.unused(SIZE).filter_map(|raw| raw.first_chunk());
        let done = WriteBackBatch::of(posted.head(), posted.spoke(), halted);
        Self {
            queue,
            posted: unused.map(PostedRxDescriptor::parse).collect(),
            fetch_at: posted.fetch_at(),
            done,
        }
    }
}

impl TryFrom<SavedReceiveQueue> for ReceiveQueue {
    type Error = InvalidStateError;

    fn try_from(saved: SavedReceiveQueue) -> Result<Self, InvalidStateError> {
        let SavedReceiveQueue { queue, posted, fetch_at, done } = saved;
        let unused: Vec<_> = posted.iter().map(PostedRxDescriptor::emit).collect();
        let places = (done.head(), fetch_at);
        let posted = rings::PostedDescriptors::resume(unused.as_flattened(), SIZE, places, done.spoke());
        let posted =
            posted.ok_or(InvalidStateError("a receive queue has more than 32 prefetched descriptors"))?;
        Ok(Self { posted, halted: done.is_halted(), ..Self::new(queue) })
    }
}

impl ReceiveQueue {
    /// Returns true if the queue's positions are within the queue's ring, or if the queue has no ring.
    pub(crate) fn is_in_its_ring(&self, file: &RegisterFile) -> bool {
        let ring = ring::receive(file, self.queue);
        ring.is_none_or(|ring| ring.contains(self.posted.fetch_at()) && ring.contains(self.posted.head()))
    }
}
