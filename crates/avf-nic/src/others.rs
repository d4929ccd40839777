//! VFs that cards of other families serve on the same plane. A frame for one of them crosses in a trunk, and its card
//! delivers it.

use crate::card::Nic;
use crate::scratch::OtherFamilies;
use alloc::boxed::Box;
use avf::ids::MAX_VFS;
use pcie::Bus;
use plane::frame::Frame;
use plane::{ForwardingPlane, FrameTrunk, PortSet, TrunkFrameHeader};
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
