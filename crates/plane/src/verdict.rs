//! Decides on frames in bursts: a verdict names the receiver of a plain frame by a number, so that frames with equal
//! verdicts are delivered together. Any other frame is sent outside bursts ([`crate::FrameForwarder::send`]).

use crate::PortIndex;
use crate::forward::ForwardingPlane;
use crate::frame::AddressPair;
use crate::switch::FrameOrigin;
use crate::tag::TAG;

/// Verdict on a frame in a burst: the port that receives it, or [`BurstFrameVerdict::ALONE`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BurstFrameVerdict(u32);

impl BurstFrameVerdict {
    /// Verdict that a frame is sent outside bursts ([`crate::FrameForwarder::send`]): it is for several ports, a mirror
    /// or the uplink, or it is dropped.
    pub const ALONE: Self = Self(1 << 31);
    const STRIPS: u32 = 1 << 8;
    const INEXACT: u32 = 1 << 9;

    /// Returns the verdict that one port gets the frame, without the tag if the port `strips` tags. `inexact` is true
    /// if no exact filter has the frame's destination.
    #[inline]
    fn to(port: PortIndex, strips: bool, inexact: bool) -> Self {
        let flag = |on: bool, bit: u32| if on { bit } else { 0 };
        Self(u32::from(port.get()) | flag(strips, Self::STRIPS) | flag(inexact, Self::INEXACT))
    }

    /// Returns the port that gets the frame, or `None` if the frame is sent outside bursts.
    #[must_use]
    #[inline]
    pub fn port(self) -> Option<PortIndex> {
        (self != Self::ALONE).then(|| PortIndex::of_field(self.0))
    }

    /// Returns `true` if the port gets the frame without its tag.
    #[must_use]
    #[inline]
    pub fn strips(self) -> bool {
        self.0 & Self::STRIPS != 0
    }

    /// Returns `true` if no exact filter has the frame's destination.
    #[must_use]
    #[inline]
    pub fn is_inexact(self) -> bool {
        self.0 & Self::INEXACT != 0
    }
}

/// Settings for bursts of frames that a port sends. The plane decides each frame's receiver by them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PortBurstSettings {
    /// VLAN tag that the plane puts into each frame of the burst.
    pub tag: Option<u16>,
    /// Number of bytes in the longest frame that the port may send, without the plane's tag. Longer frames are sent
    /// outside bursts.
    pub longest: u32,
}

impl<const N: usize> ForwardingPlane<N> {
    /// Returns the settings for bursts of frames that a port sends; the plane decides each frame's receiver by them.
    /// Returns `None` if each frame has to be sent outside bursts, because it is captured, counted by storm control,
    /// charged for crossing the plane, or may have two tags.
    pub(crate) fn burst_terms(&self, port: PortIndex, watched: bool) -> Option<PortBurstSettings> {
        let tables = &self.tables;
        let alone = watched
            || self.storm.limits.counts_unknown
            || self.pacing.limits_crossing()
            || tables.outer.is_some()
            || tables.guards.inspect_plain(port)
            || !self.flows.remembers();
        let tag = tables.transmit_tag(port, None);
        let bytes = tables.longest_sent().saturating_sub(tag_bytes(tag));
        (!alone).then_some(PortBurstSettings { tag, longest: u32::try_from(bytes).unwrap_or(u32::MAX) })
    }

    /// Returns the number of bytes in the longest frame of a burst that a port takes, without the tag that the plane
    /// puts into each frame.
    #[inline]
    pub(crate) fn longest_taken(&self, to: PortIndex, tag: Option<u16>) -> usize {
        self.tables.longest_taken(to, tag.is_some()).saturating_sub(tag_bytes(tag))
    }

    /// Decides the receiver of a port's frame in a burst. The frame is an IP packet without a tag of its own, so it is no MAC control
    /// frame, and is no longer than its sender may send and its receiver takes.
    #[inline]
    pub(crate) fn judge(
        &mut self,
        port: PortIndex,
        ends: AddressPair,
        tag: Option<u16>,
    ) -> BurstFrameVerdict {
        if ends.is_to_group() {
            return BurstFrameVerdict::ALONE;
        }
        // Length 0 fits every port, so the length decides nothing: the caller compares lengths.
        let decision =
            self.flows.decide((&self.tables, &mut self.claims), ends, tag, 0, FrameOrigin::Port(port));
        let single = decision.ports.single().filter(|_| !decision.uplink);
        let Some(to) = single else { return BurstFrameVerdict::ALONE };
        let strips = self.tables.strips(to, decision.replicated);
        if strips || tag.is_none() {
            BurstFrameVerdict::to(to, strips, decision.inexact)
        } else {
            BurstFrameVerdict::ALONE
        }
    }

    /// Counts frames of one burst that another port has received, or that are in a trunk: `lengths` are the frames' lengths without their tags,
    /// `bytes` is the sum of the lengths.
    #[inline]
    pub(crate) fn count_run(
        &mut self,
        from: PortIndex,
        to: Option<PortIndex>,
        tagged: bool,
        (lengths, bytes): (&[u32], u64),
    ) {
        let (frames, tag) = (lengths.len() as u64, if tagged { TAG } else { 0 });
        self.ledger.sent(from).add_run(true, frames, bytes + frames * tag as u64);
        if let Some(to) = to {
            self.ledger.received(to).add_run(true, frames, bytes);
        }
        if self.pacing.limits(from) {
            lengths.iter().for_each(|length| self.pacing.left(from, *length as usize + tag));
        }
    }
}

/// Returns the number of bytes of a tag that the plane puts into a frame.
#[inline]
fn tag_bytes(tag: Option<u16>) -> usize {
    if tag.is_some() { TAG } else { 0 }
}
