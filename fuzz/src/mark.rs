//! Marked frames of honest guests and stations, by which a target finds a frame in the memory of a guest that must not have it.

use std::hash::{DefaultHasher, Hash, Hasher};
use units::MacAddress;

/// Bytes of a mark.
const SIZE: usize = 16;
/// Number of times that a marked frame repeats its mark.
const REPEATS: usize = 18;

/// Bytes that no input contains by chance: a hash of the whole input. A constant would not do, since the fuzzer may
/// learn constants from the comparisons of a target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FrameMark([u8; SIZE]);

impl FrameMark {
    /// Returns the mark of a target's input.
    #[must_use]
    pub fn of(input: &[u8]) -> Self {
        let mut mark = [0; SIZE];
        for (half, bytes) in mark.chunks_exact_mut(SIZE / 2).enumerate() {
            let mut hasher = DefaultHasher::new();
            (half, input).hash(&mut hasher);
            bytes.copy_from_slice(&hasher.finish().to_le_bytes());
        }
        Self(mark)
    }

    /// Returns a frame of an experimental ether type with the mark in all parts of its payload.
    #[must_use]
    pub fn frame(self, to: MacAddress, from: MacAddress) -> Vec<u8> {
        [&to.0[..], &from.0, &[0x88, 0xb5], &self.0.repeat(REPEATS)].concat()
    }

    /// Returns the offset of the mark in memory, or `None` if the memory lacks it.
    #[must_use]
    pub fn position(self, memory: &[u8]) -> Option<usize> {
        memchr::memmem::find(memory, &self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::{FrameMark, SIZE};
    use units::MacAddress;

    #[test]
    fn mark_is_found_at_any_offset_of_memory() {
        let mark = FrameMark::of(b"input");
        let mut memory = vec![0; 3 * 4096 + 5];
        assert_eq!(mark.position(&memory), None);
        for at in [0, 1, 4096 - 1, 2 * 4096 - SIZE + 1, 3 * 4096 + 5 - SIZE] {
            memory.fill(0);
            memory[at..at + SIZE].copy_from_slice(&mark.0);
            assert_eq!(mark.position(&memory), Some(at));
            memory[at + SIZE - 1] ^= 1;
            assert_eq!(mark.position(&memory), None);
        }
    }

    #[test]
    fn every_part_of_a_marked_frame_contains_the_mark() {
        let mark = FrameMark::of(&[]);
        let frame = mark.frame(MacAddress([2; 6]), MacAddress([4; 6]));
        assert!(frame[14..].windows(2 * SIZE - 1).all(|part| mark.position(part).is_some()));
        assert_ne!(mark, FrameMark::of(&[0]));
    }
}
