//! A packet of a transmit queue: what its descriptors ask for, and why there is none. Left out: the family's descriptors.

use crate::frames::LONGEST_FRAME;
use offload::Request;
use offload::segment::{Cut, FlagMasks};
use offload::uncut::MAX_SEGMENTS;
use plane::tag::TAG;

/// Orders of a packet, as its descriptors and their context have them. By default there are none: the packet is a frame as it is.
pub trait Orders: Copy {
    /// Returns the VLAN tag to insert.
    fn tag(&self) -> Option<u16> {
        None
    }

    /// Returns the headers that they describe, and the checksums to insert.
    fn request(&self) -> Request {
        Request::default()
    }

    /// Returns the payload bytes of a segment; `None` if the packet is one frame.
    fn mss(&self) -> Option<u16> {
        None
    }

    /// Returns true if they describe a packet of `bytes` bytes.
    fn describe(&self, bytes: usize) -> bool {
        let _ = bytes;
        true
    }

    /// Returns true if an uplink may cut the packet in the card's place.
    fn may_leave_uncut(&self) -> bool {
        true
    }

    /// Returns true if `bytes` of the packet and its own tag make a frame that may be sent. The plane drops what a port's tag
    /// makes too long, for which the sender is not to blame.
    #[inline]
    fn fits(&self, bytes: usize) -> bool {
        bytes + if self.tag().is_some() { TAG } else { 0 } <= LONGEST_FRAME
    }

    /// Prepares a packet of `bytes` bytes for cutting by its headers. Returns `None` if it cannot be cut as they say.
    fn cut(&self, headers: &[u8], bytes: usize, masks: FlagMasks) -> Option<Cut> {
        let request = self.request();
        let payload = bytes.checked_sub(request.payload_start())?;
        let cut = Cut::new(headers, payload, &request, self.mss()?, masks).ok()?;
        let fits = self.fits(cut.longest()) && cut.count() <= MAX_SEGMENTS;
        (fits && self.describe(bytes)).then_some(cut)
    }
}

/// A packet whose bytes are in private memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Packet<O> {
    /// Orders of its descriptors.
    pub orders: O,
    /// Segments that have left.
    pub sent: u32,
}

/// Result of taking the next packet of a queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Taken<O> {
    /// No complete packet is there.
    Nothing,
    /// All descriptors of a packet are there. Its bytes have not been read.
    Packet(O),
    /// Descriptors without a byte were given back.
    Empty,
    /// A packet was consumed and is dropped.
    Dropped(Flaw),
}

/// The flaw of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flaw {
    /// More descriptors or bytes than a packet may have, or none.
    Size,
    /// A descriptor that no packet has.
    Descriptor,
    /// An offload that does not fit the packet.
    Offload,
    /// The ring or a buffer is not in the function's memory.
    Fault,
}
