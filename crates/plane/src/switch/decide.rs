//! The decision for one frame: who is to have it (datasheet of the 82576, 7.10.3.3 and 7.10.3.4), what ports send to each
//! other, and what a sender must not send (7.10.3.9). Left out: whether a port has room.

use super::tables::Tables;
use crate::{Port, Ports};
use units::MacAddress;

/// Last byte of the link-local address of MAC control, which is pause (IEEE 802.3, annex 31B).
const PAUSE: u8 = 0x01;

/// Where a frame comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// The uplink.
    Uplink,
    /// A port that has sent it.
    Port(Port),
}

impl Origin {
    /// The sending port; none for a frame from the uplink.
    const fn sender(self) -> Ports {
        match self {
            Self::Uplink => Ports::NONE,
            Self::Port(port) => port.only(),
        }
    }
}

/// What the switch looks at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Frame {
    /// Destination address.
    pub dst: MacAddress,
    /// Source address.
    pub src: MacAddress,
    /// The outermost VLAN tag, whether it is in the frame or about to be inserted.
    pub vlan: Option<u16>,
    /// Bytes, tag included, frame check sequence excluded.
    pub length: usize,
    /// Where it comes from.
    pub origin: Origin,
}

/// Why a frame goes nowhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// A guest may not send to 01:80:c2:00:00:00 to 0f: pause, spanning tree and LACP are between switches. A plane that
    /// forwards link-local frames drops pause frames alone.
    LinkControl,
    /// The source address is not the sender's.
    SourceSpoofed,
    /// The sender is not in the frame's VLAN.
    VlanSpoofed,
    /// No filter wants it.
    Unwanted,
    /// Only the sender itself wants it.
    OnlySender,
    /// Reception is switched off at every port that wants it.
    Disabled,
    /// It is longer than any of its receivers accepts, or than ports send.
    TooLong,
}

/// Who gets a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Decision {
    /// The ports that get it.
    pub ports: Ports,
    /// It goes to the uplink.
    pub uplink: bool,
    /// Receive options are those of replicated frames: a broadcast or multicast while replication is on.
    pub replicated: bool,
    /// No exact filter has its destination, and it is no broadcast: software has to compare addresses.
    pub inexact: bool,
    /// Why it is dropped; `None` if anybody gets it.
    pub dropped: Option<Reason>,
}

impl Decision {
    /// Nothing is decided.
    pub(super) const NOWHERE: Self =
        Self { ports: Ports::NONE, uplink: false, replicated: false, inexact: false, dropped: None };
}

/// The ports whose filters know a destination.
struct Match {
    ports: Ports,
    /// An exact filter names it, or it is a broadcast.
    exact: bool,
}

impl Match {
    /// Ports that a filter with room for doubt names.
    const fn inexact(ports: Ports) -> Self {
        Self { ports, exact: false }
    }
}

impl<const N: usize> Tables<N> {
    /// Decides who gets a frame, out of the way of frames whose flow is known.
    #[cold]
    pub(super) fn decide_closely(&self, frame: &Frame) -> Decision {
        self.decide(frame)
    }

    /// Decides who gets a frame.
    #[must_use]
    pub fn decide(&self, frame: &Frame) -> Decision {
        let sender = frame.origin.sender();
        if let Some(reason) = self.violation(frame, sender) {
            return Decision { dropped: Some(reason), ..Decision::default() };
        }
        if !sender.is_empty() && self.is_too_long(frame.length) {
            return Decision { dropped: Some(Reason::TooLong), ..Decision::default() };
        }
        let from_uplink = sender.is_empty();
        let switched = from_uplink || self.loopback;
        let matched = self.matching(frame.dst, from_uplink);
        let wanted = if switched { matched.ports & self.in_vlan(frame.vlan) } else { Ports::NONE };
        // A station that is certainly here is not looked for outside as well. A virtual router may be outside though a port
        // has its address: that one stands by.
        let one_station = !frame.dst.is_group() && !frame.dst.is_virtual_router();
        let here = matched.exact && !wanted.is_empty() && one_station;
        let stays = here || self.is_local_vlan(frame.vlan);
        let itself = sender & !self.own_loopback;
        let others = wanted & !itself;
        let enabled = others & self.enabled;
        let fitting = self.fitting(enabled, frame.length, frame.vlan.is_some());
        let mut ports = if self.replicate { fitting } else { fitting.first() };
        let uplink = !(from_uplink || stays);
        if self.mirrors.any() {
            let copies = self.mirrors.copies(from_uplink, ports, uplink, frame.vlan);
            ports |= self.fitting(copies & self.enabled & !itself, frame.length, frame.vlan.is_some());
        }
        let dropped = match (ports.is_empty(), uplink) {
            (true, false) if wanted.is_empty() => Some(Reason::Unwanted),
            (true, false) if others.is_empty() => Some(Reason::OnlySender),
            (true, false) if enabled.is_empty() => Some(Reason::Disabled),
            (true, false) => Some(Reason::TooLong),
            _ => None,
        };
        let replicated = self.replicate && frame.dst.is_group();
        Decision { ports, uplink, replicated, inexact: !matched.exact, dropped }
    }

