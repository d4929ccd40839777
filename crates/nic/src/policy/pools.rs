//! Pools as ports of the plane, and their queues as senders: pool `n` is port `n`. Left out: what registers say of them.

use i82576::ids::MAX_VFS;
use i82576::{Pool, Queue};
use plane::{Port, Sender};

/// The plane that the card is on: a port a pool.
pub(crate) type Plane = plane::Plane<MAX_VFS>;
/// Its tables.
pub(crate) type Tables = plane::switch::Tables<MAX_VFS>;

/// The port of a pool.
#[inline]
pub(crate) const fn port(pool: Pool) -> Port {
    Port::of_field(pool.index() as u32)
}

/// A queue as the plane knows it.
#[inline]
pub(crate) const fn sender(queue: Queue) -> Sender {
    Sender { port: port(queue.pool()), queue: queue.in_pool() }
}

/// The queue behind that.
#[inline]
pub(crate) const fn queue(sender: Sender) -> Queue {
    pool(sender.port).queue(sender.queue)
}

/// The pool of a port.
#[inline]
pub(crate) const fn pool(port: Port) -> Pool {
    Pool::of_field(port.get() as u32)
}
