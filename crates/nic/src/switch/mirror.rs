//! Mirroring: up to four rules, each of which copies the traffic of pools, of the wire or of VLANs to a pool
//! (VMRCTL, VMRVM, VMRVLAN). A rule may name several kinds of traffic; a frame is copied once however many rules
//! name it.
//!
//! Left out: whether the pool that a rule names may receive and has room, as for any other pool. What anti-spoofing
//! drops never comes here.

use super::vlans;
use crate::file::RegisterFile;
use i82576::bits::{vlvf, vmrctl};
use i82576::ids::{MIRROR_RULES, VLAN_FILTERS};
use i82576::register as r;

/// A mirror rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Rule {
    /// The bit of the pool that gets the copies; 0 if the rule copies nothing.
    to: u8,
    /// Pools whose received frames are copied.
    pools: u8,
    from_wire: bool,
    to_wire: bool,
    /// VLANs whose frames are copied, wherever they come from.
    vlans: [u32; 128],
}

/// The rules.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Mirrors {
    rules: [Rule; MIRROR_RULES],
    any: bool,
}

impl Mirrors {
    /// Nothing is mirrored.
    pub(super) const NONE: Self = Self { rules: [Rule::NONE; MIRROR_RULES], any: false };

    pub(super) fn load(file: &RegisterFile) -> Self {
        let rules: [Rule; MIRROR_RULES] = core::array::from_fn(|i| Rule::load(file, i as u32));
        Self { any: rules.iter().any(|rule| rule.to != 0), rules }
    }

    /// Whether there is a rule at all: most ports have none.
    pub(super) const fn any(&self) -> bool {
        self.any
    }

    /// The pools that get a copy of a frame which `pools` receive and which goes to the wire if `to_wire`.
    pub(super) fn copies(&self, from_wire: bool, pools: u8, to_wire: bool, vlan: Option<u16>) -> u8 {
        self.rules.iter().fold(0, |copies, rule| {
            let named = rule.pools & pools != 0
                || rule.from_wire && from_wire
                || rule.to_wire && to_wire
                || vlan.is_some_and(|tag| vlans::bit(&rule.vlans, tag));
            copies | if named { rule.to } else { 0 }
        })
    }
}

impl Rule {
    const NONE: Self = Self { to: 0, pools: 0, from_wire: false, to_wire: false, vlans: [0; 128] };

    fn load(file: &RegisterFile, i: u32) -> Self {
        let control = file.get(r::vmrctl(i));
        let on = |kind: u32| control & kind != 0;
        if !on(vmrctl::VPME | vmrctl::UPME | vmrctl::DPME | vmrctl::VLME) {
            return Self::NONE;
        }
        let mut rule = Self {
            to: 1 << (control >> vmrctl::POOL_SHIFT & 7),
            pools: if on(vmrctl::VPME) { file.get(r::vmrvm(i)) as u8 } else { 0 },
            from_wire: on(vmrctl::UPME),
            to_wire: on(vmrctl::DPME),
            vlans: [0; 128],
        };
        let named = if on(vmrctl::VLME) { file.get(r::vmrvlan(i)) } else { 0 };
        for filter in (0..VLAN_FILTERS as u32).filter(|filter| named & 1 << filter != 0) {
            rule.add_vlan(file.get(r::vlvf(filter)));
        }
        rule
    }

    fn add_vlan(&mut self, filter: u32) {
        if filter & vlvf::VLANID_EN != 0 {
            let id = filter & vlvf::VLANID_MASK;
            self.vlans[id as usize / 32] |= 1 << (id % 32);
        }
    }
}
