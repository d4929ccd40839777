//! Tests offload requests of context descriptors and of the first data descriptor: tags, segments, checksums.
//! Segmentation has more tests beside its code (`offload`).

use super::{WIRE, at, bench, placed};
use crate::common::{data, mac, packet, plain, tagged, tcp, tcp6};
use etherparse::{PacketBuilder, SlicedPacket, TransportSlice};
use i82576::descriptor::rx::status;
use i82576::descriptor::tx::{AdvancedContextDescriptor, AdvancedDataDescriptor, L4PacketType};
use i82576::register::{self as r, tx, vf};

/// Returns a context for TCP over IPv4 without options.
pub(super) fn context(index: u8, mss: u16) -> AdvancedContextDescriptor {
    AdvancedContextDescriptor {
        mac_length: 14,
        ip_length: 20,
        l4_length: 20,
        ipv4: true,
        l4: L4PacketType::Tcp,
        mss,
        index,
        ..AdvancedContextDescriptor::default()
    }
}

/// Returns the tag of a frame on the wire, or `None` if it is untagged.
pub(super) fn tag(frame: &[u8]) -> Option<u16> {
    (frame[12..14] == [0x81, 0]).then(|| u16::from_be_bytes([frame[14], frame[15]]))
}

#[test]
fn context_descriptor_sends_no_frame() {
    let mut bench = bench();
    bench.vf(0).transmit(&[context(0, 0).emit(), context(1, 0).emit()]);
    assert!(bench.wire_got().is_empty());
    assert_eq!(bench.vf(0).read(at(tx::TDH)), 2);
    bench.expect_no_msix();
}

#[test]
fn queue_keeps_two_offload_contexts_until_overwritten() {
    let mut bench = bench();
    let vlan = |index, vlan_tag| AdvancedContextDescriptor { vlan_tag, ..context(index, 0) }.emit();
    let (_, descriptor) = placed(&mut bench, 100);
    let with = |context| AdvancedDataDescriptor { insert_vlan: true, context, ..descriptor }.emit();
    bench.vf(0).transmit(&[vlan(0, 10), vlan(1, 20), with(0), with(1), with(0)]);
    bench.vf(0).transmit(&[with(1), vlan(1, 30), with(1), with(0)]);
    let tags: Vec<_> = bench.wire_got().iter().filter_map(|frame| tag(frame)).collect();
    assert_eq!(tags, [10, 20, 10, 20, 30, 10]);
}

#[test]
fn each_queue_has_its_own_offload_contexts() {
    let mut bench = bench();
    bench.vf(1).start();
    bench.vf(0).transmit(&[AdvancedContextDescriptor { vlan_tag: 10, ..context(0, 0) }.emit()]);
    let frame = plain(WIRE, mac(1), 60);
    let address = bench.vf(1).place(&frame);
    bench.vf(1).transmit(&[AdvancedDataDescriptor { insert_vlan: true, ..packet(address, 74) }.emit()]);
    assert_eq!(tag(&bench.wire_got()[0]), Some(0));
}

#[test]
fn only_a_packets_first_descriptor_requests_vlan_insertion() {
    let mut bench = bench();
    bench.vf(0).transmit(&[AdvancedContextDescriptor { vlan_tag: 0x6064, ..context(0, 0) }.emit()]);
    let (frame, whole) = placed(&mut bench, 86);
    let (first, last) = (data(whole.address, 50), packet(whole.address + 50, 50));
    bench.vf(0).transmit(&[AdvancedDataDescriptor { insert_vlan: true, ..first }.emit(), last.emit()]);
    assert_eq!(bench.wire_got(), [tagged(0x6064, &frame)]);
    bench.vf(0).transmit(&[first.emit(), AdvancedDataDescriptor { insert_vlan: true, ..last }.emit()]);
    assert_eq!(bench.wire_got(), [frame]);
}

#[test]
fn vlan_tag_in_the_frame_stays_behind_the_inserted_tag() {
    let mut bench = bench();
    let inner = tagged(20, &plain(WIRE, mac(0), 60));
    bench.vf(0).send(&inner);
    assert_eq!(bench.wire_got().pop(), Some(inner.clone()));
    let address = bench.vf(0).place(&inner);
    let descriptor = AdvancedDataDescriptor { insert_vlan: true, ..packet(address, inner.len() as u16) };
    bench
        .vf(0)
        .transmit(&[AdvancedContextDescriptor { vlan_tag: 10, ..context(0, 0) }.emit(), descriptor.emit()]);
    assert_eq!(bench.wire_got(), [tagged(10, &inner)], "the card inserts its tag outside the frame's");
}

