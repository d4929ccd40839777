//! Offloads of the 82576: checksums, segmentation, VLAN tags, the RSS hash. The crate `offload` computes them for every
//! card. The modules here translate requests in registers and descriptors of the 82576, and results into its
//! descriptors.
//!
//! `queue` moves the bytes, and `switch` chooses who gets them.

pub(crate) mod plain;
pub(crate) mod receive;
pub(crate) mod rss;
pub(crate) mod segment;
pub(crate) mod split;
pub(crate) mod transmit;

#[cfg(test)]
mod tests;
