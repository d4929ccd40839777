//! Offload requests of a VF's packets. `tx_ring` reads their descriptors. Offloads for tunnels are not
//! supported.

use avf::descriptor::tx::{TxContextDescriptor, TxDataDescriptor, TxIpHeaderKind, TxL4Checksum};
use offload::OffloadRequest;
use plane::frame::TransportProtocol;
use rings::PacketOffloads;
use serde::{Deserialize, Serialize};

/// Offload requests in a packet's transmit descriptors.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct DescriptorOffloads {
    /// First data descriptor of the packet: headers, checksums, tag.
    pub first: TxDataDescriptor,
    /// Context descriptor of the packet, if there is one: segmentation, tag.
    pub context: Option<TxContextDescriptor>,
    /// Number of descriptors that the packet takes in the ring.
    pub descriptors: u32,
}

impl PacketOffloads for DescriptorOffloads {
    /// Returns the VLAN tag to insert: the data descriptor's (L2TAG1), or else the context's (L2TAG2).
    #[inline]
    fn tag(&self) -> Option<u16> {
        self.first.tag.or(self.context.and_then(|context| context.tag2))
    }

    #[inline]
    fn request(&self) -> OffloadRequest {
        request(&self.first)
    }

    #[inline]
    fn mss(&self) -> Option<u16> {
        self.context.filter(|context| context.segment).map(|context| context.mss)
    }

    fn describe(&self, bytes: usize) -> bool {
        let payload = bytes.checked_sub(self.request().payload_start());
        let described = self.context.map(|context| context.payload as usize);
        payload.is_some() && payload == described && self.first.ip != TxIpHeaderKind::None
    }
}

/// Returns the header lengths and requested checksums of a packet's first descriptor.
pub(crate) fn request(first: &TxDataDescriptor) -> OffloadRequest {
    OffloadRequest {
        mac_length: first.mac_length.into(),
        ip_length: first.ip_length.into(),
        l4_length: first.l4_length.into(),
        ipv4: matches!(first.ip, TxIpHeaderKind::V4 | TxIpHeaderKind::V4Checksum),
        l4: match first.l4 {
            TxL4Checksum::None => None,
            TxL4Checksum::Tcp => Some(TransportProtocol::Tcp),
            TxL4Checksum::Udp => Some(TransportProtocol::Udp),
            TxL4Checksum::Sctp => Some(TransportProtocol::Sctp),
        },
        ip_checksum: first.ip == TxIpHeaderKind::V4Checksum,
        l4_checksum: first.l4 != TxL4Checksum::None,
        seed_has_length: false,
    }
}
