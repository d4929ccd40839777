//! Decides on one frame: its receivers (82576 datasheet 7.10.3.3 and 7.10.3.4), frames between ports, and violations of the sender
//! (7.10.3.9). Whether a receiver has room is found at delivery.

use super::tables::SwitchTables;
use crate::contents::GuardReason;
use crate::{PortIndex, PortSet};
use units::MacAddress;

/// Last byte of the link-local address of pause frames (IEEE 802.3, annex 31B).
const PAUSE: u8 = 0x01;

/// Origin of a frame: the uplink or a port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FrameOrigin {
    /// Origin of the frame: the uplink.
    Uplink,
    /// Origin of the frame: this port sent it.
    Port(PortIndex),
}

impl FrameOrigin {
    /// Returns the sending port, or the empty set for a frame from the uplink.
    const fn sender(self) -> PortSet {
        match self {
            Self::Uplink => PortSet::NONE,
            Self::Port(port) => port.only(),
        }
    }
}

/// Properties of a frame on which the switch decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FrameMetadata {
    /// Destination MAC address of the frame.
    pub dst: MacAddress,
    /// Source MAC address of the frame.
    pub src: MacAddress,
    /// VLAN tag that the switch filters by, in the frame or about to be inserted.
    pub vlan: Option<u16>,
    /// Number of bytes in the frame, tag included, frame check sequence excluded.
    pub length: usize,
    /// Origin of the frame: a port or the uplink.
    pub origin: FrameOrigin,
}

/// Reason of the switch to drop a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SwitchDropReason {
    /// The frame is a link-local frame of a guest (to 01:80:c2:00:00:00 to 0f), since spanning tree and LACP are for switches
    /// only, or a MAC control frame to any address. A plane that forwards link-local frames drops pause and MAC control frames.
    LinkControl,
    /// The source address is not the sender's.
    SourceSpoofed,
    /// The sender is not in the frame's VLAN.
    VlanSpoofed,
    /// No filter of any port matches the frame.
    Unwanted,
    /// No filter but the sender's own matches the frame.
    OnlySender,
    /// Reception is disabled at every port whose filters match.
    Disabled,
    /// A guard of the sender drops the frame.
    Guarded(GuardReason),
    /// The frame is longer than all its receivers accept, or than ports may send.
    TooLong,
}

/// Decision of the switch on a frame: its receivers, or the reason to drop it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SwitchDecision {
    /// Ports that get the frame by the decision.
    pub ports: PortSet,
    /// True if the uplink gets the frame by the decision.
    pub uplink: bool,
    /// True if the receive options of replicated frames apply: to a broadcast or multicast while replication is on.
    pub replicated: bool,
    /// True if no exact filter has the frame's destination, and it is no broadcast: the driver has to compare
    /// addresses.
    pub inexact: bool,
    /// Reason to drop the frame; `None` if a port or the uplink gets the frame.
    pub dropped: Option<SwitchDropReason>,
}

impl SwitchDecision {
    /// Decision without a receiver and without a reason: the value of an empty entry in the flow cache.
    pub(super) const NOWHERE: Self =
        Self { ports: PortSet::NONE, uplink: false, replicated: false, inexact: false, dropped: None };
}

impl SwitchDecision {
    /// Returns `true` if the frame is dropped for a violation of its sender.
    pub(crate) fn is_refusal(&self) -> bool {
        use SwitchDropReason::{LinkControl, SourceSpoofed, VlanSpoofed};
        matches!(self.dropped, Some(LinkControl | SourceSpoofed | VlanSpoofed))
    }
}

/// Ports whose address filters match a frame's destination address.
struct AddressMatch {
    ports: PortSet,
    /// True if an exact filter matches, or the destination is the broadcast address.
    exact: bool,
}

impl AddressMatch {
    /// Returns the match of a hash filter or of the default port.
    const fn inexact(ports: PortSet) -> Self {
        Self { ports, exact: false }
    }
}

