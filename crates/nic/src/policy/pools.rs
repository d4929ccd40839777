//! Pools as ports of the plane, and their queues as senders: pool `n` is port `n`.

use i82576::ids::MAX_VFS;
use i82576::{Pool, Queue};
use plane::{Port, Sender};

/// The card's plane: one port for each pool.
pub(crate) type Plane = plane::Plane<MAX_VFS>;
/// Tables of the card's switch.
pub(crate) type Tables = plane::switch::Tables<MAX_VFS>;

/// Returns the port of a pool.
#[inline]
pub(crate) const fn port(pool: Pool) -> Port {
    Port::of_field(pool.index() as u32)
}

/// Returns the sender of a queue.
#[inline]
pub(crate) const fn sender(queue: Queue) -> Sender {
    Sender { port: port(queue.pool()), queue: queue.in_pool() }
}

/// Returns the queue of a sender.
#[inline]
pub(crate) const fn queue(sender: Sender) -> Queue {
    pool(sender.port).queue(sender.queue)
}

/// Returns the pool of a port.
#[inline]
pub(crate) const fn pool(port: Port) -> Pool {
    Pool::of_field(port.get() as u32)
}