#[test]
fn tcp_packet_is_segmented_by_its_context_descriptor() {
    let mut bench = bench();
    let payload: Vec<u8> = (0..2500).map(|i| i as u8).collect();
    let mut frame = tcp(WIRE, mac(0), &payload);
    // The driver leaves lengths and checksums for the card to fill in.
    frame[16..18].fill(0);
    frame[24..26].fill(0);
    let pseudo: u32 = [0x0a00, 0x0001, 0x0a00, 0x0002, 6].iter().sum();
    frame[50..52].copy_from_slice(&(pseudo as u16).to_be_bytes());
    let address = bench.vf(0).place(&frame);
    let first = AdvancedDataDescriptor {
        segment: true,
        insert_ip_checksum: true,
        insert_l4_checksum: true,
        payload_length: 2500,
        ..data(address, 54)
    };
    let last = packet(address + 54, 2500);
    bench.vf(0).transmit(&[context(0, 1000).emit(), first.emit(), last.emit()]);
    let segments = bench.wire_got();
    let mut bytes = Vec::new();
    for segment in &segments {
        let sliced = SlicedPacket::from_ethernet(segment).unwrap();
        let Some(etherparse::NetSlice::Ipv4(ip)) = sliced.net else { panic!("the segment is not IPv4") };
        let Some(TransportSlice::Tcp(tcp)) = sliced.transport else { panic!("the segment is not TCP") };
        let header = ip.header().to_header();
        assert_eq!(header.header_checksum, header.calc_header_checksum());
        assert_eq!(tcp.checksum(), tcp.to_header().calc_checksum_ipv4(&header, tcp.payload()).unwrap());
        assert_eq!(tcp.sequence_number(), 5000 + bytes.len() as u32);
        assert_eq!(tcp.psh(), bytes.len() == 2000, "PSH is in the last segment only");
        bytes.extend(tcp.payload());
    }
    assert_eq!((segments.len(), bytes), (3, payload));
    assert!(!bench.vf(0).is_done(1) && bench.vf(0).is_done(2));
    assert_eq!(bench.pf().read(r::TSCTC), 1);
    assert_eq!(bench.vf(0).read(vf::VFGPTC), 3);
}

#[test]
fn context_descriptor_places_the_inserted_checksums() {
    let mut bench = bench();
    let good = tcp6(WIRE, mac(0), b"an odd load");
    let mut frame = good.clone();
    let pseudo: u32 = 8 * 0xfdfd + 8 * 0xfefe + 31 + 6;
    let pseudo = (pseudo & 0xffff) + (pseudo >> 16);
    frame[70..72].copy_from_slice(&(pseudo as u16).to_be_bytes());
    let address = bench.vf(0).place(&frame);
    let context = AdvancedContextDescriptor { ip_length: 40, ipv4: false, ..context(0, 0) };
    let descriptor =
        AdvancedDataDescriptor { insert_l4_checksum: true, ..packet(address, frame.len() as u16) };
    bench.vf(0).transmit(&[context.emit(), descriptor.emit()]);
    assert_eq!(bench.wire_got(), [good]);
}

#[test]
fn dtxtcpflg_masks_the_tcp_flags_of_segments() {
    let mut bench = bench();
    bench.pf().write(r::DTXTCPFLGL, 0x0010_0fff);
    bench.pf().write(r::DTXTCPFLGH, 0x001);
    let mut frame = tcp(WIRE, mac(0), &[7; 2500]);
    frame[47] = 0x19;
    let address = bench.vf(0).place(&frame);
    let cut = AdvancedDataDescriptor { segment: true, ..packet(address, frame.len() as u16) };
    bench.vf(0).transmit(&[context(0, 1000).emit(), cut.emit()]);
    let flags: Vec<_> = bench.wire_got().iter().map(|segment| segment[47]).collect();
    assert_eq!(flags, [0x19, 0x10, 0x01], "first, middle, last");
}

#[test]
fn udp_segments_over_ipv6_with_extensions_are_valid() {
    let mut bench = bench();
    bench.vf(1).start();
    let builder = PacketBuilder::ethernet2(mac(0).0, mac(1).0).ipv6([0xfd; 16], [0xfe; 16], 64);
    let mut frame = Vec::new();
    builder.udp(1000, 2000).write(&mut frame, &[7; 2500]).unwrap();
    // A destination options header of eight bytes, and the driver's sum of the pseudo header.
    frame.splice(54..54, [17, 0, 1, 4, 0, 0, 0, 0]);
    frame[20] = 60;
    let seed = (8 * 0xfdfdu32 + 8 * 0xfefe + 17) % 0xffff;
    frame[68..70].copy_from_slice(&(seed as u16).to_be_bytes());
    let address = bench.vf(0).place(&frame);
    let lengths = AdvancedContextDescriptor { ip_length: 48, l4_length: 8, ..context(0, 1000) };
    let cut = AdvancedDataDescriptor {
        segment: true,
        insert_l4_checksum: true,
        ..packet(address, frame.len() as u16)
    };
    bench.vf(0).transmit(&[
        AdvancedContextDescriptor { ipv4: false, l4: L4PacketType::Udp, ..lengths }.emit(),
        cut.emit(),
    ]);
    let received = bench.vf(1).received();
    let sizes: Vec<_> = received.iter().map(|frame| frame.bytes.len()).collect();
    assert_eq!(sizes, [1070, 1070, 570]);
    for datagram in &received {
        let word = |at: usize| usize::from(u16::from_be_bytes([datagram.bytes[at], datagram.bytes[at + 1]]));
        assert_eq!((word(18), word(66)), (datagram.bytes.len() - 54, datagram.bytes.len() - 62));
        assert_eq!(datagram.last().status & (status::L4CS | status::L4E), status::L4CS);
        // The same datagram from the wire, where the card has no seal and sums it up itself.
        bench.wire_sends(&datagram.bytes);
        let again = bench.vf(1).expect_frame();
        assert_eq!(again.last().status & (status::L4CS | status::L4E), status::L4CS);
    }
}
