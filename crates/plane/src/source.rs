//! Sending side of a device's ports, and the interface of the plane while the plane takes frames from a transmit queue
//! (`visit`). The device chooses the next queue, since it knows which queues are ready.

use crate::PortIndex;
use crate::frame::{AddressPair, Frame};
use crate::ledger::{PortCounters, UncountedTraffic};
use crate::sink::{ForwardResult, FrameSink};
use crate::uncut::UncutOutcome;
use crate::uplink::UnsegmentedPacketLayout;
use crate::verdict::{BurstFrameVerdict, PortBurstSettings};
use units::WorkCost;

/// A transmit queue of a port. All queues of a port share its rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TransmitQueueId {
    /// Port that the queue belongs to.
    pub port: PortIndex,
    /// Number of the queue among its port's queues, 0 to 15.
    pub queue: u8,
}

/// Sending side of a device's ports, from which the plane takes frames.
pub trait FrameSource: FrameSink + Sized {
    /// Returns `true` if a queue may send now, apart from its rate: it is enabled, and its function may use the bus.
    fn may_send(&self, sender: TransmitQueueId) -> bool;

    /// Hands over the frames of a queue until `budget` frames have left, the next is not due
    /// ([`FrameForwarder::is_due`]), or the queue is empty. Returns `false` if the queue is empty. The device passes
    /// itself to [`FrameForwarder::send`], for frames to its own ports.
    fn hand_over<L: FrameForwarder>(&mut self, sender: TransmitQueueId, budget: usize, lane: &mut L) -> bool;

    /// Returns `true` if a transmit queue holds a frame or a part of one.
    fn has_more(&self, sender: TransmitQueueId) -> bool;
}

/// Lets a [`FrameSource`] hand frames to the forwarding plane, while the plane takes frames from one of the source's
/// transmit queues. Parameters of this type are named `lane`.
pub trait FrameForwarder {
    /// Forwards a finished frame to its receivers. `own` is the device with the sending port.
    fn send<S: FrameSink>(&mut self, own: &mut S, frame: &mut Frame<'_>) -> ForwardResult;

    /// Returns the settings for bursts of frames that the port sends; the plane decides each frame's receiver by them.
    /// Returns `None` if each frame is sent outside bursts.
    fn burst_terms(&self) -> Option<PortBurstSettings> {
        None
    }

    /// Decides the receiver of a frame in a burst by the frame's addresses, where the port has
    /// [`FrameForwarder::burst_terms`]. A burst has IP packets only: every other frame is sent outside bursts.
    fn judge(&mut self, ends: AddressPair, terms: PortBurstSettings) -> BurstFrameVerdict {
        let _ = (ends, terms);
        BurstFrameVerdict::ALONE
    }

    /// Returns the length in bytes of the longest frame of a burst that a port accepts.
    fn longest_taken(&self, to: PortIndex, terms: PortBurstSettings) -> usize {
        let _ = (to, terms);
        0
    }

    /// Returns how many frames of the given lengths the port's rate lets leave now.
    fn admits(&self, lengths: &[u32], terms: PortBurstSettings) -> usize {
        let _ = (lengths, terms);
        0
    }

    /// Counts frames of a burst that port `to` has received, and charges them to transmit rates. `to` is `None` if the frames are
    /// in a trunk: they count as received where they leave it. `lengths` are the frames' lengths in bytes, `bytes` their sum.
    fn count_run(&mut self, to: Option<PortIndex>, lengths: &[u32], bytes: u64, terms: PortBurstSettings) {
        let _ = (to, lengths, bytes, terms);
    }

    /// Returns `true` if the uplink accepts TCP packets that are not segmented.
    fn takes_uncut(&self) -> bool;

    /// Sends an unsegmented TCP packet to the uplink or to a port of `own`, once `complete` has finished its headers. Returns `None`,
    /// with the packet unchanged, if the family has to segment it.
    fn send_uncut<S: FrameSink>(
        &mut self,
        own: &mut S,
        packet: &mut Frame<'_>,
        uncut: &UnsegmentedPacketLayout,
        shortest: usize,
        complete: impl FnOnce(&mut [u8]),
    ) -> Option<UncutOutcome>;

    /// Returns `true` if the next frame may leave now: the port's transmit rate lets it, and the port has not overdrawn its
    /// account ([`crate::shares`]).
    fn is_due(&self) -> bool;

    /// Returns `true` if the port's account has credit for another packet.
    fn has_credit(&self) -> bool {
        true
    }

    /// Charges the port for work that the plane does not see, beside the frames that it gets.
    fn charge(&mut self, cost: WorkCost) {
        let _ = cost;
    }

    /// Returns the VLAN tag of a frame that the port sends, given the tag that its descriptor requests.
    fn tag(&self, asked: Option<u16>) -> Option<u16>;

    /// Returns the ether type of VLAN tags, and that of outer tags if they are in use.
    fn tag_types(&self) -> (u16, Option<u16>);

    /// Returns the traffic counters of the port.
    fn counters(&mut self) -> &mut PortCounters;

    /// Adds the frames that the port sent since the last call to the port's counters. Returns the added traffic.
    fn settle(&mut self) -> UncountedTraffic;
}
