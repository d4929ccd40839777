//! Sends a large TCP packet to the uplink unsegmented, if only the uplink gets it and takes such packets. The switch decides on the
//! longest segment, and segments are counted one by one, so that counters show no difference.
//!
//! The family still segments a packet that another port or a mirror gets too, that its sender may not send, or whose port has a
//! rate, which spreads segments over time.

use crate::forward::Plane;
use crate::frame::Frame;
use crate::ports::PortIndex;
use crate::switch::FrameOrigin;
use crate::tag::{self, TAG};
use crate::uplink::{UnsegmentedLayout, UplinkWire};
use crate::watch::{FrameDirection, FrameDropReason, FrameObservation};

impl<const N: usize> Plane<N> {
    /// Sends an unsegmented packet of a port, without a tag in its bytes, once `complete` has finished its headers. No segment
    /// counts as shorter than `shortest` bytes. Returns `true` if the uplink took it, and `None`, with the packet unchanged, if
    /// the family has to segment it.
    pub(crate) fn forward_uncut<W: UplinkWire>(
        &mut self,
        port: PortIndex,
        packet: &mut Frame<'_>,
        uncut: &UnsegmentedLayout,
        shortest: usize,
        complete: impl FnOnce(&mut [u8]),
        wire: &mut W,
    ) -> Option<bool> {
        let usual = self.uplink.link && !self.uplink.loops_back && !self.pacing.limits(port);
        if !usual || self.tables.outer.is_some() || self.tables.inner != tag::TYPE {
            return None;
        }
        let (ends, more) = (packet.ends(), if packet.tag.is_some() { TAG } else { 0 });
        let (origin, length) = (FrameOrigin::Port(port), uncut.longest() + more);
        let decision = self.flows.decide(&self.tables, ends, packet.tag, length, origin);
        if decision.dropped.is_some() || !decision.ports.is_empty() || !decision.uplink {
            return None;
        }
        let bytes = packet.untagged_mut();
        let length = bytes.len();
        complete(bytes);
        let sent = wire.transmit_uncut(packet.tagged(), &uncut.behind(more));
        for length in uncut.lengths(length).map(|length| length.max(shortest) + more) {
            if sent {
                self.tally.sent(ends.destination(), length);
            }
            self.count_sent(port, ends, length, false, sent);
        }
        if wire.is_watched() {
            let lost = (!sent).then_some(FrameDropReason::Uplink);
            wire.watch(FrameObservation { at: origin, way: FrameDirection::In, lost: None }, packet.tagged());
            wire.watch(
                FrameObservation { at: FrameOrigin::Uplink, way: FrameDirection::Out, lost },
                packet.tagged(),
            );
        }
        Some(sent)
    }
}
