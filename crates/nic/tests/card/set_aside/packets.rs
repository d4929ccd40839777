//! Packets and frames that VFs send in the random test of saved cards.

use crate::common::{CardFixture, data, mac, packet, plain, tagged, tcp, udp};
use i82576::descriptor::tx::{AdvancedContextDescriptor, AdvancedDataDescriptor, L4PacketType};
use offload::checksum::PartialChecksum;

/// Sends a packet from VF `n` to station `to`, to be cut into segments. By the bits of `shape`, it is UDP, its context
/// names the other transport, its segments have 500 or 1,400 bytes, and its payload is in one buffer or in several,
/// which end within segments.
pub(super) fn send_large(bench: &mut CardFixture, n: u8, to: u8, length: u16, shape: u8) {
    let on = |bit: u8| shape >> bit & 1 != 0;
    let payload: Vec<u8> = (0..length).map(|at| at as u8 ^ n).collect();
    let mut frame = if on(0) { udp(mac(to), mac(n), &payload) } else { tcp(mac(to), mac(n), &payload) };
    if on(7) {
        // The card adds the length of each segment.
        let seed = PartialChecksum::of(&frame[26..34]).bytes(&[0, frame[23]]).value();
        let field = if on(0) { 40 } else { 50 };
        frame[field..field + 2].copy_from_slice(&seed.to_be_bytes());
    }
    let (l4, l4_length) =
        if on(0) ^ (shape >> 1 & 7 == 7) { (L4PacketType::Udp, 8) } else { (L4PacketType::Tcp, 20) };
    let address = bench.vf(n).place(&frame);
    let lengths = AdvancedContextDescriptor {
        mac_length: 14,
        ip_length: 20,
        l4_length,
        ..AdvancedContextDescriptor::default()
    };
    let context =
        AdvancedContextDescriptor { ipv4: true, l4, mss: if on(4) { 1400 } else { 500 }, ..lengths };
    bench.vf(n).put(context.emit());
    let piece = [usize::from(u16::MAX), 1_700, 177, 933][usize::from(shape >> 5 & 3)];
    let headers = 34 + usize::from(l4_length);
    let sums = AdvancedDataDescriptor {
        insert_l4_checksum: true,
        insert_ip_checksum: true,
        segment: true,
        ..AdvancedDataDescriptor::default()
    };
    let mut buffers = vec![(0, headers)];
    buffers.extend((headers..frame.len()).step_by(piece).map(|at| (at, (frame.len() - at).min(piece))));
    for (at, (start, bytes)) in buffers.iter().enumerate() {
        let first = if at == 0 {
            AdvancedDataDescriptor { payload_length: (frame.len() - headers) as u32, ..sums }
        } else {
            AdvancedDataDescriptor::default()
        };
        let last = at + 1 == buffers.len();
        let buffer = data(address + *start as u64, *bytes as u16);
        let raw = AdvancedDataDescriptor {
            address: buffer.address,
            length: buffer.length,
            end_of_packet: last,
            report_status: last,
            ..first
        };
        bench.vf(n).put(raw.emit());
    }
    bench.vf(n).ring();
}

/// Sends `count` equal frames from VF `n` to station `to`: TCP, UDP or neither, with a tag, without one, or with a
/// request for one. Contexts stand before all frames, or before every second one, and may describe other headers.
/// Checksum fields may hold another value than the sum of the pseudo header.
pub(super) fn send_many(bench: &mut CardFixture, n: u8, to: u8, [kind, contexts]: [u8; 2], count: usize) {
    let to = if to < 5 { mac(to) } else { i82576::MacAddress::BROADCAST };
    let payload = vec![kind; usize::from(kind) * 2];
    let frame = match kind & 3 {
        0 => tcp(to, mac(n), &payload),
        1 => udp(to, mac(n), &payload),
        _ => plain(to, mac(n), 60 + payload.len()),
    };
    let on = |bit: u8| contexts >> bit & 1 != 0;
    let (l4, field) = if on(0) { (L4PacketType::Udp, 40) } else { (L4PacketType::Tcp, 50) };
    let mut frame = if kind & 4 == 0 { frame } else { tagged(5, &frame) };
    if on(1) && frame.len() >= field + 2 {
        let (protocol, length) = (u16::from(frame[23]), frame.len() as u16 - 34);
        let pseudo =
            PartialChecksum::of(&frame[26..34]).bytes(&protocol.to_be_bytes()).bytes(&length.to_be_bytes());
        frame[field..][..2].copy_from_slice(&pseudo.value().to_be_bytes());
    }
    // The sum of this datagram is 0.
    if on(2) {
        frame[34..].fill(0);
    }
    let address = bench.vf(n).place(&frame);
    let mac_length = if on(3) { 18 } else { 14 };
    let context = AdvancedContextDescriptor {
        mac_length,
        ip_length: 20,
        ipv4: true,
        l4,
        vlan_tag: 5,
        ..AdvancedContextDescriptor::default()
    };
    bench.vf(n).put(context.emit());
    let (insert_vlan, insert_l4_checksum, insert_ip_checksum) = (kind & 8 != 0, kind & 16 != 0, on(4));
    let asked = AdvancedDataDescriptor {
        insert_vlan,
        insert_l4_checksum,
        insert_ip_checksum,
        ..packet(address, frame.len() as u16)
    };
    // The last buffer of some packets is unmapped, and frames of unusual lengths follow it.
    let lost = if kind & 32 == 0 { asked.address } else { !0xfff };
    for at in 0..count {
        if on(5) && at % 2 == 1 {
            let other = AdvancedContextDescriptor {
                ip_length: 20 + u16::from(on(6)) * 4,
                index: u8::from(on(7)),
                ..context
            };
            bench.vf(n).put(other.emit());
        }
        bench.vf(n).put(AdvancedDataDescriptor { context: at as u8 % 3, ..asked }.emit());
    }
    bench.vf(n).put(AdvancedDataDescriptor { address: lost, ..asked }.emit());
    for length in [13, 59, 60, 4095 + u16::from(kind), 9725] {
        bench.vf(n).put(AdvancedDataDescriptor { length, report_status: kind & 64 == 0, ..asked }.emit());
    }
    bench.vf(n).ring();
}
