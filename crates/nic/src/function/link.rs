//! The link: the port's follows the wire and the PHY, and a VF may be shown another. Left out: registers that show it.

use crate::port::Nic;
use i82576::VfIndex;
use i82576::bits::icr;

impl Nic {
    /// Whether the port has a link.
    #[must_use]
    pub fn link(&self) -> bool {
        self.state.link
    }

    /// The wire has a partner, or none: with it the port has a link, unless the PHY sleeps.
    pub fn set_link(&mut self, up: bool) {
        self.state.carrier = up;
        self.renew_link();
    }

    /// The link follows the wire and the PHY.
    pub(crate) fn renew_link(&mut self) {
        let up = self.state.phy.renew_link(self.state.carrier);
        if core::mem::replace(&mut self.state.link, up) != up {
            self.state.interrupts.raise_other(&mut self.state.file, icr::LSC);
        }
    }

    /// Forwards link-local frames of VFs from now on (LLDP, LACP, EAPOL), or drops them as the card does after power-on.
    pub fn forward_link_local(&mut self, on: bool) {
        self.plane.forward_link_local(on);
    }

    /// What a VF is shown of the link: the port's (`None`, the default), or always this.
    pub fn set_vf_link(&mut self, vf: VfIndex, up: Option<bool>) {
        self.state.links[vf.index()] = up;
    }

    /// The link as a VF sees it.
    #[must_use]
    pub fn vf_link(&self, vf: VfIndex) -> bool {
        self.state.links[vf.index()].unwrap_or(self.state.link)
    }
}
