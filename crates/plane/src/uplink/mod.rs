//! The uplink: the trait by which frames leave and enter the plane and are captured, the uplink's state, and its counters
//! (`tally`). A family's MAC filters frames before the plane sees them.

mod tally;
mod uncut;

use crate::frame::TrustedChecksum;
use crate::watch::FrameObservation;
pub use tally::{GoodPackets, PacketOctetCounts, UplinkTally};
pub use uncut::UnsegmentedPacketLayout;

/// Connection of the plane to the outside, which sends and receives frames. A frame starts at its destination address
/// and has no frame check sequence.
pub trait UplinkWire {
    /// Sends a frame to the uplink. Returns `false` if it was dropped.
    fn transmit(&mut self, frame: &[u8]) -> bool;

    /// Receives the next frame into `into`. Returns its length, or `None` without a frame. A frame longer than `into` is dropped or
    /// truncated: `into` is longer than the longest frame that the plane takes.
    fn receive(&mut self, into: &mut [u8]) -> Option<usize>;

    /// Returns the trusted transport checksum of the last received frame, if the frame has one.
    fn sealed(&self) -> Option<TrustedChecksum> {
        None
    }

    /// Returns `true` if the uplink takes TCP packets that are not segmented.
    fn takes_uncut(&self) -> bool {
        false
    }

    /// Sends an unsegmented packet to the uplink. Returns `false` if all of it was dropped.
    fn transmit_uncut(&mut self, _packet: &[u8], _uncut: &UnsegmentedPacketLayout) -> bool {
        false
    }

    /// Receives the next packet, and returns it with [`HEADROOM`](crate::frame::HEADROOM) before it if it is TCP that is not
    /// segmented. The packet stays next: [`UplinkWire::receive`] returns its segments, unless
    /// [`UplinkWire::pass_uncut`] has removed it.
    fn uncut(&mut self) -> Option<(&mut [u8], UnsegmentedPacketLayout)> {
        None
    }

    /// Removes the packet that [`UplinkWire::uncut`] has returned: a port has received it unsegmented.
    fn pass_uncut(&mut self) {}

    /// Returns `true` if a capture wants to see frames.
    fn is_watched(&self) -> bool {
        false
    }

    /// Reports a frame to the captures.
    fn watch(&mut self, _seen: FrameObservation, _frame: &[u8]) {}
}

/// Uplink that is absent: drops every sent frame and receives none.
#[derive(Debug, Clone, Copy, Default)]
pub struct UnpluggedWire;

impl UplinkWire for UnpluggedWire {
    fn transmit(&mut self, _frame: &[u8]) -> bool {
        false
    }

    fn receive(&mut self, _into: &mut [u8]) -> Option<usize> {
        None
    }
}

/// State of the uplink during a poll.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct UplinkMode {
    /// True if the uplink has a link. Without one, frames to it are dropped.
    pub link: bool,
    /// True if frames from the uplink are received.
    pub receives: bool,
    /// True if frames to the uplink come back as received frames (loopback).
    pub loops_back: bool,
    /// True if frames whose length field exceeds the frame are counted and forwarded, not dropped.
    pub passes_truncated: bool,
}

/// Returns `true` if an untagged frame has a length field that exceeds the frame.
#[must_use]
pub(crate) fn is_truncated(frame: &[u8]) -> bool {
    let Some((head, payload)) = frame.split_first_chunk::<14>() else { return false };
    let length = u16::from_be_bytes([head[12], head[13]]);
    length <= LONGEST_PAYLOAD && usize::from(length) > payload.len()
}

/// Largest value of the length/type field that is a length (IEEE 802.3, 3.2.6).
const LONGEST_PAYLOAD: u16 = 1500;
