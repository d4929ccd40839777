//! Offload requests of a transmit queue's packets, from their descriptors. `transmit` reads the descriptors.

use crate::offload::transmit::request;
use i82576::descriptor::orders::Orders;
use i82576::descriptor::tx::{Context, Transmit, parse};
use i82576::descriptor::{SIZE, legacy};
use offload::Request;
use rings::{Flaw, Taken};

/// Offload requests of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PacketOrders {
    /// Requests of the packet's first data descriptor: VLAN, segmentation, checksums.
    pub first: Orders,
    /// Context that the packet refers to. A legacy descriptor brings its own tag.
    pub context: Context,
    /// Checksum that a legacy descriptor requests.
    pub checksum: Option<legacy::Checksum>,
}

impl rings::Orders for PacketOrders {
    #[inline]
    fn tag(&self) -> Option<u16> {
        self.first.insert_vlan().then_some(self.context.vlan_tag)
    }

    #[inline]
    fn request(&self) -> Request {
        request(self.first, &self.context)
    }

    #[inline]
    fn mss(&self) -> Option<u16> {
        self.first.segment().then_some(self.context.mss)
    }

    /// Returns false for a packet that requests a time stamp: the card knows the time of departure only if it cuts the
    /// packet itself.
    fn may_leave_uncut(&self) -> bool {
        !self.first.time_stamp()
    }
}

/// Returns the packet of `length` bytes whose first descriptor is not in the advanced format. A legacy packet brings its
/// own tag and names no context. A reserved descriptor names no buffer, so its packet is dropped.
#[cold]
pub(super) fn of_legacy(first: &[u8; SIZE], length: usize) -> Taken<PacketOrders> {
    match parse(first) {
        Transmit::Legacy(_) if length == 0 => Taken::Empty,
        Transmit::Legacy(legacy) => {
            let context = Context { vlan_tag: legacy.vlan_tag.unwrap_or(0), ..Context::default() };
            let first = Orders::from(&legacy.as_data());
            Taken::Packet(PacketOrders { first, context, checksum: legacy.checksum })
        }
        _ => Taken::Dropped(Flaw::Size),
    }
}
