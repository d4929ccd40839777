//! Mirror rules: each copies the traffic of ports, of the uplink or of VLANs to ports. A rule may name several kinds of traffic. A
//! port gets one copy of a frame, even if several rules name it. Frames of a violating sender are dropped before and not mirrored.

use super::vlans::vlan as vlan_id;
use crate::PortSet;
use alloc::vec::Vec;
use units::VlanIds;

/// Mirror rule: kinds of frames, and the ports that get copies of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PortMirrorRule {
    /// Ports that get the mirror rule's copies.
    pub to: PortSet,
    /// Ports whose received frames the mirror rule copies.
    pub ports: PortSet,
    /// True if the mirror rule copies frames from the uplink.
    pub from_uplink: bool,
    /// True if the mirror rule copies frames to the uplink.
    pub to_uplink: bool,
    /// VLANs whose frames the mirror rule copies, from the uplink and from ports.
    pub vlans: VlanIds,
}

/// All mirror rules of a switch.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PortMirrorRules(Vec<PortMirrorRule>);

impl PortMirrorRules {
    /// List of mirror rules that is empty.
    pub const NONE: Self = Self(Vec::new());

    /// Adds a mirror rule to the list.
    pub fn add(&mut self, rule: PortMirrorRule) {
        self.0.push(rule);
    }

    /// Returns `true` if there is a mirror rule: most switches have none.
    pub(super) const fn any(&self) -> bool {
        !self.0.is_empty()
    }

    /// Returns the ports that get a copy of a frame that `ports` receive and, with `to_uplink`, the uplink.
    pub(super) fn copies(
        &self,
        from_uplink: bool,
        ports: PortSet,
        to_uplink: bool,
        vlan: Option<u16>,
    ) -> PortSet {
        self.0.iter().fold(PortSet::NONE, |copies, rule| {
            let named = rule.ports.meets(ports)
                || rule.from_uplink && from_uplink
                || rule.to_uplink && to_uplink
                || vlan.is_some_and(|tag| rule.vlans.contains(vlan_id(tag)));
            copies | if named { rule.to } else { PortSet::NONE }
        })
    }
}
