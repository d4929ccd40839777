//! Reads and stores big-endian words of a frame.

/// Returns the big-endian word at an offset, or `None` beyond the end.
#[must_use]
#[inline]
pub fn be16(bytes: &[u8], at: usize) -> Option<u16> {
    bytes.get(at..)?.first_chunk().map(|word| u16::from_be_bytes(*word))
}

/// Stores a big-endian word at an offset. Does nothing beyond the end.
#[inline]
pub fn put16(bytes: &mut [u8], at: usize, value: u16) {
    if let Some(word) = bytes.get_mut(at..).and_then(|rest| rest.first_chunk_mut()) {
        *word = value.to_be_bytes();
    }
}
