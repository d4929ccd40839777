//! The internet checksum (RFC 1071): a ones' complement sum of big-endian words, taken eight bytes at a step.
//! Left out: which bytes a protocol sums (`receive`, `transmit`, `segment`).

/// A sum in progress. Every part but the last must have an even number of bytes.
#[derive(Debug, Clone, Copy, Default)]
pub struct Sum(u64);

impl Sum {
    /// The sum of `bytes`; an odd last byte counts as the high half of a word.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Self {
        Self::default().bytes(bytes)
    }

    /// Adds bytes.
    #[must_use]
    pub fn bytes(self, bytes: &[u8]) -> Self {
        // A ones' complement sum may be taken in either byte order and swapped at the end (RFC 1071, 2B).
        Self(self.0 + u64::from(fold(little_endian(bytes)).swap_bytes()))
    }

    /// Adds a number as two big-endian words.
    #[must_use]
    pub fn number(self, value: u32) -> Self {
        Self(self.0 + u64::from(value))
    }

    /// The sum in 16 bits.
    #[must_use]
    pub fn value(self) -> u16 {
        fold(self.0)
    }

    /// The checksum: the complement of the sum.
    #[must_use]
    pub fn checksum(self) -> u16 {
        !self.value()
    }
}

/// Sums little-endian dwords in two lanes that never carry into each other, in a shape compilers turn into
/// vector code. A lane overflows after 2^32 dwords, far beyond any frame.
fn little_endian(bytes: &[u8]) -> u64 {
    let (chunks, rest) = bytes.as_chunks::<8>();
    let (mut low, mut high) = (0u64, 0u64);
    for chunk in chunks {
        let both = u64::from_le_bytes(*chunk);
        low += both & 0xffff_ffff;
        high += both >> 32;
    }
    let mut last = [0; 8];
    last[..rest.len()].copy_from_slice(rest);
    let last = u64::from_le_bytes(last);
    low + high + (last & 0xffff_ffff) + (last >> 32)
}

fn fold(sum: u64) -> u16 {
    let sum = (sum & 0xffff_ffff) + (sum >> 32);
    let sum = (sum & 0xffff) + ((sum >> 16) & 0xffff) + (sum >> 32);
    let sum = (sum & 0xffff) + (sum >> 16);
    ((sum & 0xffff) + (sum >> 16)) as u16
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
