//! First messages of a VF's driver to the PF: version, capabilities, and the resources of the VF. The PF decides which
//! of the requested capabilities it offers.

use super::list::MessageListElement;
use crate::bytes::{MessageFieldReader, MessageFieldWriter};
use crate::ids::{HASH_KEY, LOOKUP_TABLE};
use alloc::vec::Vec;
use pcie::low::low_dword;
use serde::{Deserialize, Serialize};

/// Version of the messages between VF and PF.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename = "Version")]
pub struct VirtchnlVersion {
    /// Major version number of virtchnl.
    pub major: u32,
    /// Minor version number of virtchnl.
    pub minor: u32,
}

impl VirtchnlVersion {
    /// Virtchnl 1.0, in which GET_VF_RESOURCES carries no capabilities.
    pub const V1_0: Self = Self { major: 1, minor: 0 };
    /// Virtchnl version 1.1, which this crate implements.
    pub const V1_1: Self = Self { major: 1, minor: 1 };
}

impl MessageListElement for VirtchnlVersion {
    const SIZE: usize = 8;

    fn read(from: &mut MessageFieldReader<'_>) -> Self {
        Self { major: from.u32(), minor: from.u32() }
    }

    fn write(&self, to: &mut Vec<u8>) {
        to.u32(self.major).u32(self.minor);
    }
}

/// Set of virtchnl capabilities: requested by a VF, offered by a PF, or agreed by both.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename = "Capabilities")]
pub struct VfCapabilities(pub u32);

impl VfCapabilities {
    /// Capability: basic frame traffic.
    pub const L2: Self = Self(1 << 0);
    /// Capability: the VF configures RSS by admin queue commands. A PF must not offer this capability, because Linux
    /// skips RSS if it does.
    pub const RSS_AQ: Self = Self(1 << 3);
    /// Capability: the VF configures RSS by registers.
    pub const RSS_REG: Self = Self(1 << 4);
    /// Capability: the card writes descriptors back at the end of an interrupt interval.
    pub const WB_ON_ITR: Self = Self(1 << 5);
    /// Capability: the VF may request another number of queue pairs.
    pub const REQ_QUEUES: Self = Self(1 << 6);
    /// Capability: link events carry speeds in Mb/s.
    pub const ADV_LINK_SPEED: Self = Self(1 << 7);
    /// Capability: more than 16 queue pairs.
    pub const LARGE_NUM_QPAIRS: Self = Self(1 << 9);
    /// Capability: received frames may keep their frame check sequence.
    pub const CRC: Self = Self(1 << 10);
    /// Capability: VLAN filters and tag offloads by the messages 51 to 57.
    pub const VLAN_V2: Self = Self(1 << 15);
    /// Capability: VLAN filters and tag stripping by the messages 12, 13, 27 and 28.
    pub const VLAN: Self = Self(1 << 16);
    /// Capability: the VF polls instead of using interrupts.
    pub const RX_POLLING: Self = Self(1 << 17);
    /// Capability: the VF configures RSS by messages to the PF.
    pub const RSS_PF: Self = Self(1 << 19);
    /// Capability: offloads of tunnelled packets.
    pub const ENCAP: Self = Self(1 << 20);
    /// Capability: checksums of tunnelled packets.
    pub const ENCAP_CSUM: Self = Self(1 << 21);
    /// Capability: traffic classes with queues of their own (ADQ).
    pub const ADQ: Self = Self(1 << 23);
    /// Capability: segmentation of UDP datagrams. A VF that requests it also accepts an address that the PF assigns.
    pub const USO: Self = Self(1 << 25);
    /// Capability: flexible receive descriptors.
    pub const RX_FLEX_DESC: Self = Self(1 << 26);

    /// Capabilities of a VF with version 1.0, whose request carries none.
    pub const OF_VERSION_1_0: Self = Self::L2.and(Self::RSS_REG).and(Self::VLAN);

    /// Returns the union of both sets of capabilities.
    #[must_use]
    pub const fn and(self, others: Self) -> Self {
        Self(self.0 | others.0)
    }

    /// Returns the capabilities of this set that are not in `others`.
    #[must_use]
    pub const fn without(self, others: Self) -> Self {
        Self(self.0 & !others.0)
    }

    /// Returns the capabilities that are in both sets.
    #[must_use]
    pub const fn common(self, others: Self) -> Self {
        Self(self.0 & others.0)
    }

    /// Returns true if the set contains all capabilities of `others`.
    #[must_use]
    pub const fn has(self, others: Self) -> bool {
        self.0 & others.0 == others.0
    }
}

/// Resources of a VF: one virtual station interface (VSI) and its queue pairs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VfResources {
    /// Number of the VF's queue pairs.
    pub pairs: u16,
    /// Number of the VF's interrupt vectors, the mailbox's included.
    pub vectors: u16,
    /// Longest frame of the VF in bytes, tag and frame check sequence included; 0 is no limit.
    pub max_frame: u16,
    /// Capabilities that VF and PF have agreed on.
    pub capabilities: VfCapabilities,
    /// Number of the VF's VSI (virtual station interface), by which requests name it.
    pub vsi: u16,
    /// MAC address of the VF; zero lets the VF choose.
    pub mac: [u8; 6],
}

/// Type of a VF's virtual station interface (VSI).
const VSI_SRIOV: u32 = 6;

impl MessageListElement for VfResources {
    const SIZE: usize = 36;

    fn read(from: &mut MessageFieldReader<'_>) -> Self {
        let _vsis = from.u16();
        let (pairs, vectors, max_frame) = (from.u16(), from.u16(), from.u16());
        let capabilities = VfCapabilities(from.u32());
        let (_key, _table) = (from.u32(), from.u32());
        let vsi = from.u16();
        let (_pairs, _kind, _set) = (from.u16(), from.u32(), from.u16());
        Self { pairs, vectors, max_frame, capabilities, vsi, mac: from.array() }
    }

    fn write(&self, to: &mut Vec<u8>) {
        to.u16(1).u16(self.pairs).u16(self.vectors).u16(self.max_frame).u32(self.capabilities.0);
        to.u32(low_dword(HASH_KEY as u64)).u32(low_dword(LOOKUP_TABLE as u64));
        to.u16(self.vsi).u16(self.pairs).u32(VSI_SRIOV).u16(0).put(self.mac);
    }
}
