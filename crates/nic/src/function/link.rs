//! Link state of the port and of each VF. The port's link follows the wire and the PHY; the administrator may show a VF
//! another state.

use crate::card::Nic;
use i82576::VfIndex;
use i82576::bits::icr;
use i82576::ids::MAX_VFS;
use plane::guard::GuardedPlane;
use plane::shares::FrameShares;

impl Nic {
    /// Returns true if the port has a link to the wire.
    #[must_use]
    pub fn link(&self) -> bool {
        self.state.link
    }

    /// Sets the carrier of the wire. With a carrier the port has a link, unless the PHY negotiates, or is powered down or
    /// isolated.
    pub fn set_link(&mut self, up: bool) {
        self.state.carrier = up;
        self.renew_link();
    }

    /// Updates the port's link from the wire's carrier and the PHY, and raises the link cause ICR.LSC if the link
    /// changed.
    pub(crate) fn renew_link(&mut self) {
        let up = self.state.phy.renew_link(self.state.carrier);
        if core::mem::replace(&mut self.state.link, up) != up {
            self.state.interrupts.raise_other(&mut self.state.file, icr::LSC);
        }
    }

    /// Returns the guards of the card's plane, where pool n is port n. After power-on the plane checks no claim, and drops
    /// link-local frames of VFs.
    #[must_use]
    pub fn guards(&self) -> &dyn GuardedPlane {
        &self.plane
    }

    /// Returns the guards of the card's plane, to change them.
    pub fn guards_mut(&mut self) -> &mut dyn GuardedPlane {
        &mut self.plane
    }

    /// Returns the accounts of the VFs' frames, to charge VFs for other work.
    pub fn shares_mut(&mut self) -> &mut FrameShares<MAX_VFS> {
        &mut self.plane.shares
    }

    /// Sets the link state that a VF sees; `None`, the default, follows the port's link.
    pub fn set_vf_link(&mut self, vf: VfIndex, up: Option<bool>) {
        self.state.links[vf.index()] = up;
    }

    /// Returns true if a VF sees the link as up.
    #[must_use]
    pub fn vf_link(&self, vf: VfIndex) -> bool {
        self.state.links[vf.index()].unwrap_or(self.state.link)
    }
}
