//! Parts of the card that the frame path uses in a poll. The plane is separate, since the plane and these parts call
//! each other. The methods are in `rounds`, `source`, `sink`, `bursts`, `buffer::wait`, `police`, `stamps` and
//! `statistics`.

use crate::board::clock::SystimClock;
use crate::decoded::DecodedRegisters;
use crate::file::RegisterFile;
use crate::interrupt::Interrupts;
use crate::moderation::InterruptThrottle;
use crate::queues::CardQueues;
use crate::scratch::PollScratchMemory;

/// Parts of the card that the frame path uses in a poll.
#[derive(Debug)]
pub(crate) struct FramePathState<'a, B> {
    /// Stored values of every register of the card.
    pub(crate) file: &'a mut RegisterFile,
    /// Queues of the card, and the frames that wait for them.
    pub(crate) queues: &'a mut CardQueues,
    /// Pending interrupt causes of the card.
    pub(crate) interrupts: &'a mut Interrupts,
    /// Throttling intervals of vectors, which urgent frames end early.
    pub(crate) throttle: &'a mut InterruptThrottle,
    /// Clock for time stamps (SYSTIM).
    pub(crate) clock: &'a SystimClock,
    /// Decoded forms of the card's registers.
    pub(crate) derived: &'a DecodedRegisters,
    /// Intermediate values of the current poll.
    pub(crate) scratch: &'a mut PollScratchMemory,
    /// Bus for access to the functions' memory, and for their messages.
    pub(crate) bus: &'a mut B,
}
