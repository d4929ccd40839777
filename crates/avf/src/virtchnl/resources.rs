//! What is settled first: version, capabilities, and what a VF has. Left out: what a PF offers.

use super::list::Item;
use crate::bytes::{Put, Reader};
use crate::ids::{HASH_KEY, LOOKUP_TABLE};
use alloc::vec::Vec;
use serde::{Deserialize, Serialize};

/// A version of the messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Version {
    /// Before the point.
    pub major: u32,
    /// Behind it.
    pub minor: u32,
}

impl Version {
    /// 1.0: GET_VF_RESOURCES carries no capabilities.
    pub const V1_0: Self = Self { major: 1, minor: 0 };
    /// 1.1, which this crate has.
    pub const V1_1: Self = Self { major: 1, minor: 1 };
}

impl Item for Version {
    const SIZE: usize = 8;

    fn read(from: &mut Reader<'_>) -> Self {
        Self { major: from.u32(), minor: from.u32() }
    }

    fn write(&self, to: &mut Vec<u8>) {
        to.u32(self.major).u32(self.minor);
    }
}

/// A set of capabilities: what a VF asks for, what a PF offers, and what both agree on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Capabilities(pub u32);

impl Capabilities {
    /// Frames.
    pub const L2: Self = Self(1 << 0);
    /// RSS set by admin queue commands: makes Linux skip RSS, so do not offer.
    pub const RSS_AQ: Self = Self(1 << 3);
    /// RSS set by registers.
    pub const RSS_REG: Self = Self(1 << 4);
    /// Write back at the end of an interval.
    pub const WB_ON_ITR: Self = Self(1 << 5);
    /// The VF may ask for another number of queue pairs.
    pub const REQ_QUEUES: Self = Self(1 << 6);
    /// Link speeds in Mb/s.
    pub const ADV_LINK_SPEED: Self = Self(1 << 7);
    /// More than 16 queue pairs.
    pub const LARGE_NUM_QPAIRS: Self = Self(1 << 9);
    /// Frame check sequences may be kept.
    pub const CRC: Self = Self(1 << 10);
    /// Tags by the messages 51 to 57.
    pub const VLAN_V2: Self = Self(1 << 15);
    /// Tags by the messages 12, 13, 27 and 28.
    pub const VLAN: Self = Self(1 << 16);
    /// The VF polls.
    pub const RX_POLLING: Self = Self(1 << 17);
    /// RSS set by messages.
    pub const RSS_PF: Self = Self(1 << 19);
    /// Tunnels.
    pub const ENCAP: Self = Self(1 << 20);
    /// Checksums in tunnels.
    pub const ENCAP_CSUM: Self = Self(1 << 21);
    /// Traffic classes.
    pub const ADQ: Self = Self(1 << 23);
    /// Segmentation of UDP. A VF that asks for it copes with an address that the PF gives.
    pub const USO: Self = Self(1 << 25);
    /// Flexible receive descriptors.
    pub const RX_FLEX_DESC: Self = Self(1 << 26);

    /// What an API 1.0 VF, which has no word for it, is taken to ask for.
    pub const OF_VERSION_1_0: Self = Self::L2.and(Self::RSS_REG).and(Self::VLAN);

    /// These and others.
    #[must_use]
    pub const fn and(self, others: Self) -> Self {
        Self(self.0 | others.0)
    }

    /// These without others.
    #[must_use]
    pub const fn without(self, others: Self) -> Self {
        Self(self.0 & !others.0)
    }

    /// What is in both.
    #[must_use]
    pub const fn common(self, others: Self) -> Self {
        Self(self.0 & others.0)
    }

    /// Whether all of `others` are among these.
    #[must_use]
    pub const fn has(self, others: Self) -> bool {
        self.0 & others.0 == others.0
    }
}

/// What a VF has: one virtual station interface (VSI) and its queue pairs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Resources {
    /// Queue pairs.
    pub pairs: u16,
    /// Vectors, the mailbox's among them.
    pub vectors: u16,
    /// The longest frame, tag and frame check sequence included; 0 is no limit.
    pub max_frame: u16,
    /// What was agreed on.
    pub capabilities: Capabilities,
    /// The VSI's number, which requests name.
    pub vsi: u16,
    /// The VF's address; zero lets it choose.
    pub mac: [u8; 6],
}

/// The type of a VF's VSI.
const VSI_SRIOV: u32 = 6;

impl Item for Resources {
    const SIZE: usize = 36;

    fn read(from: &mut Reader<'_>) -> Self {
        let _vsis = from.u16();
        let (pairs, vectors, max_frame) = (from.u16(), from.u16(), from.u16());
        let capabilities = Capabilities(from.u32());
        let (_key, _table) = (from.u32(), from.u32());
        let vsi = from.u16();
        let (_pairs, _kind, _set) = (from.u16(), from.u32(), from.u16());
        Self { pairs, vectors, max_frame, capabilities, vsi, mac: from.array() }
    }

    fn write(&self, to: &mut Vec<u8>) {
        to.u16(1).u16(self.pairs).u16(self.vectors).u16(self.max_frame).u32(self.capabilities.0);
        to.u32(HASH_KEY as u32).u32(LOOKUP_TABLE as u32);
        to.u16(self.vsi).u16(self.pairs).u32(VSI_SRIOV).u16(0).put(self.mac);
    }
}
