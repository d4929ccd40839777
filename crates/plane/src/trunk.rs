//! Trunk between two parts of a device. Each part serves some of the device's ports, on a plane of its own with the same
//! switch tables. The part that decides on a frame puts it into a trunk, and the part with the receiving port delivers it.
//! Frames cross in batches ([`TrunkBatch`]).

use crate::PortIndex;
use crate::batch::{TrunkBatch, TrunkFrameHeader};
use crate::forward::ForwardingPlane;
use crate::frame::Frame;
use crate::sink::{DeliveryError, DeliveryFlags, FrameSink};
use crate::tag::TAG;
use crate::uplink::UnsegmentedPacketLayout;

/// Sends frames to the part of the device that serves the receiving port.
pub trait FrameTrunk: core::fmt::Debug + Send {
    /// Returns the batch that takes the next frames to a port, with room for a frame of `bytes` bytes. Returns `None` if the
    /// trunk has no room.
    fn batch(&mut self, port: PortIndex, bytes: usize) -> Option<&mut TrunkBatch>;

    /// Hands the batches with frames to their receivers, and wakes these. A batch may stay while its receiver is far behind.
    /// Returns true if one has stayed: the sender then calls again before it sleeps.
    fn flush(&mut self) -> bool;
}

impl dyn FrameTrunk {
    /// Puts a frame with the decision on it into the trunk. Returns the outcome as a sink reports it: [`DeliveryError::Waits`], or
    /// [`DeliveryError::Dropped`] if the trunk has no room.
    #[cold]
    pub fn cross(
        &mut self,
        port: PortIndex,
        frame: &mut Frame<'_>,
        about: DeliveryFlags,
        uncut: Option<UnsegmentedPacketLayout>,
    ) -> DeliveryError {
        let (header, bytes) = TrunkFrameHeader::of(port, frame, about, uncut);
        let put = self.batch(port, bytes.len()).is_some_and(|batch| batch.put(&header, bytes));
        if put { DeliveryError::Waits } else { DeliveryError::Dropped }
    }
}

impl<const N: usize> ForwardingPlane<N> {
    /// Delivers a frame from a trunk to its port, and counts it there. The plane on the other side of the trunk has
    /// counted it for its sender. No segment of a packet counts as shorter than `shortest` bytes.
    pub fn leave_trunk<S: FrameSink>(
        &mut self,
        header: &TrunkFrameHeader,
        frame: &mut Frame<'_>,
        shortest: usize,
        sinks: &mut S,
    ) {
        let TrunkFrameHeader { port, about, tag, sealed, uncut } = *header;
        frame.tag = tag;
        frame.set_seal(sealed);
        let ends = frame.ends();
        let Some(layout) = uncut else {
            self.deliver(port, about, ends, frame, sinks, &mut S::Findings::default());
            return;
        };
        let length = frame.untagged().len();
        let delivered = sinks.deliver_uncut(port, frame, &layout, about);
        let received_tag = if tag.is_some() && !about.strips { TAG } else { 0 };
        for length in layout.lengths(length).map(|length| length.max(shortest)) {
            match delivered {
                Ok(()) => self.count_received(port, about.from_uplink, ends, length + received_tag),
                Err(missed) => _ = self.count_lost(port, missed),
            }
        }
    }
}
