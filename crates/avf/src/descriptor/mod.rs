//! Descriptors: the records by which driver and card pass buffers. They consist of little-endian words of eight
//! bytes.

pub mod rx;
#[cfg(test)]
mod tests;
pub mod tx;

use pcie::low::{low_dword, low_word};

/// Descriptor done: the status bit by which the card returns a receive descriptor.
pub const DD: u64 = 1;

/// Returns the `N` words of a descriptor as little-endian bytes.
#[inline]
fn words<const N: usize, const BYTES: usize>(words: [u64; N]) -> [u8; BYTES] {
    let mut raw = [0; BYTES];
    for (bytes, word) in raw.chunks_exact_mut(8).zip(words) {
        bytes.copy_from_slice(&word.to_le_bytes());
    }
    raw
}

/// Returns the descriptor's word at an index; zero past the end.
#[inline]
fn word(raw: &[u8], index: usize) -> u64 {
    raw.get(8 * index..).and_then(|rest| rest.first_chunk()).map_or(0, |word| u64::from_le_bytes(*word))
}

#[inline]
const fn field(word: u64, shift: u32, bits: u32) -> u64 {
    word >> shift & ((1 << bits) - 1)
}

/// Returns a field of at most 16 bits from a descriptor word.
#[inline]
const fn field16(word: u64, shift: u32, bits: u32) -> u16 {
    low_word(field32(word, shift, bits))
}

/// Returns a field of at most 32 bits from a descriptor word.
#[inline]
const fn field32(word: u64, shift: u32, bits: u32) -> u32 {
    low_dword(field(word, shift, bits))
}