impl<const N: usize> SwitchTables<N> {
    /// Returns the ports that receive a frame, or the reason to drop the frame.
    #[must_use]
    pub fn decide(&self, frame: &FrameMetadata) -> SwitchDecision {
        let sender = frame.origin.sender();
        if let Some(reason) = self.violation(frame, sender) {
            return SwitchDecision { dropped: Some(reason), ..SwitchDecision::default() };
        }
        if !sender.is_empty() && self.is_too_long(frame.length) {
            return SwitchDecision { dropped: Some(SwitchDropReason::TooLong), ..SwitchDecision::default() };
        }
        let from_uplink = sender.is_empty();
        let switched = from_uplink || self.loopback;
        let matched = self.matching(frame.dst, from_uplink);
        let wanted = if switched { matched.ports & self.in_vlan(frame.vlan) } else { PortSet::NONE };
        // A frame to a local station does not leave by the uplink as well. A virtual router's does: a port that has its address may
        // be the backup, while the master is outside.
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
            (true, false) if wanted.is_empty() => Some(SwitchDropReason::Unwanted),
            (true, false) if others.is_empty() => Some(SwitchDropReason::OnlySender),
            (true, false) if enabled.is_empty() => Some(SwitchDropReason::Disabled),
            (true, false) => Some(SwitchDropReason::TooLong),
            _ => None,
        };
        let replicated = self.replicate && frame.dst.is_group();
        SwitchDecision { ports, uplink, replicated, inexact: !matched.exact, dropped }
    }

    /// Returns the violation of a port that sends a frame. The uplink may send anything, and so may the only port of a switch.
    fn violation(&self, frame: &FrameMetadata, sender: PortSet) -> Option<SwitchDropReason> {
        if sender.is_empty() || !self.shared {
            return None;
        }
        if self.guests.meets(sender) && self.keeps_local(frame.dst) {
            return Some(SwitchDropReason::LinkControl);
        }
        // A group that a port receives is in its filters too, but is no station's address.
        let own_source = !frame.src.is_group() && self.exact.ports(frame.src).meets(sender);
        if self.check_source.meets(sender) && !own_source {
            return Some(SwitchDropReason::SourceSpoofed);
        }
        let outside = frame.vlan.is_some_and(|tag| !self.vlans.members(tag).meets(sender));
        (self.check_vlan.meets(sender) && outside).then_some(SwitchDropReason::VlanSpoofed)
    }

    /// Returns true if ports may send no MAC control frame: stations beyond the uplink obey a pause to their own addresses too
    /// (IEEE 802.3, annex 31B). The only port of a switch may send anything.
    pub(crate) fn refuses_mac_control(&self) -> bool {
        self.shared
    }

    /// Returns true for a link-local destination that guests' frames must not have (IEEE 802.1Q-2022, table 8-1). A pause
    /// frame would stop the whole link, other guests' traffic included (CVE-2015-1142857).
    fn keeps_local(&self, dst: MacAddress) -> bool {
        let [head @ .., last] = dst.0;
        let is_local = head == [0x01, 0x80, 0xc2, 0, 0] && last < 0x10;
        is_local && (!self.forwards_link_local || last == PAUSE)
    }

    fn matching(&self, dst: MacAddress, from_uplink: bool) -> AddressMatch {
        if self.ignore_address {
            return AddressMatch::inexact(self.all);
        }
        if dst.is_group() {
            return self.matching_group(dst);
        }
        let exact = self.exact.ports(dst);
        if !exact.is_empty() {
            return AddressMatch { ports: exact, exact: true };
        }
        let hits = self.matching_inexactly(dst);
        AddressMatch::inexact(if hits.is_empty() && from_uplink { self.default_ports } else { hits })
    }

    /// Returns the ports whose hash filter matches a unicast address.
    fn matching_inexactly(&self, dst: MacAddress) -> PortSet {
        if self.unicast.hit(dst, self.hash_shift) { self.unicast_hits } else { PortSet::NONE }
    }

    /// Returns `true` if an address filter matches a unicast address.
    #[must_use]
    pub fn knows(&self, dst: MacAddress) -> bool {
        !self.exact.ports(dst).is_empty() || !self.matching_inexactly(dst).is_empty()
    }

    /// Matches a broadcast or multicast address. Without replication only an exact filter chooses the one port that gets the frame;
    /// all other frames go to the default port, whose software distributes them (7.10.3.4).
    fn matching_group(&self, dst: MacAddress) -> AddressMatch {
        let broadcast = dst.is_broadcast();
        let exact = if broadcast { PortSet::NONE } else { self.exact.ports(dst) };
        let hit = exact.is_empty() && !broadcast && self.multicast.hit(dst, self.hash_shift);
        let ports = match (self.alone, broadcast) {
            (true, _) if !exact.is_empty() => exact,
            (true, _) => self.default_ports,
            (false, true) => self.broadcast,
            (false, false) => {
                exact | self.every_multicast | if hit { self.multicast_hits } else { PortSet::NONE }
            }
        };
        AddressMatch { ports, exact: broadcast || !exact.is_empty() }
    }

    /// Returns the ports that the VLAN filter admits for a frame's VLAN, or for an untagged frame.
    fn in_vlan(&self, vlan: Option<u16>) -> PortSet {
        match vlan {
            _ if !self.filter_vlans => self.all,
            None => self.untagged,
            Some(tag) if !self.vlans.is_accepted(tag) || tag & self.canonical.0 != self.canonical.1 => {
                PortSet::NONE
            }
            Some(tag) if self.shared => self.vlans.members(tag),
            Some(_) => self.all,
        }
    }

    fn is_local_vlan(&self, vlan: Option<u16>) -> bool {
        self.shared && vlan.is_some_and(|tag| self.vlans.is_local(tag))
    }
}
