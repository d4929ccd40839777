//! Packets that are being joined from TCP segments, and the segments that the plane has not counted yet.

use crate::limits::MAX_VFS;
use alloc::boxed::Box;
use alloc::{vec, vec::Vec};
use offload::coalesce::SegmentCoalescer;
use plane::ledger::TrafficSum;
use plane::tag::TAG;
use plane::{DeliveryError, DeliveryFlags, PortIndex};

/// Properties that all segments of a packet have in common, beside those of their stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct StreamReceiver {
    pub(crate) port: PortIndex,
    pub(crate) about: DeliveryFlags,
    pub(crate) tag: Option<u16>,
}

/// Segments whose delivery the plane has not counted yet.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct UncountedSegments {
    /// Segments that reached their driver: those of other ports, and those from the uplink.
    pub(crate) received: [TrafficSum; 2],
    /// Segments that did not, by the reasons of [`MISSED`].
    pub(crate) missed: [u64; MISSED.len()],
}

/// Reasons for which a packet does not reach its driver.
pub(crate) const MISSED: [DeliveryError; 3] =
    [DeliveryError::Dropped, DeliveryError::Disabled, DeliveryError::Fault];

/// Packets that are being joined during one call to the card.
#[derive(Debug)]
pub(crate) struct JoinedPackets {
    /// True if segments are joined.
    pub(crate) enabled: bool,
    pub(crate) packets: SegmentCoalescer<StreamReceiver>,
    /// True while a frame is delivered that may pass the held packets.
    pub(crate) passing: bool,
    pub(crate) uncounted: Box<[UncountedSegments]>,
    /// Bit mask of the VFs with uncounted segments.
    pub(crate) ports: u64,
    /// Segment of a packet that is cut again; empty before the first.
    pub(crate) segment: Vec<u8>,
}

impl Default for JoinedPackets {
    fn default() -> Self {
        Self {
            enabled: false,
            packets: SegmentCoalescer::default(),
            passing: false,
            uncounted: vec![UncountedSegments::default(); MAX_VFS].into(),
            ports: 0,
            segment: Vec::new(),
        }
    }
}

impl JoinedPackets {
    /// Returns true if a packet is held that a frame in a burst must not pass.
    #[inline]
    pub(crate) fn must_leave(&self) -> bool {
        !self.packets.is_empty() && !self.passing
    }

    /// Notes segments that have reached their driver.
    pub(crate) fn count(&mut self, receiver: &StreamReceiver, frames: u64, bytes: u64) {
        let StreamReceiver { port, about, tag } = *receiver;
        let Some(counts) = self.uncounted.get_mut(usize::from(port.get())) else { return };
        let sum = &mut counts.received[usize::from(about.from_uplink)];
        sum.packets += frames;
        sum.bytes += bytes + if tag.is_some() && !about.strips { TAG as u64 * frames } else { 0 };
        self.ports |= port.only().bits();
    }

    /// Notes segments that have not reached their driver. A fault stops the ring: one segment has met the fault, and the others find
    /// the ring disabled.
    pub(crate) fn count_missed(&mut self, port: PortIndex, reason: DeliveryError, frames: u64) {
        if reason == DeliveryError::Fault && frames > 1 {
            self.count_missed(port, DeliveryError::Disabled, frames - 1);
            return self.count_missed(port, reason, 1);
        }
        let counts = self.uncounted.get_mut(usize::from(port.get()));
        for (missed, count) in MISSED.iter().zip(counts.into_iter().flat_map(|counts| &mut counts.missed)) {
            *count += if *missed == reason { frames } else { 0 };
        }
        self.ports |= port.only().bits();
    }
}
