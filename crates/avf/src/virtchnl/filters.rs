//! By what a VF receives: addresses, VLANs, promiscuity. Left out: what a VF may have.

use super::list::Item;
use crate::bytes::{Put, Reader};
use alloc::vec::Vec;

/// Flags of CONFIG_PROMISCUOUS_MODE.
pub mod promiscuity {
    /// Every frame to one station.
    pub const UNICAST: u16 = 1;
    /// Every frame to a group.
    pub const MULTICAST: u16 = 2;
}

/// What an address is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AddressUse {
    /// Not said: drivers before there were types.
    Legacy,
    /// The VF's own.
    Primary,
    /// One more.
    Extra,
    /// A number that means nothing.
    Other(u8),
}

/// An address to receive by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Address {
    /// The address.
    pub mac: [u8; 6],
    /// What it is for.
    pub usage: AddressUse,
}

impl Item for Address {
    const SIZE: usize = 8;

    fn read(from: &mut Reader<'_>) -> Self {
        let mac = from.array();
        let usage = match from.u8() & 3 {
            0 => AddressUse::Legacy,
            1 => AddressUse::Primary,
            2 => AddressUse::Extra,
            other => AddressUse::Other(other),
        };
        Self { mac, usage }
    }

    fn write(&self, to: &mut Vec<u8>) {
        let usage = match self.usage {
            AddressUse::Legacy => 0,
            AddressUse::Primary => 1,
            AddressUse::Extra => 2,
            AddressUse::Other(other) => other,
        };
        to.put(self.mac).u8(usage).u8(0);
    }
}

/// A VLAN of ADD_VLAN and DEL_VLAN.
impl Item for u16 {
    const SIZE: usize = 2;

    fn read(from: &mut Reader<'_>) -> Self {
        from.u16()
    }

    fn write(&self, to: &mut Vec<u8>) {
        to.u16(*self);
    }
}

/// A tag that a filter wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Tag {
    /// Priority, DEI, id.
    pub tci: u16,
    /// Which bits of it count; 0 is the id.
    pub mask: u16,
    /// The ether type of the tag; 0 is no tag.
    pub tpid: u16,
}

impl Tag {
    fn read(from: &mut Reader<'_>) -> Self {
        let tag = Self { tci: from.u16(), mask: from.u16(), tpid: from.u16() };
        let _pad = from.u16();
        tag
    }

    fn write(&self, to: &mut Vec<u8>) {
        to.u16(self.tci).u16(self.mask).u16(self.tpid).u16(0);
    }
}

/// A VLAN of ADD_VLAN_V2 and DEL_VLAN_V2.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct VlanFilter {
    /// The inner tag.
    pub inner: Tag,
    /// The outer tag.
    pub outer: Tag,
}

impl Item for VlanFilter {
    const SIZE: usize = 32;

    fn read(from: &mut Reader<'_>) -> Self {
        Self { inner: Tag::read(from), outer: Tag::read(from) }
    }

    fn write(&self, to: &mut Vec<u8>) {
        self.inner.write(to);
        self.outer.write(to);
        to.zeros(16);
    }
}
