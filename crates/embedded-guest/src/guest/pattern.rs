//! The bytes of a test flow: every position has its own, so that what is lost, doubled, swapped or changed on
//! the way shows at the receiver.

/// Bytes made at a time.
const WORD: usize = 8;

/// A position in an endless stream of bytes that a seed determines.
#[derive(Debug, Clone)]
pub(super) struct Pattern {
    seed: u64,
    position: u64,
}

impl Pattern {
    pub(super) fn new(seed: u64) -> Self {
        Self { seed, position: 0 }
    }

    pub(super) fn position(&self) -> u64 {
        self.position
    }

    /// Writes the next bytes.
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

    /// Compares with the next bytes; answers the position of the first that differs. Goes on behind them in any
    /// case.
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
        let start = self.within();
        into.copy_from_slice(&self.word()[start..start + into.len()]);
        self.position += into.len() as u64;
    }

    fn check_within_word(&mut self, bytes: &[u8]) -> Option<u64> {
        let (word, start, first) = (self.word(), self.within(), self.position);
        self.position += bytes.len() as u64;
        let differs = bytes.iter().zip(&word[start..]).position(|(is, should)| is != should);
        differs.map(|at| first + at as u64)
    }

    /// Where in its word the position is.
    fn within(&self) -> usize {
        (self.position % WORD as u64) as usize
    }

    /// Bytes to the next word, if not at the beginning of one.
    fn to_boundary(&self) -> usize {
        (WORD - self.within()) % WORD
    }

    /// The word that the position is in.
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
    use super::Pattern;

    #[test]
    fn the_stream_does_not_depend_on_how_it_is_cut() {
        let mut whole = [0; 100];
        Pattern::new(7).fill(&mut whole);
        let mut pieces = [0; 100];
        let mut pattern = Pattern::new(7);
        for piece in pieces.chunks_mut(13) {
            pattern.fill(piece);
        }
        assert_eq!(whole, pieces);
        let mut checked = Pattern::new(7);
        assert!(pieces.chunks(9).all(|piece| checked.check(piece).is_none()));
        assert_eq!(checked.position(), 100);
    }

    #[test]
    fn the_first_wrong_byte_is_found() {
        let mut bytes = [0; 64];
        Pattern::new(1).fill(&mut bytes);
        bytes[37] ^= 1;
        bytes[50] ^= 1;
        assert_eq!(Pattern::new(1).check(&bytes), Some(37));
    }

    #[test]
    fn a_missing_frame_shows() {
        let mut bytes = [0; 4096];
        Pattern::new(1).fill(&mut bytes);
        let mut pattern = Pattern::new(1);
        assert_eq!(pattern.check(&bytes[..1460]), None);
        assert!(pattern.check(&bytes[2920..]).is_some());
    }
}
