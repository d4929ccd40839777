//! The traits of a family's careful way: the next packet of a transmit queue, and a frame that has to be looked at closely before it is
//! received. Left out: the way itself (`visit`, `send`, `arrive`).

use crate::buffers::Buffers;
use crate::card::{Card, Misfit};
use crate::held::Held;
use crate::packet::{Flaw, Orders, Taken};
use offload::insert::insert;
use offload::segment::FlagMasks;
use plane::frame::{Frame, Sealed};
use plane::ledger::Traffic;
use plane::{About, Missed, Port, Sender, Source};

/// A card whose packets travel one by one, where they are not plain frames.
pub trait Packets: Card + Source {
    /// Orders of descriptors.
    type Orders: Orders;

    /// A frame whose checksum request does not fit it leaves as its sender made it.
    const SENDS_MISFITS: bool = false;

    /// Returns the place of a packet of a queue's port that waits between two segments; `None` if the port cuts no packets.
    fn held(&mut self, sender: Sender) -> Option<&mut Held<Self::Orders>> {
        let _ = sender;
        None
    }

    /// Reads the descriptors of the next packet of a queue, if all of them are there, and replaces `buffers` by those that they
    /// name. Returns the packet with its cost in frames of the budget. The descriptors of a packet go back by
    /// [`Packets::end_take`]; all others have gone back.
    fn take(&mut self, sender: Sender, buffers: &mut Buffers) -> (Taken<Self::Orders>, usize);

    /// Gives back the descriptors of the packet that was taken last, whose bytes have been read, or cannot be `read`. Returns
    /// false if the packet is dropped because of a fault, and `None` if the queue has stopped and has counted the fault.
    fn end_take(&mut self, sender: Sender, read: bool) -> Option<bool>;

    /// Returns true if another packet may follow the last one in this visit.
    #[inline]
    fn may_follow(&self, sender: Sender) -> bool {
        self.may_send(sender)
    }

    /// Counts a malformed packet, which the plane has counted.
    fn spoiled(&mut self, sender: Sender, flaw: Flaw) {
        let _ = (sender, flaw);
    }

    /// Returns the VLAN tag that is inserted for a packet's sender.
    #[inline]
    fn asked_tag(&self, sender: Sender, orders: &Self::Orders) -> Option<u16> {
        let _ = sender;
        orders.tag()
    }

    /// Inserts the checksums that a packet of one frame asks for.
    ///
    /// # Errors
    /// The frame does not fit the request, and is unchanged.
    #[inline]
    fn insert_sums(&self, orders: &Self::Orders, frame: &mut [u8]) -> Result<Option<Sealed>, Misfit> {
        insert(frame, &orders.request()).map_err(|_| Misfit)
    }

    /// Returns the TCP flags of first, middle and last segments.
    fn flag_masks(&self) -> FlagMasks {
        FlagMasks::DEFAULT
    }

    /// Counts a packet that is cut into segments, by the card or beyond its uplink.
    fn cuts(&mut self) {}

    /// A frame has left by the uplink.
    #[inline]
    fn left(&mut self, sender: Sender, orders: &Self::Orders) {
        let _ = (sender, orders);
    }

    /// Ends a visit in which a queue has `sent` frames; returns the DMA faults that are not counted yet.
    fn end_visit(&mut self, sender: Sender, sent: &Traffic) -> u64 {
        let _ = (sender, sent);
        0
    }
}

/// A card whose ports receive frames one by one, where they are not plain.
pub trait Arrivals: Card {
    /// Result of a look at a frame, for all ports that get it.
    type Contents: Copy;

    /// Looks at a frame's contents.
    fn look(&mut self, frame: &mut Frame<'_>, about: About) -> Self::Contents;

    /// Puts a frame into as many buffers of a port as it needs, or into none; returns its bytes there, check sequence excluded.
    ///
    /// # Errors
    /// [`Missed`]: the port's owner sees nothing of the frame.
    fn put(
        &mut self,
        port: Port,
        frame: &mut Frame<'_>,
        about: About,
        contents: Self::Contents,
    ) -> Result<usize, Missed>;

    /// Returns true if a frame from the uplink is for the MAC alone.
    fn ends_in_mac(&mut self, frame: &[u8]) -> bool {
        let _ = frame;
        false
    }

    /// Counts bytes from the uplink that are too few or too many for a frame.
    fn wrong_length(&mut self, bytes: usize) {
        let _ = bytes;
    }

    /// Returns true if frames from the uplink are delivered with their check sequence.
    fn keeps_check_sequence(&self) -> bool {
        false
    }
}
