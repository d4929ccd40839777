//! Messages of VLAN V2 about stripping and inserting tags: capabilities and settings. Filters by tag are in
//! [`super::filters`].

use super::list::MessageListElement;
use crate::bytes::{MessageFieldReader, MessageFieldWriter};
use alloc::vec::Vec;

/// Bits of [`VlanCapabilities`]: ether types and properties.
pub mod support {
    /// VLAN capability bit: tags of ether type 0x8100.
    pub const ETHERTYPE_8100: u32 = 1 << 0;
    /// VLAN capability bit: tags of ether type 0x88a8.
    pub const ETHERTYPE_88A8: u32 = 1 << 1;
    /// VLAN capability bit: the tag is in the L2TAG1 field of descriptors.
    pub const TAG_LOCATION_L2TAG1: u32 = 1 << 8;
    /// VLAN capability bit: the VF can switch the offload on and off.
    pub const TOGGLE: u32 = 1 << 31;
}

/// VLAN capabilities: 40 bytes. All zero means none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct VlanCapabilities {
    /// Ether types of outer VLAN tags that filters can match, as capability bits.
    pub filter_outer: u32,
    /// Ether types of inner VLAN tags that filters can match, as capability bits.
    pub filter_inner: u32,
    /// Ether type that VLAN filters match until the VF sets one.
    pub filter_initial: u32,
    /// Maximum number of a VF's VLAN filters.
    pub filters: u16,
    /// Ether types of outer tags that the card can strip, as capability bits.
    pub strip_outer: u32,
    /// Ether types of inner tags that the card can strip, as capability bits.
    pub strip_inner: u32,
    /// Ether types of outer tags that the card can insert, as capability bits.
    pub insert_outer: u32,
    /// Ether types of inner tags that the card can insert, as capability bits.
    pub insert_inner: u32,
    /// Ether type of tags that are stripped and inserted until the VF sets one.
    pub offload_initial: u32,
    /// Dependency between the ether types of stripping and insertion.
    pub ethertype_match: u8,
}

impl VlanCapabilities {
    /// Creates VLAN capabilities for one tag of ether type 0x8100: filtering, and stripping and insertion by L2TAG1.
    /// Linux and DPDK support these well.
    #[must_use]
    pub const fn one_tag(filters: u16) -> Self {
        let offload = support::ETHERTYPE_8100 | support::TAG_LOCATION_L2TAG1 | support::TOGGLE;
        Self {
            filter_outer: support::ETHERTYPE_8100,
            filter_inner: 0,
            filter_initial: support::ETHERTYPE_8100,
            filters,
            strip_outer: offload,
            strip_inner: 0,
            insert_outer: offload,
            insert_inner: 0,
            offload_initial: support::ETHERTYPE_8100,
            ethertype_match: 0,
        }
    }
}

impl MessageListElement for VlanCapabilities {
    const SIZE: usize = 40;

    fn read(from: &mut MessageFieldReader<'_>) -> Self {
        let (filter_outer, filter_inner, filter_initial) = (from.u32(), from.u32(), from.u32());
        let filters = from.u16();
        let _pad = from.u16();
        Self {
            filter_outer,
            filter_inner,
            filter_initial,
            filters,
            strip_outer: from.u32(),
            strip_inner: from.u32(),
            insert_outer: from.u32(),
            insert_inner: from.u32(),
            offload_initial: from.u32(),
            ethertype_match: from.u8(),
        }
    }

    fn write(&self, to: &mut Vec<u8>) {
        to.u32(self.filter_outer).u32(self.filter_inner).u32(self.filter_initial).u16(self.filters).u16(0);
        to.u32(self.strip_outer).u32(self.strip_inner).u32(self.insert_outer).u32(self.insert_inner);
        to.u32(self.offload_initial).u8(self.ethertype_match).zeros(3);
    }
}

/// VLAN offload that a capability or request names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VlanOffloadKind {
    /// VLAN offload: strips tags from received frames.
    Strip,
    /// VLAN offload: inserts tags into sent frames.
    Insert,
}

/// Ether types of the VLAN tags to strip or insert.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct VlanSetting {
    /// Ether types of outer VLAN tags.
    pub outer: u32,
    /// Ether types of inner VLAN tags.
    pub inner: u32,
    /// Number of the VSI whose tags are stripped or inserted.
    pub vsi: u16,
}

impl MessageListElement for VlanSetting {
    const SIZE: usize = 16;

    fn read(from: &mut MessageFieldReader<'_>) -> Self {
        Self { outer: from.u32(), inner: from.u32(), vsi: from.u16() }
    }

    fn write(&self, to: &mut Vec<u8>) {
        to.u32(self.outer).u32(self.inner).u16(self.vsi).zeros(6);
    }
}
