//! Offload requests of a VF's packets. `tx_ring` reads their descriptors. Tunnels are not offered.

use avf::descriptor::tx::{Context, Data, Ip, L4};
use offload::Request;
use plane::frame::Transport;
use rings::Orders;
use serde::{Deserialize, Serialize};

/// Offload requests that a packet's descriptors make.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct PacketOrders {
    /// First data descriptor of the packet: headers, checksums, tag.
    pub first: Data,
    /// Context descriptor of the packet, if there is one: segmentation, tag.
    pub context: Option<Context>,
    /// Number of descriptors that the packet takes.
    pub descriptors: u32,
}

impl Orders for PacketOrders {
    /// Returns the VLAN tag of the data descriptor (L2TAG1), or else of the context (L2TAG2).
    #[inline]
    fn tag(&self) -> Option<u16> {
        self.first.tag.or(self.context.and_then(|context| context.tag2))
    }

    #[inline]
    fn request(&self) -> Request {
        request(&self.first)
    }

    #[inline]
    fn mss(&self) -> Option<u16> {
        self.context.filter(|context| context.segment).map(|context| context.mss)
    }

    fn describe(&self, bytes: usize) -> bool {
        let payload = bytes.checked_sub(self.request().payload_start());
        let described = self.context.map(|context| context.payload as usize);
        payload.is_some() && payload == described && self.first.ip != Ip::None
    }
}

/// Returns the header lengths and requested checksums of a packet's first descriptor.
pub(crate) fn request(first: &Data) -> Request {
    Request {
        mac_length: first.mac_length.into(),
        ip_length: first.ip_length.into(),
        l4_length: first.l4_length.into(),
        ipv4: matches!(first.ip, Ip::V4 | Ip::V4Checksum),
        l4: match first.l4 {
            L4::None => None,
            L4::Tcp => Some(Transport::Tcp),
            L4::Udp => Some(Transport::Udp),
            L4::Sctp => Some(Transport::Sctp),
        },
        ip_checksum: first.ip == Ip::V4Checksum,
        l4_checksum: first.l4 != L4::None,
    }
}
