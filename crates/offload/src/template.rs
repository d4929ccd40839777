//! Completes the headers of a plain packet's segments in few steps: what the segments share is found once a packet, and
//! each field has a fixed offset. [`SegmentationState::complete_headers`] completes those of any packet, with the same
//! result.

use crate::checksum::PartialChecksum;
use crate::headers::{
    ETHERNET_HEADER, IPV4_CHECKSUM, IPV4_HEADER, TCP_CHECKSUM, TCP_HEADER, UDP_CHECKSUM, UDP_HEADER,
};
use crate::narrow::{length16, length32, low_word};
use crate::plain::{HEAD, PlainFrameKind, put};
use crate::segment::SegmentationState;
use plane::bytes::be16;

/// Offset in a plain packet of the length in the IPv4 header, bytes.
const LENGTH: usize = ETHERNET_HEADER + 2;
/// Offset in a plain packet of the identification in the IPv4 header, bytes.
const IDENTIFICATION: usize = ETHERNET_HEADER + 4;
/// Offset in a plain packet of the checksum in the IPv4 header, bytes.
const CHECKSUM: usize = ETHERNET_HEADER + IPV4_CHECKSUM;
/// Offset in a plain packet of the transport header, bytes.
const TRANSPORT: usize = ETHERNET_HEADER + IPV4_HEADER;
/// Offset in a plain packet of TCP's sequence number, bytes.
const SEQUENCE: usize = TRANSPORT + 4;
/// Offset in a plain packet of TCP's header length and flags, bytes.
const FLAGS: usize = TRANSPORT + 12;

/// Values that the headers of all segments of a plain packet share.
#[derive(Debug, Clone)]
pub struct SegmentTemplate {
    /// Properties of the packet's segments for their receiver.
    found: PlainFrameKind,
    /// Number of bytes in the transport header as the sender describes it.
    transport: usize,
    /// Number of bytes in the transport header as TCP itself gives it; 0 for UDP.
    least: usize,
    /// Sum of the IPv4 header, without the fields in which segments differ.
    network_sum: PartialChecksum,
    /// Sum of the transport header, without the fields in which segments differ.
    transport_sum: PartialChecksum,
    /// True if the card inserts the checksum of the IPv4 header.
    seals_network: bool,
    /// True if the transport header has an odd number of bytes.
    is_odd: bool,
    identification: u16,
    sequence: u32,
    /// TCP's header length and flags.
    flags: u16,
}

impl SegmentTemplate {
    /// Creates the template of a packet's segments from the packet's headers. `found` are the properties of the first
    /// segment. Returns `None` if the sender does not describe a plain packet ([`crate::OffloadRequest::plain`]).
    #[must_use]
    pub fn of(cut: &SegmentationState, headers: &[u8], found: PlainFrameKind) -> Option<Self> {
        let request = cut.request;
        let udp = request.plain()?.udp;
        let l4 = headers.get(TRANSPORT..request.payload_start())?;
        let (options, least) = if udp {
            (l4.get(UDP_HEADER..)?, 0)
        } else {
            (l4.get(TCP_HEADER..)?, usize::from(l4[12] >> 4) * 4)
        };
        let word = |at| be16(headers, at).unwrap_or(0);
        Some(Self {
            found,
            transport: l4.len(),
            least,
            network_sum: cut.same.ip,
            transport_sum: cut.same.l4.bytes(options),
            seals_network: cut.seal_ip,
            is_odd: !l4.len().is_multiple_of(2),
            identification: word(IDENTIFICATION),
            sequence: u32::from(word(SEQUENCE)) << 16 | u32::from(word(SEQUENCE + 2)),
            flags: word(FLAGS),
        })
    }

