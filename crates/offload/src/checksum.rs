//! The internet checksum (RFC 1071): a ones' complement sum of big-endian words, taken eight bytes at a step.
//! [`crate::insert`], [`crate::segment`] and [`crate::verify`] choose the bytes that a protocol sums.

use crate::narrow::{low_dword, low_word};

/// Unfinished checksum: the sum of some bytes. Every part but the last must have an even number of bytes. The sum adds
/// little-endian words, and several of them at once: a ones' complement sum may be taken in either byte order and
/// swapped at the end (RFC 1071, 2B), and in words of any length and folded at the end (RFC 1071, 2C).
#[derive(Debug, Clone, Copy, Default)]
pub struct PartialChecksum(u64);

impl PartialChecksum {
    /// Returns the sum of `bytes`; an odd last byte counts as the high half of a word.
    #[must_use]
    #[inline(always)]
    pub fn of(bytes: &[u8]) -> Self {
        Self::default().bytes(bytes)
    }

    /// Adds a slice of bytes to the checksum.
    #[must_use]
    #[inline(always)]
    pub fn bytes(self, bytes: &[u8]) -> Self {
        if bytes.len() >= LONG {
            return self.long(bytes);
        }
        let (sum, rest) = leading::<64>(self.0, bytes);
        let (sum, rest) = leading::<32>(sum, rest);
        let (sum, rest) = leading::<16>(sum, rest);
        let (sum, rest) = leading::<8>(sum, rest);
        Self(plus(sum, last(rest)))
    }

    /// Adds [`LONG`] or more bytes to the sum, in a function that is not inlined into its callers.
    #[inline(never)]
    fn long(self, bytes: &[u8]) -> Self {
        let (blocks, rest) = bytes.as_chunks::<BLOCK>();
        let sum = if blocks.is_empty() { self.0 } else { of_blocks(self.0, blocks) };
        let (sum, rest) = leading::<128>(sum, rest);
        let (sum, rest) = leading::<64>(sum, rest);
        let (sum, rest) = leading::<32>(sum, rest);
        let (sum, rest) = leading::<16>(sum, rest);
        let (sum, rest) = leading::<8>(sum, rest);
        Self(plus(sum, last(rest)))
    }

    /// Adds a number to the checksum as two big-endian words.
    #[must_use]
    #[inline]
    pub fn number(self, value: u32) -> Self {
        Self(plus(self.0, value.swap_bytes().into()))
    }

    /// Adds an array of bytes, whose number is a multiple of eight.
    #[must_use]
    #[inline(always)]
    pub fn whole<const N: usize>(self, bytes: &[u8; N]) -> Self {
        const { assert!(N.is_multiple_of(8), "the length of the array must be a multiple of 8 bytes") };
        Self(of_words(self.0, bytes))
    }

    /// Adds little-endian words, or a sum of little-endian words.
    #[must_use]
    #[inline(always)]
    pub fn words(self, words: u64) -> Self {
        Self(plus(self.0, words))
    }

    /// Adds the sum of bytes that follow the bytes summed so far.
    #[must_use]
    #[inline]
    pub fn sum(self, other: Self) -> Self {
        self.words(other.0)
    }

    /// Returns the sum that the bytes of this sum have when `others` other bytes precede them: behind an odd number of
    /// bytes, the halves of all words are swapped.
    #[must_use]
    #[inline]
    pub fn behind(self, others: usize) -> Self {
        if others.is_multiple_of(2) { self } else { Self(self.0.rotate_left(8)) }
    }

    /// Returns true if the sum is that of bytes with a right checksum among them. The bytes must not be all zero.
    #[must_use]
    #[inline(always)]
    pub fn is_zero(self) -> bool {
        // The sum is then a multiple of 65,535, the negative zero of 16 bits. Multiplied by the inverse of 65,535,
        // exactly its multiples become their quotients, which are small.
        self.0.wrapping_mul(INVERSE) <= QUOTIENT
    }

    /// Returns the checksum's sum folded to 16 bits.
    #[must_use]
    #[inline]
    pub fn value(self) -> u16 {
        let (dword, carry) = low_dword(self.0).overflowing_add(low_dword(self.0 >> 32));
        let dword = dword + u32::from(carry);
        let (word, carry) = low_word(dword.into()).overflowing_add(low_word((dword >> 16).into()));
        (word + u16::from(carry)).swap_bytes()
    }

    /// Returns the checksum: the complement of the sum.
    #[must_use]
    #[inline]
    pub fn checksum(self) -> u16 {
        !self.value()
    }

    /// Returns the checksum of a UDP datagram, in which 0 would mean "no checksum" (RFC 768).
    #[must_use]
    #[inline]
    pub fn udp_checksum(self) -> u16 {
        let checksum = self.checksum();
        if checksum == 0 { 0xffff } else { checksum }
    }
}

/// Quotient of the largest 64-bit word by 65,535.
const QUOTIENT: u64 = u64::MAX / 0xffff;
/// Inverse of 65,535 modulo 2^64.
const INVERSE: u64 = QUOTIENT.wrapping_neg();
/// Minimum number of bytes to sum for which a call is cheaper than inlined code.
const LONG: usize = 128;
/// Number of bytes in a chain of additions. Each addition adds the carry of the addition before.
const CHAIN: usize = 64;
/// Number of bytes in a block: four independent chains of additions, which are twice as fast as one chain.
const BLOCK: usize = 4 * CHAIN;

