//! The error of a saved state whose parts contradict the card. Left out: which parts do (`saved`).

/// A part of a state that cannot be, and what is wrong with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Damaged(pub(crate) &'static str);
