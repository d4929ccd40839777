//! What the registers say of the plane's ports, in the plane's own values: the switch's tables, storm control and transmit
//! rates. Pool `n` is port `n` of the plane. Left out: what the plane makes of it.

mod rates;
pub(crate) mod storm;
mod tables;

#[cfg(test)]
mod tests;

pub(crate) use rates::{Rates, factor};
pub(crate) use tables::{Receive, load};

use crate::counters::Counters;
use crate::file::RegisterFile;
use i82576::ids::MAX_VFS;
use i82576::{Pool, Queue, Time};
use plane::pacing::Pacing;
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

/// The plane of a port whose registers are these, with what its pools owe, when a window of storm control began, and what
/// was counted.
pub(crate) fn resume(
    file: &RegisterFile,
    vfs: u8,
    pacing: Pacing<MAX_VFS>,
    began: Time,
    counters: Counters,
) -> Plane {
    Plane::new(load(file, vfs).0, pacing, storm::load(file, began), counters)
}
