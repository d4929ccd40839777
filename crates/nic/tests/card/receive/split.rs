//! Tests header split: the bytes in the header buffer and the fields of the first descriptor, by each row of the 82576
//! datasheet's table (7.1.5), and the unsupported formats.

use super::{at, bench, frame, srrctl};
use crate::common::{POOL, RX_RING, buffer, mac, tagged, tcp, tcp6, udp};
use i82576::PoolIndex;
use i82576::bits::{psrtype, vmolr};
use i82576::descriptor::rx::{AdvancedRxWriteBack, PostedRxDescriptor, status};
use i82576::register::{self as r, rx, vf};

/// Value of PSRTYPE that splits headers from the payload of every kind of IP packet.
const IP: u32 = psrtype::IPV4
    | psrtype::IPV4_TCP
    | psrtype::IPV4_UDP
    | psrtype::IPV6
    | psrtype::IPV6_TCP
    | psrtype::IPV6_UDP;

/// Delivers a frame to VF 0 while headers of every kind of IP packet are split off, and asserts that the frame's bytes
/// arrive unchanged. Returns SPH, HBO, HDRLEN and the lengths in the packet buffers.
#[track_caller]
fn split_result(kind: u32, header: u32, frame: &[u8]) -> (bool, bool, u16, Vec<u16>) {
    split_result_under(IP, kind, header, frame)
}

/// Delivers a frame to VF 0 under the PSRTYPE value `split`. Returns the same fields as [`split_result`].
#[track_caller]
fn split_result_under(split: u32, kind: u32, header: u32, frame: &[u8]) -> (bool, bool, u16, Vec<u16>) {
    let mut bench = bench();
    bench.vf(0).write(vf::PSRTYPE, split);
    bench.vf(0).write(at(rx::SRRCTL), srrctl(2, header, kind));
    bench.wire_sends(frame);
    let received = bench.vf(0).expect_frame();
    assert_eq!(received.bytes, frame);
    let first = received.parts[0];
    assert!(received.parts[1..].iter().all(|part| !part.split && part.header_length == 0));
    let lengths = received.parts.iter().map(|part| part.length).collect();
    (first.split, first.status & status::HBO != 0, first.header_length, lengths)
}

#[test]
fn header_split_leaves_frames_with_unknown_headers_unsplit() {
    assert_eq!(split_result(2, 128, &frame(60)), (false, false, 0, vec![60]));
    assert_eq!(split_result(2, 128, &frame(3000)), (false, false, 0, vec![2048, 952]));
}

#[test]
fn header_split_puts_fitting_headers_in_the_header_buffer() {
    let segment = tcp(mac(0), mac(9), &[7; 3000]);
    assert_eq!(split_result(2, 128, &segment), (true, false, 54, vec![2048, 952]));
    let only_headers = tcp(mac(0), mac(9), &[]);
    let mut padded = only_headers.clone();
    padded.resize(60, 0);
    assert_eq!(split_result(2, 128, &padded), (true, false, 54, vec![6]));
}

#[test]
fn header_split_reports_headers_too_long_for_the_buffer() {
    let segment = tagged(5, &tagged(6, &tagged(7, &tcp(mac(0), mac(9), &[7; 100]))));
    assert_eq!(split_result(2, 64, &segment), (true, true, 66, vec![166]));
    let segment = tagged(5, &tagged(6, &tcp(mac(0), mac(9), &[7; 100])));
    assert_eq!(split_result(2, 64, &segment), (true, false, 62, vec![100]));
    // 24 bytes of IPv4 options.
    let mut options = tcp(mac(0), mac(9), &[7; 100]);
    options.splice(34..34, [1; 24]);
    options[14] = 0x4b;
    assert_eq!(split_result(2, 64, &options), (true, true, 78, vec![178]));
    assert_eq!(split_result(2, 128, &options), (true, false, 78, vec![100]));
}

#[test]
fn always_split_mode_puts_a_short_frame_in_the_header_buffer() {
    assert_eq!(split_result(5, 64, &frame(60)), (false, false, 60, vec![0]));
    assert_eq!(split_result(5, 512, &tcp(mac(0), mac(9), &[7; 200])), (false, false, 254, vec![0]));
}

#[test]
fn always_split_mode_fills_header_buffer_if_headers_are_unknown() {
    assert_eq!(split_result(5, 64, &frame(300)), (false, false, 64, vec![236]));
    assert_eq!(split_result(5, 64, &frame(3000)), (false, false, 64, vec![2048, 888]));
}

#[test]
fn always_split_mode_separates_headers_that_fit_the_buffer() {
    assert_eq!(split_result(5, 64, &tcp(mac(0), mac(9), &[7; 300])), (true, false, 54, vec![300]));
}

#[test]
fn always_split_mode_continues_long_headers_in_packet_buffer() {
    let mut options = tcp(mac(0), mac(9), &[7; 100]);
    options.splice(34..34, [1; 24]);
    options[14] = 0x4b;
    assert_eq!(split_result(5, 64, &options), (true, true, 78, vec![114]));
}

#[test]
fn ip_fragment_is_split_behind_its_ip_header() {
    let mut fragment = tcp(mac(0), mac(9), &[7; 300]);
    fragment[20] = 0x20;
    assert_eq!(split_result(2, 128, &fragment), (true, false, 34, vec![320]));
}

#[test]
fn frame_is_not_split_without_a_header_buffer() {
    for kind in [2, 5] {
        assert_eq!(split_result(kind, 0, &tcp(mac(0), mac(9), &[7; 100])), (false, false, 0, vec![154]));
    }
}

