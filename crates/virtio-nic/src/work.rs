//! Parts of the card that the frame path borrows while it forwards frames. The methods are in `source`, `bursts` and
//! `sink`.

use crate::card::Nic;
use crate::device::VirtioDevice;
use crate::scratch::FrameScratchMemory;
use plane::TransmitQueueId;

/// Parts of the card that the frame path borrows while it forwards frames.
pub(crate) struct VirtioFramePathState<'a, B> {
    /// The VFs' devices. Port n of the plane is VF n.
    pub(crate) devices: &'a mut [VirtioDevice],
    /// Scratch memory for the frames of this call.
    pub(crate) scratch: &'a mut FrameScratchMemory,
    /// Bus for access to the VFs' memory.
    pub(crate) bus: &'a mut B,
}

impl<B> VirtioFramePathState<'_, B> {
    /// Returns the device that owns a transmit ring.
    #[inline]
    pub(crate) fn sending(&mut self, sender: TransmitQueueId) -> Option<&mut VirtioDevice> {
        self.devices.get_mut(usize::from(sender.port.get()))
    }
}

impl Nic {
    /// Lends the frame path the parts of the card that it needs.
    pub(crate) fn work<'a, B>(&'a mut self, bus: &'a mut B) -> VirtioFramePathState<'a, B> {
        VirtioFramePathState { devices: &mut self.devices, scratch: &mut self.scratch, bus }
    }
}
