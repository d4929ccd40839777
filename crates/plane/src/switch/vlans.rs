//! VLAN membership: for each VLAN id, the member ports, whether its frames stay off the uplink, and whether the switch
//! accepts them. A table by id makes a look-up one load.

use crate::PortSet;
use alloc::boxed::Box;
use alloc::vec;
use units::{LAST_VLAN, VlanIds};

/// Number of VLAN ids (IEEE 802.1Q: 12 bits).
const IDS: usize = LAST_VLAN as usize + 1;

/// Member ports and settings of each VLAN id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VlanTable {
    members: Box<[PortSet]>,
    local: VlanIds,
    accepted: VlanIds,
}

impl VlanTable {
    /// Creates a table of VLANs without members, which drops the frames of every VLAN.
    pub(super) fn new() -> Self {
        Self {
            members: vec![PortSet::NONE; IDS].into_boxed_slice(),
            local: VlanIds::new(),
            accepted: VlanIds::new(),
        }
    }

    /// Sets the VLANs that the switch accepts. Frames of all others are dropped.
    pub fn accept(&mut self, accepted: VlanIds) {
        self.accepted = accepted;
    }

    /// Adds ports to the VLAN of a tag. Frames of a `local` VLAN stay off the uplink.
    pub fn add(&mut self, tag: u16, ports: PortSet, local: bool) {
        self.members[id(tag)] |= ports;
        if local {
            self.local.insert(vlan(tag));
        }
    }

    /// Returns the ports in the VLAN of a tag.
    pub(super) fn members(&self, tag: u16) -> PortSet {
        self.members[id(tag)]
    }

    /// Returns `true` if frames of a tag's VLAN stay off the uplink.
    pub(super) fn is_local(&self, tag: u16) -> bool {
        self.local.contains(vlan(tag))
    }

    /// Returns `true` if the switch accepts frames of a tag's VLAN.
    pub(super) fn is_accepted(&self, tag: u16) -> bool {
        self.accepted.contains(vlan(tag))
    }
}

/// Returns the VLAN id of a tag.
pub(super) fn vlan(tag: u16) -> u16 {
    tag & LAST_VLAN
}

fn id(tag: u16) -> usize {
    vlan(tag).into()
}
