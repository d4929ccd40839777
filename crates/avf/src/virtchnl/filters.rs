//! Messages about a VF's receive filters: addresses, VLANs, promiscuity. The PF decides which of the requested filters
//! a VF gets.

use super::list::MessageListElement;
use crate::bytes::{MessageFieldReader, MessageFieldWriter};
use alloc::vec::Vec;

/// Flags of CONFIG_PROMISCUOUS_MODE.
pub mod promiscuity {
    /// Flag: the VF receives every frame to an individual address.
    pub const UNICAST: u16 = 1;
    /// Flag: the VF receives every frame to a group address.
    pub const MULTICAST: u16 = 2;
}

/// Purpose for which a VF uses an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EtherAddressType {
    /// The VF does not state the purpose of the address: its driver is older than the field.
    Legacy,
    /// The address is the VF's own (primary).
    Primary,
    /// The VF receives by this address in addition to its own.
    Extra,
    /// The purpose of the address is an undefined number.
    Other(u8),
}

/// Address that a VF receives frames by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EtherAddress {
    /// MAC address that the VF receives by.
    pub mac: [u8; 6],
    /// Purpose for which the VF uses the address.
    pub usage: EtherAddressType,
}

impl MessageListElement for EtherAddress {
    const SIZE: usize = 8;

    fn read(from: &mut MessageFieldReader<'_>) -> Self {
        let mac = from.array();
        let usage = match from.u8() & 3 {
            0 => EtherAddressType::Legacy,
            1 => EtherAddressType::Primary,
            2 => EtherAddressType::Extra,
            other => EtherAddressType::Other(other),
        };
        Self { mac, usage }
    }

    fn write(&self, to: &mut Vec<u8>) {
        let usage = match self.usage {
            EtherAddressType::Legacy => 0,
            EtherAddressType::Primary => 1,
            EtherAddressType::Extra => 2,
            EtherAddressType::Other(other) => other,
        };
        to.put(self.mac).u8(usage).u8(0);
    }
}

/// VLAN id in the messages ADD_VLAN and DEL_VLAN.
impl MessageListElement for u16 {
    const SIZE: usize = 2;

    fn read(from: &mut MessageFieldReader<'_>) -> Self {
        from.u16()
    }

    fn write(&self, to: &mut Vec<u8>) {
        to.u16(*self);
    }
}

/// VLAN tag that a filter matches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct VlanFilterTag {
    /// VLAN tag that the filter matches: priority, DEI, id.
    pub tci: u16,
    /// Mask of the tag bits that count; 0 stands for the id.
    pub mask: u16,
    /// Ether type of the VLAN tag; 0 matches no tag.
    pub tpid: u16,
}

impl VlanFilterTag {
    fn read(from: &mut MessageFieldReader<'_>) -> Self {
        let tag = Self { tci: from.u16(), mask: from.u16(), tpid: from.u16() };
        let _pad = from.u16();
        tag
    }

    fn write(&self, to: &mut Vec<u8>) {
        to.u16(self.tci).u16(self.mask).u16(self.tpid).u16(0);
    }
}

/// VLAN filter in the messages ADD_VLAN_V2 and DEL_VLAN_V2.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct VlanFilter {
    /// Inner VLAN tag of frames that the filter matches.
    pub inner: VlanFilterTag,
    /// Outer VLAN tag of frames that the filter matches.
    pub outer: VlanFilterTag,
}

impl MessageListElement for VlanFilter {
    const SIZE: usize = 32;

    fn read(from: &mut MessageFieldReader<'_>) -> Self {
        Self { inner: VlanFilterTag::read(from), outer: VlanFilterTag::read(from) }
    }

    fn write(&self, to: &mut Vec<u8>) {
        self.inner.write(to);
        self.outer.write(to);
        to.zeros(16);
    }
}
