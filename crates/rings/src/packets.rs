//! Traits of a card for frames outside bursts: packets of a transmit queue that are sent one by one, and frames that
//! are parsed as a whole before they are received. `visit`, `send` and `deliver` move them.

use crate::buffers::BufferChain;
use crate::card::{BurstCard, InvalidChecksumRequest};
use crate::held::PausedPacketMemory;
use crate::packet::{NextPacketResult, PacketDropReason, PacketOffloads};
use offload::insert::insert;
use offload::segment::TcpFlagMasks;
use plane::frame::{Frame, HEADER, TrustedChecksum};
use plane::ledger::UncountedTraffic;
use plane::{DeliveryError, DeliveryFlags, FrameSource, PortIndex, TransmitQueueId, UncutOutcome};

/// Ether type of MAC control frames, which end at the MAC (IEEE 802.3, 31.3).
const MAC_CONTROL: [u8; 2] = [0x88, 0x08];

/// Card that sends packets one by one if they do not fit into a burst.
pub trait PacketTransmitter: BurstCard + FrameSource {
    /// Type of the offload requests in descriptors.
    type Orders: PacketOffloads;

    /// True if a frame that does not fit its checksum request is sent unchanged, false if it is dropped.
    const SENDS_MISFITS: bool = false;

    /// Returns the memory for a paused packet of a queue's port, or `None` if the port segments no packets.
    fn held(&mut self, sender: TransmitQueueId) -> Option<&mut PausedPacketMemory<Self::Orders>> {
        let _ = sender;
        None
    }

    /// Reads the descriptors of the next packet of a queue, if all of them are in the ring. Puts the buffers that they
    /// name into `buffers`. Returns the packet with its cost in frames of the budget. [`PacketTransmitter::end_take`]
    /// returns the descriptors of a packet to the driver; all other descriptors have been returned.
    fn take(
        &mut self,
        sender: TransmitQueueId,
        buffers: &mut BufferChain,
    ) -> (NextPacketResult<Self::Orders>, usize);

    /// Returns the descriptors of the packet that was taken last to the driver. `read` is true if the packet's bytes
    /// could be read. Returns false if the packet is dropped because of a fault, and `None` if the queue has stopped
    /// and has counted the fault.
    fn end_take(&mut self, sender: TransmitQueueId, read: bool) -> Option<bool>;

    /// Returns true if another packet may follow the last one in this visit to a queue.
    #[inline]
    fn may_follow(&self, sender: TransmitQueueId) -> bool {
        self.may_send(sender)
    }

    /// Counts a malformed packet of a sender in the card's own counters. The plane has counted it already.
    fn spoiled(&mut self, sender: TransmitQueueId, flaw: PacketDropReason) {
        let _ = (sender, flaw);
    }

    /// Returns the VLAN tag that a packet's descriptors request, if the sender's port may insert tags.
    #[inline]
    fn asked_tag(&self, sender: TransmitQueueId, orders: &Self::Orders) -> Option<u16> {
        let _ = sender;
        orders.tag()
    }

    /// Inserts the checksums that a packet of one frame requests.
    ///
    /// # Errors
    /// The frame does not fit the request, and is unchanged.
    #[inline]
    fn insert_sums(
        &mut self,
        sender: TransmitQueueId,
        orders: &Self::Orders,
        frame: &mut [u8],
    ) -> Result<Option<TrustedChecksum>, InvalidChecksumRequest> {
        let _ = sender;
        insert(frame, &orders.request()).map_err(|_| InvalidChecksumRequest)
    }

    /// Returns the masks of TCP flags for first, middle and last segments.
    fn flag_masks(&self) -> TcpFlagMasks {
        TcpFlagMasks::DEFAULT
    }

    /// Counts a packet to segment, once: with its outcome if it was passed on unsegmented, or with `None` if the card segments it.
    fn count_large(&mut self, sender: TransmitQueueId, passed_on: Option<UncutOutcome>) {
        let _ = (sender, passed_on);
    }

    /// Counts a frame that has left by the uplink.
    #[inline]
    fn left(&mut self, sender: TransmitQueueId, orders: &Self::Orders) {
        let _ = (sender, orders);
    }

    /// Ends a visit to a queue, in which the frames `sent` have left. Returns the number of DMA faults that are not
    /// counted yet.
    fn end_visit(&mut self, sender: TransmitQueueId, sent: &UncountedTraffic) -> u64 {
        let _ = (sender, sent);
        0
    }
}

/// Card whose ports receive frames one by one if these do not fit into a burst.
pub trait FrameReceiver: BurstCard {
    /// Type of the results of parsing a frame, which all ports that get the frame share.
    type Contents: Copy;

    /// Parses a frame, once for all ports that get it.
    fn look(&mut self, frame: &mut Frame<'_>, about: DeliveryFlags) -> Self::Contents;

    /// Puts a frame into as many buffers of a port as it needs, or into none. Returns the number of bytes there, check
    /// sequence excluded.
    ///
    /// # Errors
    /// [`DeliveryError`]: the port's owner sees nothing of the frame.
    fn put(
        &mut self,
        port: PortIndex,
        frame: &mut Frame<'_>,
        about: DeliveryFlags,
        contents: Self::Contents,
    ) -> Result<usize, DeliveryError>;

    /// Returns true if a frame from the uplink is for the MAC alone, as MAC control frames such as pause are (IEEE 802.3, 31.3).
    fn ends_in_mac(&mut self, frame: &[u8]) -> bool {
        frame.get(HEADER - 2..HEADER) == Some(&MAC_CONTROL)
    }

    /// Counts a frame from the uplink that is too short or too long. `bytes` is its length.
    fn wrong_length(&mut self, bytes: usize) {
        let _ = bytes;
    }

    /// Returns true if frames from the uplink are delivered with their check sequence.
    fn keeps_check_sequence(&self) -> bool {
        false
    }
}
