//! Answers of the PF that steps expect, and the wait for them.

use std::time::Duration;

/// Timeout of the PF's reply. A check of liveness, not of speed.
pub(super) const PATIENCE: Duration = Duration::from_secs(10);
/// Pause between two looks at a reply.
pub(super) const LOOK: Duration = Duration::from_micros(200);

/// Answer of the PF that a step expects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PfAnswer {
    /// The PF carries the request out.
    Accepted,
    /// The PF refuses the request.
    Refused,
    /// The PF replies.
    Reply,
    /// The attack does not wait for a reply.
    NotAwaited,
}
