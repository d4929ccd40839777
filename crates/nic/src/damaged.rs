//! The error of a saved state that no card can have. The checks are where the parts are read, and in `saved`.

/// Error of a saved state that no card can have. The text names the violated rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct InvalidStateError(pub(crate) &'static str);
