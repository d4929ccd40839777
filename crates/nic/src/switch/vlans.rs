//! VLAN membership: for each id its pools (VLVF), whether it is local, and whether the port takes it at all
//! (VFTA). A table by id costs 4 KiB and makes a look-up one load. Left out: tags in frames
//! (`offload::vlan`).

use crate::file::RegisterFile;
use i82576::bits::vlvf;
use i82576::ids::VLAN_FILTERS;
use i82576::register as r;

/// VLAN filters, by id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Vlans {
    members: [u8; 4096],
    local: [u32; 128],
    accepted: [u32; 128],
}

impl Vlans {
    pub(super) fn load(file: &RegisterFile) -> Self {
        let accepted = core::array::from_fn(|word| file.get(r::vfta(word as u32)));
        let mut vlans = Self { members: [0; 4096], local: [0; 128], accepted };
        for i in 0..VLAN_FILTERS as u32 {
            vlans.add(file.get(r::vlvf(i)));
        }
        vlans
    }

    fn add(&mut self, filter: u32) {
        if filter & vlvf::VLANID_EN != 0 {
            let id = (filter & vlvf::VLANID_MASK) as usize;
            self.members[id] |= (filter >> vlvf::POOLSEL_SHIFT) as u8;
            self.local[id / 32] |= u32::from(filter & vlvf::LVLAN != 0) << (id % 32);
        }
    }

    /// The pools in a tag's VLAN.
    pub(super) fn members(&self, tag: u16) -> u8 {
        self.members[id(tag)]
    }

    /// Whether a tag's VLAN stays off the wire.
    pub(super) fn is_local(&self, tag: u16) -> bool {
        bit(&self.local, tag)
    }

    /// Whether the port takes a tag's VLAN.
    pub(super) fn is_accepted(&self, tag: u16) -> bool {
        bit(&self.accepted, tag)
    }
}

fn id(tag: u16) -> usize {
    usize::from(tag & 0xfff)
}

/// Whether a tag's VLAN is in a set of ids.
pub(super) fn bit(set: &[u32; 128], tag: u16) -> bool {
    set[id(tag) / 32] & 1 << (id(tag) % 32) != 0
}
