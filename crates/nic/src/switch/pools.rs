//! Pools as ports of the plane, and their queues as senders: pool `n` is port `n`.

use i82576::ids::MAX_VFS;
use i82576::{PoolIndex, QueueIndex};
use plane::{PortIndex, TransmitQueueId};

/// The card's plane: one port for each pool.
pub(crate) type PoolPlane = plane::ForwardingPlane<MAX_VFS>;
/// Switch tables of the card, with one port for each pool.
pub(crate) type PoolTables = plane::switch::SwitchTables<MAX_VFS>;

/// Returns the plane's port that stands for a pool.
#[inline]
pub(crate) const fn port(pool: PoolIndex) -> PortIndex {
    PortIndex::of_field(pool.index() as u32)
}

/// Returns the plane's identifier of one of the card's transmit queues.
#[inline]
pub(crate) const fn sender(queue: QueueIndex) -> TransmitQueueId {
    TransmitQueueId { port: port(queue.pool()), queue: queue.in_pool() }
}

/// Returns the card's transmit queue that a plane's identifier names.
#[inline]
pub(crate) const fn queue(sender: TransmitQueueId) -> QueueIndex {
    pool(sender.port).queue(sender.queue)
}

/// Returns the pool that a port of the plane stands for.
#[inline]
pub(crate) const fn pool(port: PortIndex) -> PoolIndex {
    PoolIndex::of_field(port.get() as u32)
}
