//! A packet of a transmit queue: the requests of its descriptors, and the reasons to drop it. The card reads the
//! descriptors.

use crate::frames::LONGEST_FRAME;
use offload::OffloadRequest;
use offload::segment::{SegmentationState, TcpFlagMasks};
use offload::uncut::MAX_SEGMENTS;
use plane::tag::TAG;

/// Offload requests of a packet, from its descriptors and their context. By default there are none: the packet is one
/// frame, sent unchanged.
pub trait PacketOffloads: Copy {
    /// Returns the VLAN tag to insert into the packet.
    fn tag(&self) -> Option<u16> {
        None
    }

    /// Returns the packet's headers as its descriptors describe them, and the checksums to insert.
    fn request(&self) -> OffloadRequest {
        OffloadRequest::default()
    }

    /// Returns the number of payload bytes in a segment, or `None` if the packet is one frame.
    fn mss(&self) -> Option<u16> {
        None
    }

    /// Returns true if a packet of `bytes` bytes fits the lengths that its descriptors give.
    fn describe(&self, bytes: usize) -> bool {
        let _ = bytes;
        true
    }

    /// Returns true if the uplink may segment the packet instead of the card.
    fn may_leave_uncut(&self) -> bool {
        true
    }

    /// Returns true if `bytes` of the packet and its own tag make a frame that may be sent. The plane drops a frame
    /// that becomes too long by the port's tag, for which the sender is not to blame.
    #[inline]
    fn fits(&self, bytes: usize) -> bool {
        bytes + if self.tag().is_some() { TAG } else { 0 } <= LONGEST_FRAME
    }

    /// Prepares a packet of `bytes` bytes for segmentation by its headers. Returns `None` if the packet cannot be
    /// segmented as its descriptors request.
    fn cut(&self, headers: &[u8], bytes: usize, masks: TcpFlagMasks) -> Option<SegmentationState> {
        let request = self.request();
        let payload = bytes.checked_sub(request.payload_start())?;
        let cut = SegmentationState::new(headers, payload, &request, self.mss()?, masks).ok()?;
        let fits = self.fits(cut.longest()) && cut.count() <= MAX_SEGMENTS;
        (fits && self.describe(bytes)).then_some(cut)
    }
}

/// A packet whose bytes are in private memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CopiedPacket<O> {
    /// Offload requests of the packet's descriptors.
    pub orders: O,
    /// Number of the packet's segments that have left.
    pub sent: u32,
}

/// Result of taking the next packet of a transmit queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NextPacketResult<O> {
    /// The transmit queue has no complete packet.
    Nothing,
    /// All descriptors of a packet are in the ring. The packet's bytes have not been read.
    Packet(O),
    /// Descriptors without a byte were returned to the driver.
    Empty,
    /// A packet was taken from the ring and is dropped.
    Dropped(PacketDropReason),
}

/// Reason why a packet of a transmit queue is dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PacketDropReason {
    /// The packet has more descriptors or bytes than allowed, or none.
    Size,
    /// A descriptor of the packet is of a kind that no packet has.
    Descriptor,
    /// The requested offload does not fit the packet.
    Offload,
    /// The ring or a buffer is not in the function's memory.
    Fault,
}
