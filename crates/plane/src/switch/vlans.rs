//! VLAN membership: for each VLAN id, the member ports, whether its frames stay off the uplink, and whether the switch
//! accepts them. A table by id makes a look-up one load.

use crate::PortSet;
use alloc::boxed::Box;
use alloc::vec;

/// Number of VLAN ids (IEEE 802.1Q: 12 bits).
const IDS: usize = 4096;

/// Set of VLAN ids, a bit for each id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VlanIdSet([u32; IDS / 32]);

impl VlanIdSet {
    /// The empty set of VLAN ids.
    pub const NONE: Self = Self([0; IDS / 32]);

    /// Returns the set of VLAN ids whose word `n` is `word(n)`: its bit i is id 32 n + i.
    #[must_use]
    pub fn from_words(word: impl Fn(u32) -> u32) -> Self {
        let mut words = [0; IDS / 32];
        (0..).zip(&mut words).for_each(|(n, place)| *place = word(n));
        Self(words)
    }

    /// Adds the VLAN id of a tag to the set.
    pub fn add(&mut self, tag: u16) {
        self.0[id(tag) / 32] |= 1 << (id(tag) % 32);
    }

    /// Returns `true` if the set has the VLAN id of a tag.
    #[must_use]
    pub fn has(&self, tag: u16) -> bool {
        self.0[id(tag) / 32] & 1 << (id(tag) % 32) != 0
    }
}

/// Member ports and settings of each VLAN id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VlanTable {
    members: Box<[PortSet]>,
    local: VlanIdSet,
    accepted: VlanIdSet,
}

impl VlanTable {
    /// Creates a table of VLANs without members, which drops the frames of every VLAN.
    pub(super) fn new() -> Self {
        Self {
            members: vec![PortSet::NONE; IDS].into_boxed_slice(),
            local: VlanIdSet::NONE,
            accepted: VlanIdSet::NONE,
        }
    }

    /// Sets the VLANs that the switch accepts. Frames of all others are dropped.
    pub fn accept(&mut self, accepted: VlanIdSet) {
        self.accepted = accepted;
    }

    /// Adds ports to the VLAN of a tag. Frames of a `local` VLAN stay off the uplink.
    pub fn add(&mut self, tag: u16, ports: PortSet, local: bool) {
        self.members[id(tag)] |= ports;
        if local {
            self.local.add(tag);
        }
    }

    /// Returns the ports in the VLAN of a tag.
    pub(super) fn members(&self, tag: u16) -> PortSet {
        self.members[id(tag)]
    }

    /// Returns `true` if frames of a tag's VLAN stay off the uplink.
    pub(super) fn is_local(&self, tag: u16) -> bool {
        self.local.has(tag)
    }

    /// Returns `true` if the switch accepts frames of a tag's VLAN.
    pub(super) fn is_accepted(&self, tag: u16) -> bool {
        self.accepted.has(tag)
    }
}

fn id(tag: u16) -> usize {
    usize::from(tag) % IDS
}
