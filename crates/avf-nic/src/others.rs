//! VFs that cards of other families serve on the same plane. A frame for one of them crosses in a trunk, and its card
//! delivers it.

use crate::card::Nic;
use crate::scratch::OtherFamilies;
use crate::work::FramePathState;
use alloc::boxed::Box;
use avf::ids::MAX_VFS;
use pcie::Bus;
use plane::frame::Frame;
use plane::{
    DeliveryError, DeliveryFlags, ForwardingPlane, FrameTrunk, PortIndex, PortSet, TrunkFrameHeader,
};
use rings::SHORTEST;

impl Nic {
    /// Leaves VFs to the cards of other families on the same plane: frames for these VFs go to `trunk`.
    pub fn leave_to_others(&mut self, vfs: PortSet, trunk: Box<dyn FrameTrunk>) {
        self.scratch.others = OtherFamilies { vfs, trunk: Some(trunk) };
    }

    /// Delivers a frame that the card of another family has put into a trunk. [`Nic::give_back`] notifies the driver.
    pub fn leave_trunk<B: Bus>(
        &mut self,
        plane: &mut ForwardingPlane<MAX_VFS>,
        header: &TrunkFrameHeader,
        frame: &mut Frame<'_>,
        bus: &mut B,
    ) {
        plane.leave_trunk(header, frame, SHORTEST as usize, &mut self.work(bus));
    }

    /// Writes back the descriptors of the frames that [`Nic::leave_trunk`] has delivered, and raises their interrupts.
    pub fn give_back<B: Bus>(&mut self, bus: &mut B) {
        self.work(bus).give_back();
    }
}

impl<B> FramePathState<'_, B> {
    /// Puts a frame into the trunk to the card that serves its receiver. The error is [`DeliveryError::Waits`] if the trunk
    /// has taken it.
    #[cold]
    pub(crate) fn cross(
        &mut self,
        port: PortIndex,
        frame: &mut Frame<'_>,
        about: DeliveryFlags,
    ) -> DeliveryError {
        let Some(trunk) = &mut self.scratch.others.trunk else { return DeliveryError::Disabled };
        let (header, bytes) = TrunkFrameHeader::of(port, frame, about, None);
        if trunk.put(&header, bytes) { DeliveryError::Waits } else { DeliveryError::Dropped }
    }
}
