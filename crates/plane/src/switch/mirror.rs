//! Mirroring: rules, each of which copies the traffic of ports, of the uplink or of VLANs to ports. A rule may name several
//! kinds of traffic; a frame is copied once however many rules name it.
//!
//! Left out: whether who gets a copy may receive and has room, as for any other port. What the check of senders drops
//! never comes here.

use super::vlans::Ids;
use crate::Ports;
use alloc::vec::Vec;

/// A mirror rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rule {
    /// Who gets the copies.
    pub to: Ports,
    /// Ports whose received frames are copied.
    pub ports: Ports,
    /// Frames from the uplink are copied.
    pub from_uplink: bool,
    /// Frames to the uplink are copied.
    pub to_uplink: bool,
    /// VLANs whose frames are copied, wherever they come from.
    pub vlans: Ids,
}

/// The rules.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Mirrors(Vec<Rule>);

impl Mirrors {
    /// Nothing is mirrored.
    pub const NONE: Self = Self(Vec::new());

    /// Adds a rule.
    pub fn add(&mut self, rule: Rule) {
        self.0.push(rule);
    }

    /// Whether there is a rule at all: most switches have none.
    pub(super) const fn any(&self) -> bool {
        !self.0.is_empty()
    }

    /// The ports that get a copy of a frame which `ports` receive and which goes to the uplink if `to_uplink`.
    pub(super) fn copies(
        &self,
        from_uplink: bool,
        ports: Ports,
        to_uplink: bool,
        vlan: Option<u16>,
    ) -> Ports {
        self.0.iter().fold(Ports::NONE, |copies, rule| {
            let named = rule.ports.meets(ports)
                || rule.from_uplink && from_uplink
                || rule.to_uplink && to_uplink
                || vlan.is_some_and(|tag| rule.vlans.has(tag));
            copies | if named { rule.to } else { Ports::NONE }
        })
    }
}
