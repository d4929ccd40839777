//! The offloads against an independent packet library: what it builds is understood, what the card makes it
//! accepts.

mod headers;
mod nested;
mod receive;
mod rss;
mod sealed;
mod segment;
mod transmit;

use super::headers::Headers;
use alloc::vec::Vec;
use etherparse::{Ethernet2Header, IpFragOffset, IpHeaders, Ipv4Header, Ipv4Options};
use etherparse::{PacketBuilder, PacketBuilderStep};
use i82576::descriptor::tx::{self, Context, Data, Transmit};

pub(super) const VF0: [u8; 6] = [2, 0, 0, 0, 0, 0];
pub(super) const VF1: [u8; 6] = [2, 0, 0, 0, 0, 1];

pub(super) fn link() -> PacketBuilderStep<Ethernet2Header> {
    PacketBuilder::ethernet2(VF0, VF1)
}

pub(super) fn ipv4() -> PacketBuilderStep<IpHeaders> {
    link().ipv4([10, 0, 0, 1], [10, 0, 0, 2], 64)
}

pub(super) fn ipv6() -> PacketBuilderStep<IpHeaders> {
    link().ipv6([0xfd; 16], [0xfe; 16], 64)
}

/// An IPv4 header as its own step, to be spoiled by the test.
pub(super) fn ipv4_header(protocol: u8, payload: u16) -> Ipv4Header {
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
pub(super) use built;

pub(super) fn tcp4(payload: &[u8]) -> Vec<u8> {
    built!(ipv4().tcp(1000, 80, 1, 1024), payload)
}

pub(super) fn udp4(payload: &[u8]) -> Vec<u8> {
    built!(ipv4().udp(1000, 53), payload)
}

pub(super) fn tcp6(payload: &[u8]) -> Vec<u8> {
    built!(ipv6().tcp(1000, 80, 1, 1024), payload)
}

pub(super) fn udp6(payload: &[u8]) -> Vec<u8> {
    built!(ipv6().udp(1000, 53), payload)
}

/// A frame of an IPv4 packet with options, or of a fragment.
pub(super) fn ipv4_frame(mut header: Ipv4Header, options: &[u8], fragment: u16, payload: &[u8]) -> Vec<u8> {
    header.options = Ipv4Options::try_from(options).unwrap();
    header.fragment_offset = IpFragOffset::try_new(fragment).unwrap();
    header.set_payload_len(payload.len()).unwrap();
    header.header_checksum = header.calc_header_checksum();
    let mut frame = [&VF1[..], &VF0, &[8, 0]].concat();
    header.write(&mut frame).unwrap();
    frame.extend_from_slice(payload);
    frame
}

/// An IPv6 frame with raw bytes behind its fixed header.
pub(super) fn ipv6_frame(next: u8, payload: &[u8]) -> Vec<u8> {
    let mut frame = [&VF1[..], &VF0, &[0x86, 0xdd, 0x60, 0, 0, 0]].concat();
    frame.extend_from_slice(&(payload.len() as u16).to_be_bytes());
    frame.extend_from_slice(&[next, 64]);
    frame.extend_from_slice(&[0xfd; 16]);
    frame.extend_from_slice(&[0xfe; 16]);
    frame.extend_from_slice(payload);
    frame
}

pub(super) fn parsed(frame: &[u8]) -> Headers {
    Headers::parse(frame)
}

/// Descriptors of the right kind with arbitrary contents.
pub(super) fn descriptors(mut data: [u8; 16], mut context: [u8; 16]) -> (Data, Context) {
    data[10] = data[10] & 0x0f | 0x30;
    context[10] = context[10] & 0x0f | 0x20;
    data[11] |= 0x20;
    context[11] |= 0x20;
    match (tx::parse(&data), tx::parse(&context)) {
        (Transmit::Data(data), Transmit::Context(context)) => (data, context),
        other => panic!("{other:?}"),
    }
}
