//! Delivers frames from the forwarding plane: chooses the queue pair and the header of a frame outside of a burst.
//! `receive` has the receive rings.

use crate::device::VirtioDevice;
use crate::receive::FrameMissReason;
use crate::work::VirtioFramePathState;
use offload::headers::{FrameHeaders, NetworkHeaderKind, TCP_CHECKSUM};
use offload::verify;
use pcie::Bus;
use plane::frame::Frame;
use plane::tag::TAG;
use plane::{DeliveryError, DeliveryFlags, FrameSink, PortIndex, UnsegmentedPacketLayout};
use rings::FrameReceiver;
use virtio::VirtioFeatures;
use virtio::net::{NetHeader, flag, gso};

/// Bytes of source and destination port at the start of a TCP or UDP header.
const PORTS: usize = 4;

/// Properties of a received frame that are the same for every VF that receives it.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct ReceivedFrameProperties {
    /// True if the checksum of the transport is right, and so is that of an IPv4 header.
    valid: bool,
    /// Hash of both addresses and both ports, equal for all frames of a flow.
    flow: u32,
}

impl ReceivedFrameProperties {
    fn of(bytes: &[u8], sealed: Option<plane::frame::TrustedChecksum>) -> Self {
        let headers = FrameHeaders::parse(bytes);
        let network = verify::network(bytes, &headers) != Some(false);
        let valid = network && verify::transport(bytes, &headers, sealed) == Some(true);
        let addresses = match headers.l3 {
            NetworkHeaderKind::None => 0..0,
            NetworkHeaderKind::Ipv4 => headers.l3_offset + 12..headers.l3_offset + 20,
            NetworkHeaderKind::Ipv6 => headers.l3_offset + 8..headers.l3_offset + 40,
        };
        let ports = if headers.l4_offset == 0 { 0..0 } else { headers.l4_offset..headers.l4_offset + PORTS };
        let part = |range| bytes.get::<core::ops::Range<usize>>(range).unwrap_or_default();
        Self { valid, flow: flow_hash(part(addresses), part(ports)) }
    }
}

/// Returns the hash of a flow's addresses and ports, which is the same in both directions.
fn flow_hash(addresses: &[u8], ports: &[u8]) -> u32 {
    let words = addresses.as_chunks::<4>().0.iter().map(|word| u32::from_le_bytes(*word));
    let ports = ports.as_chunks::<2>().0.iter().map(|port| u32::from(u16::from_le_bytes(*port)));
    let mixed = words.chain(ports).fold(0, |mixed, word| mixed ^ word);
    // Knuth's multiplicative hash: the high bits depend on all bits of the flow.
    mixed.wrapping_mul(0x9e37_79b1)
}

impl VirtioDevice {
    /// Returns the queue pair that receives the frames of a flow.
    #[inline]
    pub(crate) fn pair_of(&self, addresses: &[u8], ports: &[u8]) -> u8 {
        if self.pairs > 1 { self.pair_of_hash(flow_hash(addresses, ports)) } else { 0 }
    }

    /// Returns the queue pair that receives an unsegmented packet.
    pub(crate) fn pair_of_packet(&self, bytes: &[u8], uncut: &UnsegmentedPacketLayout) -> u8 {
        let addresses = if uncut.ipv4 { uncut.l3 + 12..uncut.l3 + 20 } else { uncut.l3 + 8..uncut.l3 + 40 };
        let part = |range| bytes.get::<core::ops::Range<usize>>(range).unwrap_or_default();
        self.pair_of(part(addresses), part(uncut.l4..uncut.l4 + PORTS))
    }

    #[inline]
    fn pair_of_hash(&self, hash: u32) -> u8 {
        ((u64::from(hash) * u64::from(self.pairs)) >> 32) as u8
    }
}

/// Returns the header of a packet that a driver receives unsegmented. Linux accepts it only if the segments' protocol is that of
/// the checksum.
pub(crate) fn uncut_header(uncut: &UnsegmentedPacketLayout) -> NetHeader {
    let field = |at: usize| u16::try_from(at).unwrap_or(u16::MAX);
    NetHeader {
        flags: flag::NEEDS_CSUM,
        gso_type: if uncut.ipv4 { gso::TCPV4 } else { gso::TCPV6 },
        header_length: field(uncut.payload),
        gso_size: uncut.mss,
        checksum_start: field(uncut.l4),
        checksum_offset: field(TCP_CHECKSUM),
        buffers: 1,
    }
}

