//! Tests the rules of section 5.1.6 about the header of a packet.

use super::{
    NetHeader, NetHeaderError, NetHeaderFormat, NetOffloadRequest, PartialTransport, SegmentKind, flag, gso,
    receive_queue, transmit_queue,
};
use crate::feature::VirtioFeatures as F;
use proptest::prelude::*;

const OFFLOADS: F = F::CSUM
    .with(F::HOST_TSO4)
    .with(F::HOST_TSO6)
    .with(F::HOST_ECN)
    .with(F::HOST_UFO)
    .with(F::HOST_USO)
    .with(F::VERSION_1);

/// Header of a packet of TCP over IPv4 behind an Ethernet header, to be segmented into 1,448 bytes, as Linux
/// requests it.
const TSO: NetHeader = NetHeader {
    flags: flag::NEEDS_CSUM,
    gso_type: gso::TCPV4,
    header_length: 66,
    gso_size: 1448,
    checksum_start: 34,
    checksum_offset: 16,
    buffers: 0,
};

#[test]
fn packet_header_fields_are_little_endian_in_standard_order() {
    let raw = [1, 4, 66, 0, 0xa8, 5, 34, 0, 16, 0, 2, 0];
    let header = NetHeader { gso_type: gso::TCPV6, buffers: 2, ..TSO };
    assert_eq!(NetHeader::parse(&raw), header);
    assert_eq!(header.emit(), raw);
}

#[test]
fn packet_header_has_10_bytes_only_for_legacy_without_merging() {
    let size = |accepted| NetHeaderFormat::of(accepted).size();
    assert_eq!([F::NONE, F::CSUM].map(size), [10, 10]);
    assert_eq!([F::VERSION_1, F::MRG_RXBUF, F::VERSION_1 | F::MRG_RXBUF].map(size), [12, 12, 12]);
}

#[test]
fn receive_queues_have_even_and_transmit_queues_odd_numbers() {
    assert_eq!([0, 1, 2].map(receive_queue), [0, 2, 4]);
    assert_eq!([0, 1, 2].map(transmit_queue), [1, 3, 5]);
}

#[test]
fn header_without_offload_requests_ignores_its_other_fields() {
    // Without NEEDS_CSUM the device must not use start and offset (5.1.6.2.2), and it ignores unknown flags.
    let header = NetHeader { flags: 0xfe, gso_type: gso::NONE, checksum_start: u16::MAX, ..TSO };
    assert_eq!(header.check(60, F::NONE), Ok(NetOffloadRequest::default()));
}

#[test]
fn tcp_segmentation_request_of_linux_is_accepted_unchanged() {
    let request = TSO.check(60_000, OFFLOADS).unwrap();
    let (checksum, cut) = (request.checksum.unwrap(), request.segmentation.unwrap());
    assert_eq!((checksum.start(), checksum.field()), (34, 50));
    assert_eq!(checksum.transport(), PartialTransport::Tcp);
    assert_eq!((cut.kind, cut.size.get(), cut.ecn), (SegmentKind::TcpV4, 1448, false));
    assert_eq!(request.received(66, 3), NetHeader { buffers: 3, ..TSO });
}

#[test]
fn checksum_field_must_lie_inside_of_the_packet() {
    let header = NetHeader { gso_type: gso::NONE, ..TSO };
    assert!(header.check(52, OFFLOADS).is_ok());
    let outside = Err(NetHeaderError::ChecksumOutside { field: 50, length: 51 });
    assert_eq!(header.check(51, OFFLOADS), outside);
    let far = NetHeader { checksum_start: u16::MAX, checksum_offset: u16::MAX, ..header };
    assert_eq!(
        far.check(65_536, OFFLOADS),
        Err(NetHeaderError::ChecksumOutside { field: 131_070, length: 65_536 })
    );
}

#[test]
fn packet_header_requests_need_negotiated_features() {
    let udp = NetHeader { checksum_offset: 6, ..TSO };
    for (header, feature) in [
        (NetHeader { gso_type: gso::TCPV4, ..TSO }, F::HOST_TSO4),
        (NetHeader { gso_type: gso::TCPV6, ..TSO }, F::HOST_TSO6),
        (NetHeader { gso_type: gso::TCPV4 | gso::ECN, ..TSO }, F::HOST_ECN),
        (NetHeader { gso_type: gso::UDP, ..udp }, F::HOST_UFO),
        (NetHeader { gso_type: gso::UDP_L4, ..udp }, F::HOST_USO),
    ] {
        assert!(header.check(60_000, OFFLOADS).is_ok());
        let refused = NetHeaderError::SegmentationNotNegotiated { gso_type: header.gso_type };
        assert_eq!(header.check(60_000, OFFLOADS.without(feature)), Err(refused));
    }
    let refused = Err(NetHeaderError::ChecksumNotNegotiated);
    assert_eq!(TSO.check(60_000, OFFLOADS.without(F::CSUM)), refused);
}

#[test]
fn segmentation_request_needs_a_size_and_a_partial_checksum() {
    let check = |header: NetHeader| header.check(60_000, OFFLOADS).unwrap_err();
    assert_eq!(check(NetHeader { gso_size: 0, ..TSO }), NetHeaderError::SegmentSize);
    assert_eq!(check(NetHeader { flags: 0, ..TSO }), NetHeaderError::SegmentChecksum);
    assert_eq!(check(NetHeader { checksum_offset: 6, ..TSO }), NetHeaderError::SegmentChecksum);
    assert_eq!(check(NetHeader { gso_type: gso::UDP_L4, ..TSO }), NetHeaderError::SegmentChecksum);
}

#[test]
fn unknown_segmentation_and_ecn_without_tcp_are_refused() {
    for gso_type in [2, 6, 0x7f, gso::ECN] {
        let refused = NetHeaderError::UnknownSegmentation { gso_type };
        assert_eq!(NetHeader { gso_type, ..TSO }.check(60_000, OFFLOADS), Err(refused));
    }
    let gso_type = gso::UDP_L4 | gso::ECN;
    let header = NetHeader { gso_type, checksum_offset: 6, ..TSO };
    let refused = NetHeaderError::SegmentationNotNegotiated { gso_type };
    assert_eq!(header.check(60_000, OFFLOADS), Err(refused));
}

#[test]
fn packet_passes_unsegmented_only_to_a_driver_that_accepts_it() {
    let request = NetHeader { gso_type: gso::TCPV4 | gso::ECN, ..TSO }.check(60_000, OFFLOADS).unwrap();
    let able = F::GUEST_CSUM | F::GUEST_TSO4 | F::GUEST_ECN;
    assert!(request.fits_receiver(able));
    for missing in [F::GUEST_CSUM, F::GUEST_TSO4, F::GUEST_ECN] {
        assert!(!request.fits_receiver(able.without(missing) | F::GUEST_TSO6));
    }
    assert!(NetOffloadRequest::default().fits_receiver(F::NONE));
}

proptest! {
    #[test]
    fn accepted_offload_request_fits_its_packet_and_round_trips(
        raw: [u8; 12], length in 0_usize..70_000, accepted: u64,
    ) {
        let (header, accepted) = (NetHeader::parse(&raw), F::from_bits(accepted));
        prop_assert_eq!(header.emit(), raw);
        if let Ok(request) = header.check(length, accepted) {
            prop_assert!(request.checksum.is_none_or(|checksum| checksum.field() + 2 <= length));
            prop_assert!(request.segmentation.is_none() || request.checksum.is_some());
            // The delivered header asks for the same, whatever the sender's header length was.
            prop_assert_eq!(request.received(54, 1).check(length, accepted), Ok(request));
        }
    }
}
