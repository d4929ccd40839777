//! Parts of the card that sending and receiving a frame needs. Their methods are in `source`, `sink` and `bursts`.

use crate::card::Nic;
use crate::function::VfHardware;
use crate::scratch::PollScratchMemory;

/// Parts of the card that sending and receiving a frame needs.
pub(crate) struct FramePathState<'a, B> {
    /// VFs of the card with their rings. Port n of the plane is VF n.
    pub(crate) functions: &'a mut [VfHardware],
    /// Memory for the frames and descriptors of one call of the card.
    pub(crate) scratch: &'a mut PollScratchMemory,
    /// Bus for access to the VFs' memory.
    pub(crate) bus: &'a mut B,
}

impl Nic {
    /// Borrows the parts of the card that sending and receiving a frame needs.
    pub(crate) fn work<'a, B>(&'a mut self, bus: &'a mut B) -> FramePathState<'a, B> {
        FramePathState { functions: &mut self.functions, scratch: &mut self.scratch, bus }
    }
}
