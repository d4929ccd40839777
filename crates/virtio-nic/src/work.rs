//! Parts of the card that the frame path uses while frames pass. The methods are in `source`, `bursts` and `sink`.

use crate::card::Nic;
use crate::device::VirtioDevice;
use crate::scratch::Scratch;
use pcie::{Function, MemoryHint};
use plane::{PortIndex, TransmitQueueId};
use virtio::memory::BusMemory;

/// Parts of the card that the frame path uses while frames pass.
pub(crate) struct FramePath<'a, B> {
    /// The VFs' devices. Port n of the plane is VF n.
    pub(crate) devices: &'a mut [VirtioDevice],
    /// Memory for the frames of this call.
    pub(crate) scratch: &'a mut Scratch,
    /// Bus for access to the VFs' memory.
    pub(crate) bus: &'a mut B,
}

impl<B> FramePath<'_, B> {
    /// Returns the device that owns a transmit ring.
    #[inline]
    pub(crate) fn sending(&mut self, sender: TransmitQueueId) -> Option<&mut VirtioDevice> {
        self.devices.get_mut(usize::from(sender.port.get()))
    }
}

impl Nic {
    /// Lends out the parts of the card that the frame path uses.
    pub(crate) fn work<'a, B>(&'a mut self, bus: &'a mut B) -> FramePath<'a, B> {
        FramePath { devices: &mut self.devices, scratch: &mut self.scratch, bus }
    }
}

/// Returns a ring's memory behind the bus.
#[inline]
pub(crate) fn ring_memory<'a, B>(
    bus: &'a mut B,
    port: PortIndex,
    hint: &'a mut MemoryHint,
) -> BusMemory<'a, B> {
    BusMemory { bus, function: Function::Vf(port.get()), hint }
}