#[test]
fn replication_formats_leave_split_header_bit_sph_clear() {
    for kind in [3, 4, 6, 7] {
        assert_eq!(split_result(kind, 128, &tcp(mac(0), mac(9), &[7; 100])), (false, false, 0, vec![154]));
    }
}

#[test]
fn headers_longer_than_the_hdrlen_field_allows_are_not_split() {
    // TCP behind a hop-by-hop header of 131 * 8 bytes: 1122 bytes of headers, where HDRLEN ends at 1023.
    let mut bytes = frame(3000);
    bytes[12..22].copy_from_slice(&[0x86, 0xdd, 0x60, 0, 0, 0, 0x0b, 0x82, 0, 64]);
    bytes[54..56].copy_from_slice(&[6, 130]);
    bytes[1102 + 12] = 0x50;
    assert_eq!(split_result(2, 63 * 64, &bytes), (false, false, 0, vec![2048, 952]));
    assert_eq!(split_result(5, 63 * 64, &bytes), (false, false, 1023, vec![1977]));
}

#[test]
fn bytes_in_the_header_buffer_need_no_packet_buffer() {
    let mut bench = bench();
    bench.vf(0).write(vf::PSRTYPE, IP);
    bench.vf(0).write(at(rx::SRRCTL), srrctl(2, 128, 2));
    bench.vf(0).write(at(rx::RDT), 1);
    bench.wire_sends(&tcp(mac(0), mac(9), &[7; 2048]));
    assert_eq!(bench.vf(0).expect_frame().bytes.len(), 54 + 2048, "one descriptor suffices");
}

#[test]
fn unmapped_header_buffer_sets_receive_error_rxe() {
    let mut bench = bench();
    bench.vf(0).write(vf::PSRTYPE, IP);
    bench.vf(0).write(at(rx::SRRCTL), srrctl(2, 128, 2));
    bench.vf(0).poke(RX_RING, &PostedRxDescriptor { packet: buffer(0), header: 0 }.emit());
    bench.wire_sends(&tcp(mac(0), mac(9), &[7; 100]));
    let raw = bench.vf(0).peek(RX_RING, 16).try_into().unwrap();
    assert_eq!(AdvancedRxWriteBack::parse(&raw).unwrap().status & status::RXE, status::RXE);
}

#[test]
fn vlan_stripping_and_header_length_work_over_several_buffers() {
    let segment = tcp(mac(0), mac(9), &[7; 3000]);
    let tag = tagged(5, &segment);
    for (options, header, bytes) in [(POOL, 58, &tag), (POOL | vmolr::STRVLAN, 54, &segment)] {
        for split in [IP, psrtype::IPV4_TCP] {
            let mut bench = bench();
            bench.vf(0).write(at(rx::SRRCTL), srrctl(1, 128, 2));
            bench.vf(0).write(vf::PSRTYPE, split);
            bench.pf().write(r::vmolr(PoolIndex::FIRST), options);
            bench.wire_sends(&tag);
            let received = bench.vf(0).expect_frame();
            assert_eq!(received.parts[0].header_length, header);
            assert_eq!(&received.bytes, bytes);
            assert_eq!(received.parts.len(), 3);
            assert!(received.parts[..2].iter().all(|part| part.vlan_tag == 0));
        }
    }
}

#[test]
fn psrtype_selects_the_packet_types_to_split() {
    let mut fragment = udp(mac(0), mac(9), &[7; 100]);
    fragment[20] = 0x20;
    let frames = [
        (psrtype::IPV4, 34, fragment),
        (psrtype::IPV4_TCP, 54, tcp(mac(0), mac(9), &[7; 100])),
        (psrtype::IPV4_UDP, 42, udp(mac(0), mac(9), &[7; 100])),
        (psrtype::IPV6_TCP, 74, tcp6(mac(0), mac(9), &[7; 100])),
    ];
    for (kind, header, frame) in frames {
        let rest = frame.len() as u16 - header;
        assert_eq!(split_result_under(kind, 2, 128, &frame), (true, false, header, vec![rest]));
        let others = IP & !kind;
        assert_eq!(split_result_under(others, 2, 128, &frame), (false, false, 0, vec![frame.len() as u16]));
        let filled = (false, false, 128, vec![frame.len() as u16 - 128]);
        assert_eq!(split_result_under(others, 5, 128, &frame), filled, "always split: like unknown headers");
    }
}

#[test]
fn psrtype_ethernet_bit_splits_all_other_frames() {
    let segment = tcp(mac(0), mac(9), &[7; 100]);
    assert_eq!(split_result_under(psrtype::ETHERNET, 2, 128, &segment), (true, false, 14, vec![140]));
    assert_eq!(split_result_under(psrtype::ETHERNET | IP, 2, 128, &segment), (true, false, 54, vec![100]));
    assert_eq!(split_result_under(psrtype::ETHERNET, 2, 128, &frame(100)), (true, false, 14, vec![86]));
    assert_eq!(
        split_result_under(psrtype::ETHERNET, 2, 128, &tagged(5, &frame(100))),
        (true, false, 18, vec![86])
    );
}

#[test]
fn ip_with_an_unknown_transport_is_not_split() {
    let mut icmp = tcp(mac(0), mac(9), &[7; 100]);
    icmp[23] = 1;
    assert_eq!(split_result(2, 128, &icmp), (false, false, 0, vec![154]));
}
