//! Tests every transport behind every header that may come before it: none to two tags, and IPv4 options or IPv6
//! extension headers. A checksum that the card inserts is found right on reception.

use super::frames::{ipv4_frame, ipv4_header, ipv6_frame, tcp4, tcp6, udp4, udp6};
use super::transmit::BOTH;
use super::{parsed, segmenter};
use crate::offload::receive::classify;
use crate::offload::transmit::insert;
use alloc::vec::Vec;
use i82576::descriptor::rx::status::{IPCS, IPE, L4CS, L4E, UDPCS};
use i82576::descriptor::tx::{AdvancedContextDescriptor, AdvancedDataDescriptor, L4PacketType};
use offload::crc::crc32c;

/// A frame with one combination of headers, the context that gives their lengths, and the range of its transport
/// checksum.
struct HeaderCombination {
    frame: Vec<u8>,
    context: AdvancedContextDescriptor,
    six: bool,
    field: core::ops::Range<usize>,
}

fn sctp() -> Vec<u8> {
    let mut packet = [0, 1, 0, 2, 0, 0, 0, 3, 0, 0, 0, 0, 9, 9, 9, 9].to_vec();
    let crc = crc32c(&[&packet]).to_le_bytes();
    packet[8..12].copy_from_slice(&crc);
    packet
}

/// Returns a frame for each combination of IP version, transport, number of VLAN tags, and IP options or extension
/// headers.
fn all() -> Vec<HeaderCombination> {
    let mut all = Vec::new();
    for (six, l4, segment) in [
        (false, L4PacketType::Tcp, tcp4(b"some payload")[34..].to_vec()),
        (false, L4PacketType::Udp, udp4(b"some payload")[34..].to_vec()),
        (false, L4PacketType::Sctp, sctp()),
        (true, L4PacketType::Tcp, tcp6(b"some payload")[54..].to_vec()),
        (true, L4PacketType::Udp, udp6(b"some payload")[54..].to_vec()),
        (true, L4PacketType::Sctp, sctp()),
    ] {
        for (tags, extended) in (0..3).flat_map(|tags| [(tags, false), (tags, true)]) {
            all.push(nested(six, l4, &segment, tags, extended));
        }
    }
    all
}

fn nested(six: bool, l4: L4PacketType, segment: &[u8], tags: usize, extended: bool) -> HeaderCombination {
    let (protocol, field) = match l4 {
        L4PacketType::Tcp => (6, 16..18),
        L4PacketType::Udp => (17, 6..8),
        _ => (132, 8..12),
    };
    let (frame, ip_length) = match (six, extended) {
        (false, _) => {
            let options: &[u8] = if extended { &[1; 12] } else { &[] };
            (ipv4_frame(ipv4_header(protocol, 0), options, 0, segment), 20 + options.len())
        }
        (true, false) => (ipv6_frame(protocol, segment), 40),
        (true, true) => {
            let (hop, destination) = ([60, 0, 1, 4, 0, 0, 0, 0], [protocol, 0, 1, 4, 0, 0, 0, 0]);
            (ipv6_frame(0, &[&hop[..], &destination, segment].concat()), 56)
        }
    };
    let tag = [0x81, 0, 0, 5].repeat(tags);
    let frame = [&frame[..12], &tag, &frame[12..]].concat();
    let at = 14 + 4 * tags + ip_length;
    let (mac_length, ip_length) = (14 + 4 * tags as u8, ip_length as u16);
    let context = AdvancedContextDescriptor {
        mac_length,
        ip_length,
        ipv4: !six,
        l4,
        ..AdvancedContextDescriptor::default()
    };
    HeaderCombination { frame, context, six, field: at + field.start..at + field.end }
}

/// Returns the checksum bits in a received frame's status: the verified checksums, and the wrong ones.
fn told(frame: &[u8]) -> (u32, u32) {
    let status = classify(frame, &parsed(frame), u32::MAX, None).status;
    (status & (IPCS | L4CS | UDPCS), status & (IPE | L4E))
}

fn seen(nested: &HeaderCombination) -> u32 {
    let ip = if nested.six { 0 } else { IPCS };
    L4CS | ip | if nested.context.l4 == L4PacketType::Udp { UDPCS } else { 0 }
}

#[test]
fn checksums_are_verified_behind_vlan_tags_and_ip_options() {
    for nested in all() {
        assert_eq!(told(&nested.frame), (seen(&nested), 0), "{:?}", nested.context);
        let mut spoiled = nested.frame.clone();
        *spoiled.last_mut().unwrap() ^= 1;
        assert_eq!(told(&spoiled), (seen(&nested), L4E), "{:?}", nested.context);
    }
}

/// Returns the value that a driver leaves in the transport checksum field: the folded sum of the pseudo header.
fn seed(nested: &HeaderCombination) -> u16 {
    let headers = parsed(&nested.frame);
    let packet = &nested.frame[headers.l3_offset..];
    let addresses = if nested.six { &packet[8..40] } else { &packet[12..20] };
    let protocol = if nested.context.l4 == L4PacketType::Tcp { 6 } else { 17 };
    let length = nested.frame.len() - headers.l4_offset;
    let words = addresses.chunks(2).map(|word| u32::from(u16::from_be_bytes([word[0], word[1]])));
    let sum = words.sum::<u32>() + protocol + length as u32;
    ((sum & 0xffff) + (sum >> 16)) as u16
}

#[test]
fn checksums_are_inserted_behind_vlan_tags_and_ip_options() {
    for nested in all() {
        let mut frame = nested.frame.clone();
        let field = &mut frame[nested.field.clone()];
        match nested.context.l4 {
            L4PacketType::Sctp => field.fill(0xee),
            _ => field.copy_from_slice(&seed(&nested).to_be_bytes()),
        }
        if !nested.six {
            let at = usize::from(nested.context.mac_length) + 10;
            frame[at..at + 2].fill(0xee);
        }
        assert!(insert(&mut frame, &BOTH, &nested.context).is_ok());
        assert_eq!(frame, nested.frame, "{:?}", nested.context);
    }
}

#[test]
fn tcp_is_segmented_behind_vlan_tags_and_ip_options() {
    for nested in all().into_iter().filter(|nested| nested.context.l4 != L4PacketType::Sctp) {
        let mut packet = nested.frame.clone();
        let header = if nested.context.l4 == L4PacketType::Tcp { 20 } else { 8 };
        let l4 = packet.len() - header - 12;
        // As the whole packet's, without the length.
        let length = (header + 12) as u32;
        let whole = u32::from(seed(&nested));
        let without = if whole >= length { whole - length } else { whole + 0xffff - length };
        packet[nested.field.clone()].copy_from_slice(&(without as u16).to_be_bytes());
        let context = AdvancedContextDescriptor { l4_length: header as u8, mss: 5, ..nested.context };
        let data = AdvancedDataDescriptor { segment: true, ..BOTH };
        let mut segmenter = segmenter(&packet, &data, &context).unwrap();
        let (mut payload, mut buffer) = (Vec::new(), [0; 256]);
        while let Some(length) = segmenter.write_next(&mut buffer) {
            assert_eq!(told(&buffer[..length]), (seen(&nested), 0), "{context:?}");
            payload.extend_from_slice(&buffer[l4 + header..length]);
        }
        assert_eq!(payload, b"some payload");
    }
}
