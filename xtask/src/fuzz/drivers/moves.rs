//! Moves of an input of a fuzz target.

/// Longest input in bytes, so that the fuzzer may still make it longer.
const LONGEST: usize = 1_024;
/// Accesses that are remembered: a move that repeats one of the last of them is left out.
const NEAR: usize = 4;

/// Moves of an input, without repetitions.
#[derive(Debug, Default)]
pub(super) struct Moves(Vec<Vec<u8>>);

impl Moves {
    /// Adds a move, unless it repeats one of the last.
    pub(super) fn add(&mut self, one: Vec<u8>) {
        if !self.0.iter().rev().take(NEAR).any(|last| *last == one) {
            self.0.push(one);
        }
    }

    /// Joins the moves to inputs of at most [`LONGEST`] bytes, each of which begins with `first`.
    pub(super) fn joined(&self, first: &[u8]) -> Vec<Vec<u8>> {
        let mut inputs: Vec<Vec<u8>> = Vec::new();
        for one in &self.0 {
            match inputs.last_mut() {
                Some(input) if input.len() + one.len() <= LONGEST => input.extend(one),
                _ => inputs.push([first, one].concat()),
            }
        }
        inputs
    }
}
