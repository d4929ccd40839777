//! Sends link events to VFs. Drivers treat the link as up only while their queues run, so the PF sends an event after
//! each ENABLE_QUEUES, and after GET_VF_RESOURCES as i40e does.

use super::{AvfPf, CardControlHal, VfDriverStage};
use ::avf::ids::LINK_SPEED;
use ::avf::virtchnl::reply::encode;
use ::avf::virtchnl::{LinkSpeed, VfCapabilities, VirtchnlEvent, VirtchnlOpcode, VirtchnlStatus};
use policy::VfLinkPolicy;

impl AvfPf {
    /// Sets the port's link speed in Mb/s, or `None` for a link that is down. Notifies the VFs whose link follows the
    /// port's.
    pub fn set_link<H: CardControlHal>(&mut self, hal: &mut H, wire: Option<u32>) {
        if core::mem::replace(&mut self.wire, wire) != wire {
            self.vfs().for_each(|vf| self.send_link(hal, vf));
        }
    }

    /// Returns the link speed in Mb/s that a VF sees, or `None` for a link that is down.
    #[must_use]
    pub fn vf_link(&self, vf: u8) -> Option<u32> {
        let state = self.vfs.get(usize::from(vf))?;
        match state.decided.policy.state {
            _ if !state.is_free() => None,
            VfLinkPolicy::Auto => self.wire,
            VfLinkPolicy::Enable => Some(self.wire.unwrap_or(LINK_SPEED)),
            VfLinkPolicy::Disable => None,
        }
    }

    /// Notifies a VF of its link's state, if its driver is active.
    pub(super) fn send_link<H: CardControlHal>(&mut self, hal: &mut H, vf: u8) {
        let state = self.state(vf);
        if state.stage != VfDriverStage::Active {
            return;
        }
        let link = self.vf_link(vf);
        let mbps = link.unwrap_or(0);
        let speed = if state.has(VfCapabilities::ADV_LINK_SPEED) {
            LinkSpeed::Mbps(mbps)
        } else {
            LinkSpeed::Bit(LinkSpeed::bit_of(mbps))
        };
        let event = VirtchnlEvent::Link { speed: speed.word(), up: link.is_some() };
        self.send(hal, vf, VirtchnlOpcode::Event.number(), VirtchnlStatus::Success, &encode(&event));
    }
}
