//! What a VF is told of the link. Drivers take it for up only once their queues run, so they are told after each
//! ENABLE_QUEUES, and after GET_VF_RESOURCES as i40e does. Left out: who decides about the port's link.

use super::{Card, Pf, Stage};
use ::avf::ids::LINK_SPEED;
use ::avf::virtchnl::reply::encode;
use ::avf::virtchnl::{Capabilities, Event, LinkSpeed, Op, Status};
use policy::Link;

impl Pf {
    /// The port's link: its speed in Mb/s, or none. VFs whose link it is are told.
    pub fn set_link<H: Card>(&mut self, hal: &mut H, wire: Option<u32>) {
        if core::mem::replace(&mut self.wire, wire) != wire {
            self.vfs().for_each(|vf| self.tell_link(hal, vf));
        }
    }

    /// The link that a VF is shown: its speed in Mb/s, or none.
    #[must_use]
    pub fn vf_link(&self, vf: u8) -> Option<u32> {
        let state = self.vfs.get(usize::from(vf))?;
        match state.decided.policy.state {
            _ if !state.is_free() => None,
            Link::Auto => self.wire,
            Link::Enable => Some(self.wire.unwrap_or(LINK_SPEED)),
            Link::Disable => None,
        }
    }

    /// Tells a VF, if a driver is there.
    pub(super) fn tell_link<H: Card>(&mut self, hal: &mut H, vf: u8) {
        let state = self.state(vf);
        if state.stage != Stage::Active {
            return;
        }
        let link = self.vf_link(vf);
        let mbps = link.unwrap_or(0);
        let speed = if state.has(Capabilities::ADV_LINK_SPEED) {
            LinkSpeed::Mbps(mbps)
        } else {
            LinkSpeed::Bit(LinkSpeed::bit_of(mbps))
        };
        let event = Event::Link { speed: speed.word(), up: link.is_some() };
        self.send(hal, vf, Op::Event.number(), Status::Success, &encode(&event));
    }
}