impl FrameMissReason {
    /// Returns the plane's error for the reason.
    pub(crate) fn reason(self) -> DeliveryError {
        match self {
            Self::Disabled => DeliveryError::Disabled,
            Self::NoBuffer => DeliveryError::Dropped,
            Self::Fault => DeliveryError::Fault,
        }
    }
}

impl<B: Bus> FrameSink for VirtioFramePathState<'_, B> {
    type Findings = Option<ReceivedFrameProperties>;

    const RECEIVES_UNCUT: bool = true;

    fn takes_uncut(&self, port: PortIndex, ipv4: bool) -> bool {
        let wanted = if ipv4 { VirtioFeatures::GUEST_TSO4 } else { VirtioFeatures::GUEST_TSO6 };
        let wanted = wanted.with(VirtioFeatures::GUEST_CSUM);
        self.devices.get(usize::from(port.get())).is_some_and(|device| device.accepted.contains(wanted))
    }

    fn deliver_uncut(
        &mut self,
        port: PortIndex,
        packet: &mut Frame<'_>,
        uncut: &UnsegmentedPacketLayout,
        about: DeliveryFlags,
    ) -> Result<(), DeliveryError> {
        if self.scratch.away.has(port) {
            return Err(self.cross(port, packet, about, Some(*uncut)));
        }
        if self.scratch.joined.must_leave() {
            self.deliver_joined_of(port);
        }
        let Self { devices, scratch, bus } = self;
        let device = devices.get_mut(usize::from(port.get())).ok_or(DeliveryError::Disabled)?;
        let pair = device.pair_of_packet(packet.untagged(), uncut);
        let strips = device.strips_tags();
        let shift = if packet.tag.is_some() && !strips { TAG } else { 0 };
        let bytes = packet.delivered(!strips);
        scratch.reached |= port.only().bits();
        device
            .put(port, pair, (uncut_header(&uncut.behind(shift)), bytes), *bus)
            .map_err(FrameMissReason::reason)?;
        device.counters.passed_uncut += 1;
        Ok(())
    }

    #[inline(always)]
    fn deliver(
        &mut self,
        port: PortIndex,
        frame: &mut Frame<'_>,
        about: DeliveryFlags,
        findings: &mut Option<ReceivedFrameProperties>,
    ) -> Result<usize, DeliveryError> {
        if self.scratch.away.has(port) {
            return Err(self.cross(port, frame, about, None));
        }
        if self.scratch.joined.enabled {
            return self.deliver_or_join(port, frame, about, findings);
        }
        rings::deliver(self, port, frame, about, findings)
    }
}

impl<B: Bus> FrameReceiver for VirtioFramePathState<'_, B> {
    type Contents = ReceivedFrameProperties;

    fn look(&mut self, frame: &mut Frame<'_>, _about: DeliveryFlags) -> ReceivedFrameProperties {
        let seal = frame.seal();
        ReceivedFrameProperties::of(frame.untagged(), seal)
    }

    fn put(
        &mut self,
        port: PortIndex,
        frame: &mut Frame<'_>,
        about: DeliveryFlags,
        contents: ReceivedFrameProperties,
    ) -> Result<usize, DeliveryError> {
        let Self { devices, scratch, bus } = self;
        let device = devices.get_mut(usize::from(port.get())).ok_or(DeliveryError::Disabled)?;
        let flags = if contents.valid { flag::DATA_VALID } else { 0 };
        let pair = if device.pairs > 1 { device.pair_of_hash(contents.flow) } else { 0 };
        if about.leave_room(frame) && device.has_only_reserve(port, pair, *bus) {
            return Err(DeliveryError::Dropped);
        }
        let bytes = frame.delivered(!device.strips_tags());
        let header = NetHeader { flags, ..NetHeader::default() };
        scratch.reached |= port.only().bits();
        device.put(port, pair, (header, bytes), *bus).map_err(FrameMissReason::reason)?;
        Ok(bytes.len())
    }
}

impl<B: Bus> VirtioFramePathState<'_, B> {
    /// Returns filled receive buffers to all drivers, with one interrupt for each ring at most.
    pub(crate) fn give_back(&mut self) {
        let mut reached = core::mem::take(&mut self.scratch.reached);
        let moderation = (self.scratch.now, self.scratch.intervals);
        while reached != 0 {
            let port = PortIndex::of_field(reached.trailing_zeros());
            reached &= reached - 1;
            if let Some(device) = self.devices.get_mut(usize::from(port.get())) {
                device.give_back(port, moderation, self.bus);
            }
        }
    }
}
