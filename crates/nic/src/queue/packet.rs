//! What a transmit queue hands over: a packet, or why there is none. Left out: how its descriptors are read (`transmit`).

use i82576::descriptor::orders::Orders;
use i82576::descriptor::tx::{Context, Transmit, parse};
use i82576::descriptor::{SIZE, legacy};
use i82576::ids::{FCS, MAX_FRAME};
use plane::tag::TAG;

/// A packet, as its descriptors tell it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Packet {
    /// What the first data descriptor asks for: VLAN, segmentation, checksums.
    pub orders: Orders,
    /// The context that it refers to. A legacy descriptor brings its own tag.
    pub context: Context,
    /// The checksum that a legacy descriptor asks for.
    pub checksum: Option<legacy::Checksum>,
    /// Bytes gathered.
    pub length: usize,
    /// Segments that have left.
    pub sent: u32,
}

impl Packet {
    /// Returns the tag that it asks for.
    #[must_use]
    pub fn tag(&self) -> Option<u16> {
        self.orders.insert_vlan().then_some(self.context.vlan_tag)
    }

    /// Checks that `bytes` of the packet, its own tag and the check sequence make at most 9,728 bytes. The plane drops what a
    /// pool's tag makes too long: that is not the sender's doing.
    #[must_use]
    pub fn fits(&self, bytes: usize) -> bool {
        bytes + if self.orders.insert_vlan() { TAG } else { 0 } <= MAX_FRAME - FCS
    }
}

/// What taking the next packet came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Taken {
    /// Nothing, or nothing complete, is there.
    Nothing,
    /// A packet is in the staging buffer.
    Packet(Packet),
    /// Descriptors of the legacy format without a byte: they are given back, and that is all they are for.
    Empty,
    /// A packet was consumed and is dropped.
    Dropped(Invalid),
}

/// Why a packet was dropped before anything looked at its bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Invalid {
    /// More descriptors or bytes than a packet may have, or none.
    Size,
    /// Reserved descriptor type.
    Type,
    /// The ring or a buffer is not in the function's memory.
    Fault,
}

impl Taken {
    /// What was taken if the first descriptor is none of the advanced format. A legacy packet brings its own tag and names
    /// no context. What is reserved names no buffer, so there is no such packet.
    #[cold]
    pub(super) fn of_legacy(first: &[u8; SIZE], length: usize) -> Self {
        match parse(first) {
            Transmit::Legacy(_) if length == 0 => Self::Empty,
            Transmit::Legacy(legacy) => {
                let context = Context { vlan_tag: legacy.vlan_tag.unwrap_or(0), ..Context::default() };
                let orders = Orders::from(&legacy.as_data());
                Self::Packet(Packet { orders, context, checksum: legacy.checksum, length, sent: 0 })
            }
            _ => Self::Dropped(Invalid::Size),
        }
    }
}
