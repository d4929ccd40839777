//! Draws random numbers from a seed (splitmix64), for the campaign's moments and bytes.

use std::time::Duration;

/// State of the splitmix64 generator of random numbers.
#[derive(Debug)]
pub(crate) struct RandomGenerator(pub(crate) u64);

impl RandomGenerator {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// Returns a random number below `end`, which is not 0.
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    /// Fills a block with random bytes for a connection.
    pub(crate) fn fill(&mut self, block: &mut [u8]) {
        for word in block.chunks_mut(size_of::<u64>()) {
            word.copy_from_slice(&self.next().to_ne_bytes()[..word.len()]);
        }
    }

    /// Returns a random duration shorter than `end`.
    pub(crate) fn time(&mut self, end: Duration) -> Duration {
        Duration::from_micros(self.below(end.as_micros() as u64))
    }
}
