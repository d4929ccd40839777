//! The card at work: the parts of it that its frame path touches in a poll, beside the plane, which calls it and which it calls. Left
//! out: what it does (`transmit`, `receive`, `bursts`).

use crate::board::clock::Clock;
use crate::decoded::Derived;
use crate::file::RegisterFile;
use crate::interrupt::Interrupts;
use crate::moderation::Throttle;
use crate::queues::Queues;
use crate::scratch::Scratch;

/// The card at work.
#[derive(Debug)]
pub(crate) struct Work<'a, B> {
    /// Every register.
    pub(crate) file: &'a mut RegisterFile,
    /// The queues, and what waits for them.
    pub(crate) queues: &'a mut Queues,
    /// Causes of interrupts.
    pub(crate) interrupts: &'a mut Interrupts,
    /// Intervals of vectors, which urgent frames shorten.
    pub(crate) throttle: &'a mut Throttle,
    /// SYSTIM, for time stamps.
    pub(crate) clock: &'a Clock,
    /// Decoded registers.
    pub(crate) derived: &'a Derived,
    /// What lasts no longer than the poll.
    pub(crate) scratch: &'a mut Scratch,
    /// Memory of the functions, and their interrupts.
    pub(crate) bus: &'a mut B,
}
