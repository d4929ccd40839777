//! A transmit queue as it is saved. Left out: packets that wait, which have a form of their own (`held`).

use super::TransmitQueue;
use crate::damaged::Damaged;
use crate::queue::held::Held;
use crate::queue::write_back::{Batch, burst};
use alloc::vec::Vec;
use i82576::Queue;
use i82576::descriptor::SIZE;
use i82576::descriptor::tx::Context;
use serde::{Deserialize, Serialize};

/// A queue as it is saved: the descriptors at hand, without the room for more.
#[derive(Serialize, Deserialize)]
pub(super) struct SavedTransmit {
    queue: Queue,
    contexts: [Context; 2],
    burst: Vec<[u8; SIZE]>,
    fetched_at: u32,
    done: Batch,
    skipping: bool,
    effort: (usize, usize),
    held: Held,
}

impl From<TransmitQueue> for SavedTransmit {
    fn from(from: TransmitQueue) -> Self {
        let TransmitQueue {
            queue, contexts, burst, fetched_at, fetched, done, skipping, effort, held, ..
        } = from;
        let burst = burst[..fetched as usize].to_vec();
        Self { queue, contexts, burst, fetched_at, done, skipping, effort, held }
    }
}

impl TryFrom<SavedTransmit> for TransmitQueue {
    type Error = Damaged;

    fn try_from(saved: SavedTransmit) -> Result<Self, Damaged> {
        let (burst, fetched) = burst(&saved.burst, [0; SIZE])?;
        let SavedTransmit { queue, contexts, fetched_at, done, skipping, effort, held, .. } = saved;
        let empty = Self::new(queue);
        let fetched = fetched as u32;
        Ok(Self { contexts, burst, fetched_at, fetched, done, skipping, effort, held, ..empty })
    }
}
