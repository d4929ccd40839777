//! Words of the network's byte order in a frame. Left out: what they mean.

/// The big-endian word at `at`, if it is there.
#[must_use]
#[inline]
pub fn be16(bytes: &[u8], at: usize) -> Option<u16> {
    bytes.get(at..)?.first_chunk().map(|word| u16::from_be_bytes(*word))
}

/// Stores a big-endian word at `at`, if there is room.
#[inline]
pub fn put16(bytes: &mut [u8], at: usize, value: u16) {
    if let Some(word) = bytes.get_mut(at..).and_then(|rest| rest.first_chunk_mut()) {
        *word = value.to_be_bytes();
    }
}
