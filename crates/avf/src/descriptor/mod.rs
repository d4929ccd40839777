//! Descriptors: the records by which driver and card pass buffers. Everything is little endian, in words of eight bytes.

pub mod rx;
#[cfg(test)]
mod tests;
pub mod tx;

/// The status bit by which the card gives a receive descriptor back: descriptor done.
pub const DD: u64 = 1;

/// `N` words as bytes.
#[inline]
fn words<const N: usize, const BYTES: usize>(words: [u64; N]) -> [u8; BYTES] {
    let mut raw = [0; BYTES];
    for (bytes, word) in raw.chunks_exact_mut(8).zip(words) {
        bytes.copy_from_slice(&word.to_le_bytes());
    }
    raw
}

/// The word at an index; zero where there is none.
#[inline]
fn word(raw: &[u8], index: usize) -> u64 {
    raw.get(8 * index..).and_then(|rest| rest.first_chunk()).map_or(0, |word| u64::from_le_bytes(*word))
}

#[inline]
const fn field(word: u64, shift: u32, bits: u32) -> u64 {
    word >> shift & ((1 << bits) - 1)
}
