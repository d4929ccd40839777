//! The bytes of a test flow: each position's byte is computed from the position, so that the receiver detects lost,
//! duplicated, swapped or changed bytes.

/// Number of bytes of the test pattern that are computed at a time.
const WORD: usize = 8;

/// Position in the test pattern: an endless stream of bytes that a seed determines.
#[derive(Debug, Clone)]
pub(super) struct TestFlowPattern {
    seed: u64,
    position: u64,
}

impl TestFlowPattern {
    pub(super) fn new(seed: u64) -> Self {
        Self { seed, position: 0 }
    }

    pub(super) fn position(&self) -> u64 {
        self.position
    }

    /// Writes the next bytes of the test pattern into a buffer.
    pub(super) fn fill(&mut self, into: &mut [u8]) {
        let (head, rest) = into.split_at_mut(self.to_boundary().min(into.len()));
        self.fill_within_word(head);
        let mut words = rest.chunks_exact_mut(WORD);
        for bytes in &mut words {
            bytes.copy_from_slice(&self.word());
            self.position += WORD as u64;
        }
        self.fill_within_word(words.into_remainder());
    }

    /// Compares `bytes` with the next bytes of the test pattern. Returns the position of the first difference. Advances
    /// past `bytes` in any case.
    pub(super) fn check(&mut self, bytes: &[u8]) -> Option<u64> {
        let (head, rest) = bytes.split_at(self.to_boundary().min(bytes.len()));
        let mut wrong = self.check_within_word(head);
        let (words, tail) = rest.as_chunks::<WORD>();
        for bytes in words {
            if *bytes == self.word() {
                self.position += WORD as u64;
            } else {
                wrong = wrong.or(self.check_within_word(bytes));
            }
        }
        wrong.or(self.check_within_word(tail))
    }

    fn fill_within_word(&mut self, into: &mut [u8]) {
        let start = self.offset_in_word();
        into.copy_from_slice(&self.word()[start..start + into.len()]);
        self.position += into.len() as u64;
    }

    fn check_within_word(&mut self, bytes: &[u8]) -> Option<u64> {
        let (word, start, first) = (self.word(), self.offset_in_word(), self.position);
        self.position += bytes.len() as u64;
        let differs = bytes.iter().zip(&word[start..]).position(|(is, should)| is != should);
        differs.map(|at| first + at as u64)
    }

    /// Returns the offset in bytes of the test pattern's position from the start of its 8-byte word.
    fn offset_in_word(&self) -> usize {
        (self.position % WORD as u64) as usize
    }

    /// Returns the number of bytes to the test pattern's next 8-byte word; 0 at the beginning of a word.
    fn to_boundary(&self) -> usize {
        (WORD - self.offset_in_word()) % WORD
    }

    /// Returns the 8-byte word of the test pattern that holds its position.
    fn word(&self) -> [u8; WORD] {
        // SplitMix64: every word is a bijection of its number.
        let number = self.position / WORD as u64;
        let mut z = self.seed.wrapping_add(number.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)).to_le_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::TestFlowPattern;

    #[test]
    fn pattern_written_in_pieces_equals_the_whole_pattern() {
        let mut whole = [0; 100];
        TestFlowPattern::new(7).fill(&mut whole);
        let mut pieces = [0; 100];
        let mut pattern = TestFlowPattern::new(7);
        for piece in pieces.chunks_mut(13) {
            pattern.fill(piece);
        }
        assert_eq!(whole, pieces);
        let mut checked = TestFlowPattern::new(7);
        assert!(pieces.chunks(9).all(|piece| checked.check(piece).is_none()));
        assert_eq!(checked.position(), 100);
    }

    #[test]
    fn changed_byte_of_a_flow_is_found_at_its_position() {
        let mut bytes = [0; 64];
        TestFlowPattern::new(1).fill(&mut bytes);
        bytes[37] ^= 1;
        bytes[50] ^= 1;
        assert_eq!(TestFlowPattern::new(1).check(&bytes), Some(37));
    }

    #[test]
    fn missing_frame_of_a_flow_is_found() {
        let mut bytes = [0; 4096];
        TestFlowPattern::new(1).fill(&mut bytes);
        let mut pattern = TestFlowPattern::new(1);
        assert_eq!(pattern.check(&bytes[..1460]), None);
        assert!(pattern.check(&bytes[2920..]).is_some());
    }
}