    /// What a port must not send. The uplink, and a switch that is one port's own, may send anything.
    fn violation(&self, frame: &Frame, sender: Ports) -> Option<Reason> {
        if sender.is_empty() || !self.shared {
            return None;
        }
        if self.guests.meets(sender) && self.keeps_local(frame.dst) {
            return Some(Reason::LinkControl);
        }
        if self.check_source.meets(sender) && !self.exact.ports(frame.src).meets(sender) {
            return Some(Reason::SourceSpoofed);
        }
        let outside = frame.vlan.is_some_and(|tag| !self.vlans.members(tag).meets(sender));
        (self.check_vlan.meets(sender) && outside).then_some(Reason::VlanSpoofed)
    }

    /// Returns true for a link-local destination that guests' frames must not have (IEEE 802.1Q-2022, table 8-1). A pause
    /// frame would stop the whole link, other guests' traffic included (CVE-2015-1142857).
    fn keeps_local(&self, dst: MacAddress) -> bool {
        let [head @ .., last] = dst.0;
        let is_local = head == [0x01, 0x80, 0xc2, 0, 0] && last < 0x10;
        is_local && (!self.forwards_link_local || last == PAUSE)
    }

    fn matching(&self, dst: MacAddress, from_uplink: bool) -> Match {
        if self.ignore_address {
            return Match::inexact(self.all);
        }
        if dst.is_group() {
            return self.matching_group(dst);
        }
        let exact = self.exact.ports(dst);
        if !exact.is_empty() {
            return Match { ports: exact, exact: true };
        }
        let hits = self.matching_inexactly(dst);
        Match::inexact(if hits.is_empty() && from_uplink { self.default_ports } else { hits })
    }

    /// The ports of a unicast hash hit.
    fn matching_inexactly(&self, dst: MacAddress) -> Ports {
        if self.unicast.hit(dst, self.hash_shift) { self.unicast_hits } else { Ports::NONE }
    }

    /// Whether a filter knows a unicast address.
    #[must_use]
    pub fn knows(&self, dst: MacAddress) -> bool {
        !self.exact.ports(dst).is_empty() || !self.matching_inexactly(dst).is_empty()
    }

    /// Broadcast and multicast. Where frames are not replicated, only an exact filter finds the one port that
    /// gets the frame; all others are for the default port's software to hand on (7.10.3.4).
    fn matching_group(&self, dst: MacAddress) -> Match {
        let broadcast = dst.is_broadcast();
        let exact = if broadcast { Ports::NONE } else { self.exact.ports(dst) };
        let hit = exact.is_empty() && !broadcast && self.multicast.hit(dst, self.hash_shift);
        let ports = match (self.alone, broadcast) {
            (true, _) if !exact.is_empty() => exact,
            (true, _) => self.default_ports,
            (false, true) => self.broadcast,
            (false, false) => {
                exact | self.every_multicast | if hit { self.multicast_hits } else { Ports::NONE }
            }
        };
        Match { ports, exact: broadcast || !exact.is_empty() }
    }

    /// The ports that the VLAN filter lets a frame through to.
    fn in_vlan(&self, vlan: Option<u16>) -> Ports {
        match vlan {
            _ if !self.filter_vlans => self.all,
            None => self.untagged,
            Some(tag) if !self.vlans.is_accepted(tag) || tag & self.canonical.0 != self.canonical.1 => {
                Ports::NONE
            }
            Some(tag) if self.shared => self.vlans.members(tag),
            Some(_) => self.all,
        }
    }

    fn is_local_vlan(&self, vlan: Option<u16>) -> bool {
        self.shared && vlan.is_some_and(|tag| self.vlans.is_local(tag))
    }
}
