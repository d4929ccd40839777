//! What the registers say of the plane's ports, in the plane's own values: the switch's tables, storm control and transmit
//! rates. Pool `n` is port `n` of the plane. Left out: what the plane makes of it.

mod pools;
mod rates;
pub(crate) mod storm;
mod tables;

#[cfg(test)]
mod tests;

pub(crate) use pools::{Plane, Tables, pool, port, queue, sender};
pub(crate) use rates::{Rates, factor};
pub(crate) use tables::{Receive, load};

use crate::counters::Counters;
use crate::file::RegisterFile;
use i82576::Time;
use i82576::ids::MAX_VFS;
use plane::pacing::Pacing;

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
