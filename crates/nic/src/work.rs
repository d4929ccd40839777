//! The card at work: all that its frame path may touch in a poll, beside the plane, which calls it and which it calls. Left
//! out: what it does (`forward`, `arrival`).

use crate::decoded::Derived;
use crate::scratch::Scratch;
use crate::state::Card;

/// The card at work.
#[derive(Debug)]
pub(crate) struct Work<'a, B> {
    /// What resets clear.
    pub(crate) state: &'a mut Card,
    /// What follows from it.
    pub(crate) derived: &'a Derived,
    /// What lasts no longer than the poll.
    pub(crate) scratch: &'a mut Scratch,
    /// Memory of the functions, and their interrupts.
    pub(crate) bus: &'a mut B,
}