    /// Completes the headers of the segment that is `ahead` segments after the next one of `cut`. `head` begins with a
    /// copy of the packet's headers; `payload` is the number of payload bytes, `sum` their sum. Returns the properties
    /// of the segment, or `None` if it is not plain: its TCP header is longer than the rest of the segment.
    #[must_use]
    #[inline]
    pub fn complete(
        &self,
        (cut, ahead): (&SegmentationState, u32),
        head: &mut [u8; HEAD],
        payload: usize,
        sum: PartialChecksum,
    ) -> Option<PlainFrameKind> {
        let at = cut.next.wrapping_add(ahead);
        let transport = self.transport + payload;
        let sum = self.transport_sum.sum(sum.behind(usize::from(self.is_odd)));
        if self.found.is_udp() {
            put(head, TRANSPORT + 4, length16(transport));
            // The length counts twice: in the header, and in the pseudo header.
            let sum = sum.number(length32(transport) << 16 | length32(transport));
            put(head, TRANSPORT + UDP_CHECKSUM, sum.udp_checksum());
        } else {
            let sequence = self.sequence.wrapping_add(at.wrapping_mul(length32(cut.mss)));
            let flags = self.flags & (0xf000 | cut.mask(at));
            put(head, SEQUENCE, low_word((sequence >> 16).into()));
            put(head, SEQUENCE + 2, low_word(sequence.into()));
            put(head, FLAGS, flags);
            let sum = sum.number(sequence).number(u32::from(flags) << 16 | length32(transport));
            put(head, TRANSPORT + TCP_CHECKSUM, sum.checksum());
        }
        let found = self.network(
            head,
            transport + IPV4_HEADER,
            self.identification.wrapping_add(low_word(at.into())),
        );
        (self.least <= transport).then_some(found)
    }

    /// Completes the IPv4 header of a segment of `length` bytes. Returns the properties of the segment.
    #[inline]
    fn network(&self, head: &mut [u8; HEAD], length: usize, identification: u16) -> PlainFrameKind {
        put(head, LENGTH, length16(length));
        put(head, IDENTIFICATION, identification);
        let sum = self.network_sum.number(length32(length) << 16 | u32::from(identification));
        if self.seals_network {
            put(head, CHECKSUM, sum.checksum());
            return self.found;
        }
        let sent = u16::from_be_bytes([head[CHECKSUM], head[CHECKSUM + 1]]);
        self.found.with_network(sum.number(sent.into()).is_zero())
    }
}

#[cfg(test)]
mod tests {
    use super::SegmentTemplate;
    use crate::OffloadRequest;
    use crate::checksum::PartialChecksum;
    use crate::plain::PlainFrame;
    use crate::segment::{SegmentationState, TcpFlagMasks};
    use plane::frame::TransportProtocol;
    use proptest::prelude::{Strategy, any, prop, proptest};

    proptest! {
        #[test]
        fn header_template_and_full_completion_give_equal_headers(
            mut headers in prop::array::uniform32(any::<u8>()).prop_map(|half| [half; 4].concat()),
            (udp, ip_checksum, seed_has_length) in any::<(bool, bool, bool)>(),
            (more, payload, mss) in (0_usize..40, 0_usize..5000, 1_u16..1500),
            (offset, seeded) in (4_u8..16, any::<bool>()),
            sum: u32,
        ) {
            let (l4, shortest) =
                if udp { (TransportProtocol::Udp, 8) } else { (TransportProtocol::Tcp, 20) };
            let request = OffloadRequest {
                mac_length: 14,
                ip_length: 20,
                l4_length: shortest + more,
                ipv4: true,
                l4: Some(l4),
                ip_checksum,
                l4_checksum: true,
                seed_has_length,
            };
            let length = request.payload_start();
            headers[12..16].copy_from_slice(&[8, 0, 0x45, 0]);
            headers[20..24].copy_from_slice(&[0, 0, 64, if udp { 17 } else { 6 }]);
            headers[46] = offset << 4;
            if seeded {
                let whole = if seed_has_length { (shortest + more + payload) as u32 } else { 0 };
                let seed = PartialChecksum::of(&headers[26..34]).number(headers[23].into()).number(whole);
                let place = if udp { 40 } else { 50 };
                headers[place..place + 2].copy_from_slice(&seed.value().to_be_bytes());
            }
            let masks = TcpFlagMasks::DEFAULT;
            let cut = SegmentationState::new(&headers[..length], payload, &request, mss, masks).unwrap();
            let (mut general, mut template) = (cut.clone(), None);
            let sum = PartialChecksum::default().words(sum.into());
            for at in 0..cut.count() {
                let bytes = cut.chunk(at).unwrap().len();
                let mut expected = headers.clone();
                general.complete_headers(&mut expected[..length], bytes, sum);
                let plain = PlainFrame::of(expected.first_chunk().unwrap(), length + bytes);
                let plain = plain.and_then(|plain| plain.find_sealed(&general.sealed().unwrap()));
                if at == 0 {
                    let Some(found) = plain else { break };
                    template = SegmentTemplate::of(&cut, &headers[..length], found);
                }
                let template = template.as_ref().unwrap();
                let mut head = headers.clone();
                let found = template.complete((&cut, at), head.first_chunk_mut().unwrap(), bytes, sum);
                assert_eq!(found, plain, "segment {at}");
                assert!(plain.is_none() || head == expected, "segment {at}");
            }
        }
    }
}
