//! Translation of registers into the plane's values: the switch's tables, storm control and transmit rates. Pool `n` is
//! port `n` of the plane.

mod pools;
mod rates;
pub(crate) mod storm;
mod tables;

#[cfg(test)]
mod tests;

pub(crate) use pools::{PoolPlane, PoolTables, pool, port, queue, sender};
pub(crate) use rates::{PoolRates, factor};
pub(crate) use tables::{ReceiveSettings, load};

use crate::counters::PoolCounterArray;
use crate::file::RegisterFile;
use i82576::Time;
use i82576::ids::MAX_VFS;
use plane::pacing::TransmitPacing;

/// Creates the plane of a restored port: from the registers, the transmit accounts of the pools, the start of the storm
/// control window, and the traffic counters.
pub(crate) fn resume(
    file: &RegisterFile,
    vfs: u8,
    pacing: TransmitPacing<MAX_VFS>,
    began: Time,
    counters: PoolCounterArray,
) -> PoolPlane {
    PoolPlane::new(load(file, vfs).0, pacing, storm::load(file, began), counters)
}
