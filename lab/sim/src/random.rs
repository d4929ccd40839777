//! Named deterministic random generators. Each consumer has its own stream, so a new consumer changes no
//! existing one. Not a source of entropy.

use core::ops::Range;

use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::trace::TraceLabel;

/// Stream of random numbers: xoshiro256++ (Blackman and Vigna), whose output is fixed by its definition.
#[derive(Clone, Debug)]
pub struct RandomStream(Xoshiro256PlusPlus);

impl RandomStream {
    /// Creates the random stream called `name` for an experiment with this `seed`.
    pub fn named(seed: u64, name: &str) -> RandomStream {
        RandomStream(Xoshiro256PlusPlus::seed_from_u64(seed ^ TraceLabel::hash(name)))
    }

    /// Returns the generator's next 64 random bits.
    #[inline]
    pub fn bits(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// Returns a random number from 0 to below `bound`, or 0 if `bound` is 0.
    ///
    /// Returns the high half of a 64 by 64 bit product. A bound of 10^12 deviates from uniform by one part in
    /// 10^7, and no draw is repeated.
    #[inline]
    pub fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.bits()) * u128::from(bound)) >> 64) as u64
    }

    /// Returns a random number in `range`, or the start of an empty range.
    #[inline]
    pub fn within(&mut self, range: Range<u64>) -> u64 {
        range.start + self.below(range.end.saturating_sub(range.start))
    }

    /// Draws a random number, and returns `true` with probability `permille` / 1,000.
    #[inline]
    pub fn chance(&mut self, permille: u64) -> bool {
        self.below(1_000) < permille
    }
}

#[cfg(test)]
mod tests {
    use std::vec::Vec;

    use super::*;

    fn first(seed: u64, name: &str) -> Vec<u64> {
        let mut generator = RandomStream::named(seed, name);
        (0..4).map(|_| generator.bits()).collect()
    }

    #[test]
    fn random_numbers_of_a_seed_and_name_never_change() {
        let mut generator = RandomStream::named(1, "wire");
        assert_eq!(generator.bits(), 16_275_446_676_195_158_174);
    }

    #[test]
    fn random_streams_differ_by_seed_and_by_name() {
        assert_eq!(first(1, "wire"), first(1, "wire"));
        assert_ne!(first(1, "wire"), first(2, "wire"));
        assert_ne!(first(1, "wire"), first(1, "client"));
    }

    #[test]
    fn random_numbers_stay_in_their_range_and_reach_both_ends() {
        let mut generator = RandomStream::named(7, "bounds");
        let draws: Vec<u64> = (0..1_000).map(|_| generator.within(10..14)).collect();
        assert_eq!((draws.iter().min(), draws.iter().max()), (Some(&10), Some(&13)));
        assert_eq!(generator.below(0), 0);
        assert_eq!(generator.within(5..5), 5);
        assert!(!generator.chance(0) && generator.chance(1_000));
    }
}
