//! The internet checksum (RFC 1071): a ones' complement sum of big-endian words, taken eight bytes at a step.
//! Left out: which bytes a protocol sums (`receive`, `transmit`, `segment`).

/// A sum in progress. Every part but the last must have an even number of bytes. It is one of little-endian words: a
/// ones' complement sum may be taken in either byte order and swapped at the end (RFC 1071, 2B).
#[derive(Debug, Clone, Copy, Default)]
pub struct Sum(u64);

impl Sum {
    /// The sum of `bytes`; an odd last byte counts as the high half of a word.
    #[must_use]
    #[inline]
    pub fn of(bytes: &[u8]) -> Self {
        Self::default().bytes(bytes)
    }

    /// Adds bytes.
    #[must_use]
    #[inline]
    pub fn bytes(self, bytes: &[u8]) -> Self {
        Self(self.0 + little_endian(bytes))
    }

    /// Adds a number as two big-endian words.
    #[must_use]
    #[inline]
    pub fn number(self, value: u32) -> Self {
        Self(self.0 + u64::from(value.swap_bytes()))
    }

    /// The sum in 16 bits.
    #[must_use]
    #[inline]
    pub fn value(self) -> u16 {
        let (dword, carry) = (self.0 as u32).overflowing_add((self.0 >> 32) as u32);
        let dword = dword + u32::from(carry);
        let (word, carry) = (dword as u16).overflowing_add((dword >> 16) as u16);
        (word + u16::from(carry)).swap_bytes()
    }

    /// The checksum: the complement of the sum.
    #[must_use]
    #[inline]
    pub fn checksum(self) -> u16 {
        !self.value()
    }
}

/// Sums little-endian dwords, in a shape compilers turn into vector code: the high halves of words of eight bytes
/// apart, and the low ones by what those leave of the whole. That overflows, but the low halves alone do not before
/// there are 2^32 of them, far beyond any frame.
#[inline]
fn little_endian(bytes: &[u8]) -> u64 {
    let (chunks, rest) = bytes.as_chunks::<8>();
    let (mut whole, mut high) = (0u64, 0u64);
    for chunk in chunks {
        let both = u64::from_le_bytes(*chunk);
        whole = whole.wrapping_add(both);
        high += both >> 32;
    }
    let last = last(bytes, rest.len());
    whole.wrapping_sub(high << 32) + high + (last & 0xffff_ffff) + (last >> 32)
}

/// The last `count` bytes, fewer than eight, as a little-endian number.
#[inline]
fn last(bytes: &[u8], count: usize) -> u64 {
    match bytes.last_chunk::<8>() {
        _ if count == 0 => 0,
        Some(word) => u64::from_le_bytes(*word) >> (64 - 8 * count),
        None => bytes.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte)),
    }
}

#[cfg(test)]
mod tests {
    use super::Sum;
    use proptest::prelude::{any, proptest};

    #[test]
    fn the_example_of_rfc_1071() {
        assert_eq!(Sum::of(&[0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7]).value(), 0xddf2);
    }

    #[test]
    fn all_ones_of_any_length_never_overflow() {
        let ones = [0xff; 4096];
        for length in 0..ones.len() {
            let expected = match length % 2 {
                _ if length == 0 => 0,
                0 => 0xffff,
                _ => 0xff00,
            };
            assert_eq!(Sum::of(&ones[..length]).value(), expected, "{length} bytes");
        }
    }

    proptest! {
        #[test]
        fn agrees_with_a_word_at_a_time(bytes: alloc::vec::Vec<u8>, seed in any::<u16>()) {
            let mut plain = u32::from(seed);
            for word in bytes.chunks(2) {
                plain += u32::from(word[0]) << 8 | word.get(1).copied().map_or(0, u32::from);
                plain = (plain & 0xffff) + (plain >> 16);
            }
            assert_eq!(u32::from(Sum::of(&bytes).number(seed.into()).value()), plain);
        }
    }
}
