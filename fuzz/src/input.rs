//! Bytes of a fuzzer, from which a target takes its moves.

/// Bytes of the fuzzer's input that are not used yet.
#[derive(Debug)]
pub struct FuzzerInput<'a>(pub &'a [u8]);

impl<'a> FuzzerInput<'a> {
    /// Takes `N` bytes. Returns `None` if fewer are left.
    pub fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (field, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*field)
    }

    /// Takes `length` bytes, or all that are left.
    pub fn bytes(&mut self, length: usize) -> &'a [u8] {
        let (bytes, rest) = self.0.split_at(length.min(self.0.len()));
        self.0 = rest;
        bytes
    }
}
