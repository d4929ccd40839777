//! A receive queue in a saved state. Left out: its registers, which are saved with all others.

use super::ReceiveQueue;
use crate::file::RegisterFile;
use crate::queue::ring::Ring;
use crate::queue::write_back::{Batch, burst};
use crate::saved::Damaged;
use alloc::vec::Vec;
use i82576::Queue;
use i82576::descriptor::SIZE;
use i82576::descriptor::rx::Posted;
use serde::{Deserialize, Serialize};

/// A queue as it is saved: the descriptors that have not been used yet.
#[derive(Serialize, Deserialize)]
#[serde(rename = "SavedReceive")]
pub(super) struct Saved {
    queue: Queue,
    posted: Vec<Posted>,
    fetch_at: u32,
    done: Batch,
}

impl From<ReceiveQueue> for Saved {
    fn from(from: ReceiveQueue) -> Self {
        let ReceiveQueue { queue, posted, next, fetched, fetch_at, done, .. } = from;
        let posted = posted[next..fetched].iter().map(Posted::parse).collect();
        Self { queue, posted, fetch_at, done }
    }
}

impl TryFrom<Saved> for ReceiveQueue {
    type Error = Damaged;

    fn try_from(saved: Saved) -> Result<Self, Damaged> {
        let posted: Vec<_> = saved.posted.iter().map(Posted::emit).collect();
        let (posted, fetched) = burst(&posted, [0; SIZE])?;
        let Saved { queue, fetch_at, done, .. } = saved;
        Ok(Self { queue, posted, next: 0, fetched, fetch_at, done, ring: None })
    }
}

impl ReceiveQueue {
    /// Whether the queue is at descriptors of its ring, if it has one. Any other state cannot be.
    pub(crate) fn is_in_its_ring(&self, file: &RegisterFile) -> bool {
        let ring = Ring::receive(file, self.queue);
        ring.is_none_or(|ring| ring.contains(self.fetch_at) && ring.contains(self.done.head()))
    }
}
