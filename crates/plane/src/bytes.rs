//! Reads and stores big-endian words of a frame.

/// Returns the big-endian 16-bit word at an offset of a frame, or `None` beyond the frame's end.
#[must_use]
#[inline]
pub fn be16(bytes: &[u8], at: usize) -> Option<u16> {
    bytes.get(at..)?.first_chunk().map(|word| u16::from_be_bytes(*word))
}

/// Stores a big-endian 16-bit word at an offset of a frame. Does nothing beyond the frame's end.
#[inline]
pub fn put16(bytes: &mut [u8], at: usize, value: u16) {
    if let Some(word) = bytes.get_mut(at..).and_then(|rest| rest.first_chunk_mut()) {
        *word = value.to_be_bytes();
    }
}