/// Returns the ones' complement sum of two words of 64 bits: the carry is added again.
#[inline]
fn plus(one: u64, two: u64) -> u64 {
    let (sum, carry) = one.overflowing_add(two);
    sum + u64::from(carry)
}

/// Adds whole little-endian words of 64 bits to a ones' complement sum.
#[inline(always)]
fn of_words<const N: usize>(sum: u64, bytes: &[u8; N]) -> u64 {
    let (sum, carry) = bytes
        .as_chunks::<8>()
        .0
        .iter()
        .fold((sum, false), |(sum, carry), word| sum.carrying_add(u64::from_le_bytes(*word), carry));
    plus(sum, carry.into())
}

/// Adds blocks of [`BLOCK`] bytes to a ones' complement sum.
fn of_blocks(sum: u64, blocks: &[[u8; BLOCK]]) -> u64 {
    let sums = blocks.iter().fold([sum, 0, 0, 0], |mut sums, block| {
        for (sum, chain) in sums.iter_mut().zip(block.as_chunks::<CHAIN>().0) {
            *sum = of_words(*sum, chain);
        }
        sums
    });
    sums.into_iter().fold(0, plus)
}

/// Adds the first `N` bytes to a sum, if `bytes` has them. Returns the sum, and the remaining bytes.
#[inline(always)]
fn leading<const N: usize>(sum: u64, bytes: &[u8]) -> (u64, &[u8]) {
    match bytes.split_first_chunk::<N>() {
        Some((first, rest)) => (of_words(sum, first), rest),
        None => (sum, bytes),
    }
}

/// Returns fewer than eight remaining bytes as a little-endian number. It loads pieces of 4, 2 and 1 bytes, none of
/// which overlaps bytes that were summed before: a load that spans two stores of a copy has to wait for both to reach
/// the cache.
#[inline(always)]
fn last(rest: &[u8]) -> u64 {
    let (mut number, mut at) = (0, 0);
    if let Some(four) = rest.first_chunk::<4>() {
        (number, at) = (u32::from_le_bytes(*four).into(), 4);
    }
    if rest.len() & 2 != 0
        && let Some(two) = rest[at..].first_chunk::<2>()
    {
        number |= u64::from(u16::from_le_bytes(*two)) << (8 * at);
        at += 2;
    }
    if let Some(one) = rest.get(at) {
        number |= u64::from(*one) << (8 * at);
    }
    number
}

#[cfg(test)]
mod tests {
    use super::PartialChecksum;
    use proptest::prelude::{any, proptest};

    #[test]
    fn checksum_of_the_rfc_1071_example_is_as_published() {
        assert_eq!(PartialChecksum::of(&[0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7]).value(), 0xddf2);
    }

    #[test]
    fn checksum_of_all_ones_of_any_length_never_overflows() {
        let ones = [0xff; 4096];
        for length in 0..ones.len() {
            let expected = match length % 2 {
                _ if length == 0 => 0,
                0 => 0xffff,
                _ => 0xff00,
            };
            assert_eq!(PartialChecksum::of(&ones[..length]).value(), expected, "{length} bytes");
        }
    }

    #[test]
    fn checksum_of_any_two_words_is_their_sum_modulo_65535() {
        let others = [0, 1, 2, 0x7fff, 0x8000, 0xfffe, 0xffff_u64];
        for (word, other) in (0..=0xffff_u64).flat_map(|word| others.map(|other| (word, other))) {
            for shift in [0, 16, 32, 48] {
                let sum = PartialChecksum::default().words(word << shift).words(other);
                let value = u64::from(sum.value().swap_bytes());
                assert_eq!(value % 0xffff, (word + other) % 0xffff, "{word:#x} and {other:#x}");
                assert!((value == 0) == (word + other == 0));
                assert_eq!(sum.is_zero(), (word + other).is_multiple_of(0xffff), "{word:#x} and {other:#x}");
            }
        }
    }

    proptest! {
        #[test]
        fn checksum_equals_the_rfc_1071_sum_of_16_bit_words(bytes: alloc::vec::Vec<u8>, seed in any::<u16>()) {
            let mut plain = u32::from(seed);
            for word in bytes.chunks(2) {
                plain += u32::from(word[0]) << 8 | word.get(1).copied().map_or(0, u32::from);
                plain = (plain & 0xffff) + (plain >> 16);
            }
            let sum = PartialChecksum::of(&bytes).number(seed.into());
            assert_eq!(u32::from(sum.value()), plain);
            assert_eq!(sum.words(0x1234).is_zero(), sum.words(0x1234).checksum() == 0);
            for at in 0..bytes.len().min(9) {
                let (first, rest) = bytes.split_at(at);
                let joined = PartialChecksum::of(first).sum(PartialChecksum::of(rest).behind(at));
                assert_eq!(joined.checksum(), PartialChecksum::of(&bytes).checksum());
            }
            assert!(sum.words(u64::from(sum.words(0xffff).checksum().swap_bytes())).words(0xffff).is_zero());
        }
    }
}
