//! Offload requests of a transmit queue's packets, from their descriptors. `transmit` reads the descriptors.

use crate::offload::transmit::request;
use i82576::descriptor::orders::RawDataDescriptor;
use i82576::descriptor::tx::{AdvancedContextDescriptor, AnyTxDescriptor, parse};
use i82576::descriptor::{SIZE, legacy};
use offload::OffloadRequest;
use rings::{NextPacketResult, PacketDropReason};

/// Offload requests in a packet's transmit descriptors, and the context that they refer to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct DescriptorOffloads {
    /// Requests of the packet's first data descriptor: VLAN, segmentation, checksums.
    pub first: RawDataDescriptor,
    /// Context that the packet refers to. A legacy descriptor brings its own tag.
    pub context: AdvancedContextDescriptor,
    /// Checksum that the packet's legacy descriptor requests.
    pub checksum: Option<legacy::LegacyChecksumInsertion>,
}

impl rings::PacketOffloads for DescriptorOffloads {
    #[inline]
    fn tag(&self) -> Option<u16> {
        self.first.insert_vlan().then_some(self.context.vlan_tag)
    }

    #[inline]
    fn request(&self) -> OffloadRequest {
        request(self.first, &self.context)
    }

    #[inline]
    fn mss(&self) -> Option<u16> {
        self.first.segment().then_some(self.context.mss)
    }

    /// Returns true if the uplink may segment the packet instead of the card. A packet that requests a time stamp must
    /// be segmented by the card, which otherwise does not know the time of departure.
    fn may_leave_uncut(&self) -> bool {
        !self.first.time_stamp()
    }
}

/// Returns the packet of `length` bytes whose first descriptor is not in the advanced format. A legacy packet brings its
/// own tag and names no context. A reserved descriptor names no buffer, so its packet is dropped.
#[cold]
pub(super) fn of_legacy(first: &[u8; SIZE], length: usize) -> NextPacketResult<DescriptorOffloads> {
    match parse(first) {
        AnyTxDescriptor::Legacy(_) if length == 0 => NextPacketResult::Empty,
        AnyTxDescriptor::Legacy(legacy) => {
            let context = AdvancedContextDescriptor {
                vlan_tag: legacy.vlan_tag.unwrap_or(0),
                ..AdvancedContextDescriptor::default()
            };
            let first = RawDataDescriptor::from(&legacy.as_data());
            NextPacketResult::Packet(DescriptorOffloads { first, context, checksum: legacy.checksum })
        }
        _ => NextPacketResult::Dropped(PacketDropReason::Size),
    }
}
