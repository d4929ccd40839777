//! Stop 3: what the card computes so that the guest need not: checksums, segmentation, VLAN tags, the RSS
//! hash. Pure functions over bytes that nobody may be trusted with: no panic, no allocation, work bounded by
//! the length of what is given.
//!
//! Left out: where the bytes come from and go to (`queue`), and who gets them (`switch`).

pub mod checksum;
pub mod crc;
pub mod headers;
pub mod receive;
pub mod rss;
pub mod segment;
pub mod split;
pub mod transmit;
pub mod vlan;

#[cfg(test)]
mod tests;

/// The big-endian word at `at`, if it is there.
pub(crate) fn be16(bytes: &[u8], at: usize) -> Option<u16> {
    bytes.get(at..)?.first_chunk().map(|word| u16::from_be_bytes(*word))
}

/// Stores a big-endian word at `at`, if there is room.
fn put16(bytes: &mut [u8], at: usize, value: u16) {
    if let Some(word) = bytes.get_mut(at..).and_then(|rest| rest.first_chunk_mut()) {
        *word = value.to_be_bytes();
    }
}
