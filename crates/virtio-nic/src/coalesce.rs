//! Joins TCP segments into larger packets for drivers that take unsegmented packets (GUEST_TSO4, GUEST_TSO6), as the hardware GRO of a
//! card does. A packet is delivered before another frame of its stream, and at the end of the burst.
//!
//! The plane counts segments, when they have reached their driver or are lost. A packet that finds too few receive buffers is
//! cut again, so that joining loses no segment.

use crate::joined::{MISSED, StreamReceiver, UncountedSegments};
use crate::limits::LONGEST_FRAME;
use crate::receive::FrameMissReason;
use crate::sink::uncut_header;
use crate::work::VirtioFramePathState;
use offload::coalesce::{CoalesceDecision, CoalescedPacket, FrameClass};
use offload::uncut;
use pcie::Bus;
use plane::frame::{Frame, HEADROOM};
use plane::tag::TAG;
use plane::{DeliveryError, DeliveryFlags, ForwardingPlane, FrameSink, PortIndex, UnsegmentedPacketLayout};
use virtio::net::{NetHeader, flag};

impl<B: Bus> VirtioFramePathState<'_, B> {
    /// Delivers a frame alone, or holds it in a packet: the error is then [`DeliveryError::Waits`]. Packets that the frame may not
    /// pass are delivered before.
    pub(crate) fn deliver_or_join(
        &mut self,
        port: PortIndex,
        frame: &mut Frame<'_>,
        about: DeliveryFlags,
        findings: &mut <Self as FrameSink>::Findings,
    ) -> Result<usize, DeliveryError> {
        if self.joins(port, frame, about) {
            return Err(DeliveryError::Waits);
        }
        self.scratch.joined.passing = true;
        let delivered = rings::deliver(self, port, frame, about, findings);
        self.scratch.joined.passing = false;
        delivered
    }

    /// Returns true if a frame is now held in a packet.
    fn joins(&mut self, port: PortIndex, frame: &mut Frame<'_>, about: DeliveryFlags) -> bool {
        let takes = [true, false].map(|ipv4| self.takes_uncut(port, ipv4));
        if !about.alone || takes == [false; 2] {
            self.deliver_joined_of(port);
            return false;
        }
        let receiver = StreamReceiver { port, about, tag: frame.tag };
        let sealed = frame.seal();
        let bytes = frame.untagged();
        let class = match FrameClass::of(bytes, sealed) {
            FrameClass::Segment(segment) if !takes[usize::from(!segment.is_ipv4())] => {
                FrameClass::Single(segment)
            }
            class => class,
        };
        loop {
            let same = |other: &StreamReceiver| other.port == port;
            match self.scratch.joined.packets.offer(receiver, (&class, bytes), same) {
                CoalesceDecision::Held => return true,
                CoalesceDecision::After(place) => self.deliver_joined(place),
                CoalesceDecision::Deliver => return false,
            }
        }
    }

    /// Delivers all held packets of a port.
    #[cold]
    pub(crate) fn deliver_joined_of(&mut self, port: PortIndex) {
        while let Some(place) = self.scratch.joined.packets.find(|receiver| receiver.port == port) {
            self.deliver_joined(place);
        }
    }

    /// Ends a burst: delivers all held packets, and has the plane count their segments.
    pub(crate) fn end_burst<const N: usize>(&mut self, plane: &mut ForwardingPlane<N>) {
        while !self.scratch.joined.packets.is_empty() {
            self.deliver_joined(0);
        }
        let joined = &mut self.scratch.joined;
        let mut ports = core::mem::take(&mut joined.ports);
        while ports != 0 {
            let port = PortIndex::of_field(ports.trailing_zeros());
            ports &= ports - 1;
            let Some(counts) = joined.uncounted.get_mut(usize::from(port.get())) else { return };
            let UncountedSegments { received: [local, uplink], missed } = core::mem::take(counts);
            plane.came_together(port, false, local);
            plane.came_together(port, true, uplink);
            for (reason, frames) in MISSED.into_iter().zip(missed) {
                plane.lost_joined(port, reason, frames);
            }
        }
    }

    /// Delivers the held packet in a place.
    fn deliver_joined(&mut self, place: usize) {
        let Some(mut packet) = self.scratch.joined.packets.take(place) else { return };
        let (receiver, segments) = (*packet.receiver(), packet.segments());
        let is_joined = segments.count > 1;
        let (bytes, layout) = packet.complete();
        match self.put_segment(&receiver, bytes, &layout, is_joined) {
            Ok(()) => {
                let device = self.devices.get_mut(usize::from(receiver.port.get()));
                if let Some(device) = device.filter(|_| is_joined) {
                    device.counters.coalesced_packets += 1;
                    device.counters.coalesced_frames += u64::from(segments.count);
                }
                self.scratch.joined.count(&receiver, segments.count.into(), segments.bytes);
            }
            Err(DeliveryError::Dropped) if is_joined => self.deliver_cut(&mut packet),
            Err(reason) => self.scratch.joined.count_missed(receiver.port, reason, segments.count.into()),
        }
        self.scratch.joined.packets.give_back(packet);
    }

    /// Cuts a packet again, and delivers as many of its segments as find receive buffers.
    #[cold]
    fn deliver_cut(&mut self, packet: &mut CoalescedPacket<StreamReceiver>) {
        let (receiver, mut left) = (*packet.receiver(), u64::from(packet.segments().count));
        let (bytes, layout) = packet.complete();
        let mut segment = core::mem::take(&mut self.scratch.joined.segment);
        segment.resize(HEADROOM + LONGEST_FRAME, 0);
        let bytes = &mut bytes[HEADROOM..];
        // Prepares the checksum for the segmentation.
        let cut = uncut::arrived(bytes, layout.ipv4, layout.mss, LONGEST_FRAME)
            .and_then(|layout| uncut::segments(&layout, bytes).ok());
        let mut reason = DeliveryError::Dropped;
        if let Some(mut cut) = cut {
            while let Some(length) = cut.write_next(&mut segment[HEADROOM..]) {
                match self.put_segment(&receiver, &mut segment[..HEADROOM + length], &layout, false) {
                    Ok(()) => self.scratch.joined.count(&receiver, 1, length as u64),
                    Err(missed) => {
                        reason = missed;
                        break;
                    }
                }
                left -= 1;
            }
        }
        self.scratch.joined.count_missed(receiver.port, reason, left);
        self.scratch.joined.segment = segment;
    }

    /// Puts a frame or a joined packet, behind [`HEADROOM`], into a receive ring. Its checksum is right.
    fn put_segment(
        &mut self,
        receiver: &StreamReceiver,
        bytes: &mut [u8],
        layout: &UnsegmentedPacketLayout,
        is_joined: bool,
    ) -> Result<(), DeliveryError> {
        let StreamReceiver { port, tag, .. } = *receiver;
        let Self { devices, scratch, bus } = self;
        let device = devices.get_mut(usize::from(port.get())).ok_or(DeliveryError::Disabled)?;
        let mut frame = Frame::new(bytes).ok_or(DeliveryError::Fault)?;
        frame.tag = tag;
        let pair = device.pair_of_packet(frame.untagged(), layout);
        let is_tagged = tag.is_some() && !device.strips_tags();
        let header = if is_joined {
            uncut_header(&layout.behind(if is_tagged { TAG } else { 0 }))
        } else {
            NetHeader { flags: flag::DATA_VALID, ..NetHeader::default() }
        };
        scratch.reached |= port.only().bits();
        let put = device.put(port, pair, (header, frame.delivered(is_tagged)), *bus);
        // The packet may be cut, without its tag.
        frame.untagged();
        put.map_err(FrameMissReason::reason)
    }
}
