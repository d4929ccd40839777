//! Stop 3: what the card computes so that the guest need not: checksums, segmentation, VLAN tags, the RSS hash. How that is
//! done is the same for every family of cards (crate `offload`); here is how registers and descriptors of the 82576 ask for
//! it, and what its descriptors say of it.
//!
//! Left out: where the bytes come from and go to (`queue`), and who gets them (`switch`).

pub(crate) mod plain;
pub mod receive;
pub mod rss;
pub mod segment;
pub mod split;
pub mod transmit;

#[cfg(test)]
mod tests;
