//! Experiments on today's I/O virtualization: counted operations at the cost table's prices, and translation of DMA.
//! All results are predictions.
//!
//! | module | content |
//! |---|---|
//! | `counts` | operations of each path, from a data file |
//! | `paths` | cycles of a packet on each path (today) |
//! | `range` | values with the range of their estimates |
//! | `translate` | IOTLB misses of a port with many VFs (translate) |

mod counts;
mod paths;
mod range;
#[cfg(test)]
mod tests;
mod translate;

pub(super) use counts::constants;

use crate::experiment::Experiment;

pub(super) const ALL: &[Experiment] = &[paths::TODAY, translate::TRANSLATE];
