//! Builds frames with an independent packet library, and damages frames for tests.

use alloc::vec::Vec;
use etherparse::{Ethernet2Header, IpFragOffset, IpHeaders, Ipv4Header, Ipv4Options};
use etherparse::{PacketBuilder, PacketBuilderStep};

pub(crate) const VF0: [u8; 6] = [2, 0, 0, 0, 0, 0];
pub(crate) const VF1: [u8; 6] = [2, 0, 0, 0, 0, 1];

pub(crate) fn link() -> PacketBuilderStep<Ethernet2Header> {
    PacketBuilder::ethernet2(VF0, VF1)
}

pub(crate) fn ipv4() -> PacketBuilderStep<IpHeaders> {
    link().ipv4([10, 0, 0, 1], [10, 0, 0, 2], 64)
}

pub(crate) fn ipv6() -> PacketBuilderStep<IpHeaders> {
    link().ipv6([0xfd; 16], [0xfe; 16], 64)
}

/// Builds an IPv4 header alone, for tests that damage it.
pub(crate) fn ipv4_header(protocol: u8, payload: u16) -> Ipv4Header {
    let mut header = Ipv4Header::new(payload, 64, protocol.into(), [10, 0, 0, 1], [10, 0, 0, 2]).unwrap();
    header.header_checksum = header.calc_header_checksum();
    header
}

macro_rules! built {
    ($step:expr, $payload:expr) => {{
        let mut frame = alloc::vec::Vec::new();
        $step.write(&mut frame, $payload).unwrap();
        frame
    }};
}
pub(crate) use built;

pub(crate) fn tcp4(payload: &[u8]) -> Vec<u8> {
    built!(ipv4().tcp(1000, 80, 1, 1024), payload)
}

pub(crate) fn udp4(payload: &[u8]) -> Vec<u8> {
    built!(ipv4().udp(1000, 53), payload)
}

pub(crate) fn tcp6(payload: &[u8]) -> Vec<u8> {
    built!(ipv6().tcp(1000, 80, 1, 1024), payload)
}

pub(crate) fn udp6(payload: &[u8]) -> Vec<u8> {
    built!(ipv6().udp(1000, 53), payload)
}

/// Builds a frame of an IPv4 packet with options, or of a fragment.
pub(crate) fn ipv4_frame(mut header: Ipv4Header, options: &[u8], fragment: u16, payload: &[u8]) -> Vec<u8> {
    header.options = Ipv4Options::try_from(options).unwrap();
    header.fragment_offset = IpFragOffset::try_new(fragment).unwrap();
    header.set_payload_len(payload.len()).unwrap();
    header.header_checksum = header.calc_header_checksum();
    let mut frame = [&VF1[..], &VF0, &[8, 0]].concat();
    header.write(&mut frame).unwrap();
    frame.extend_from_slice(payload);
    frame
}

/// Builds an IPv6 frame with raw bytes behind its fixed header.
pub(crate) fn ipv6_frame(next: u8, payload: &[u8]) -> Vec<u8> {
    let mut frame = [&VF1[..], &VF0, &[0x86, 0xdd, 0x60, 0, 0, 0]].concat();
    frame.extend_from_slice(&(payload.len() as u16).to_be_bytes());
    frame.extend_from_slice(&[next, 64]);
    frame.extend_from_slice(&[0xfd; 16]);
    frame.extend_from_slice(&[0xfe; 16]);
    frame.extend_from_slice(payload);
    frame
}

/// Returns the seed that a driver leaves in a checksum's field: the folded sum of addresses, protocol and length.
pub(crate) fn pseudo(frame: &[u8], six: bool, protocol: u8, length: usize) -> u16 {
    let addresses = if six { &frame[22..54] } else { &frame[26..34] };
    let words = addresses.chunks(2).map(|word| u32::from(u16::from_be_bytes([word[0], word[1]])));
    let mut sum = words.sum::<u32>() + u32::from(protocol) + length as u32;
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}
