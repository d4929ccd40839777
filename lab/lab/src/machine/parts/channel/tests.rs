//! Tests that packets cross the channel between domains intact and hostile requests have no effect.

use super::offload::cut;
use super::{DriverDomainPacket, HEADERS, PacketChannelRequest, PacketChannelRequestError, accept, slots};
use crate::machine::parts::cdna::pages::PageOwners;
use crate::machine::parts::cdna::{PAGE, PageBuffer};
use guest::packet::{self, TCP_HEADERS};
use i82576::MacAddress;
use proptest::prelude::{any, prop, prop_assert, prop_assert_eq, proptest};
use split::{MAX_FRAME, PIECES, PendingOffloads};

/// Creates 64 memory pages, 32 for each of two guests.
fn pages() -> PageOwners {
    let mut pages = PageOwners::new(64);
    (0..64).for_each(|page| assert!(pages.give(page, (page / 32) as u16)));
    pages
}

/// Creates a transmit request of the first guest with `payload` bytes, to be segmented into pieces of
/// `segment` bytes.
fn request(payload: usize, segment: Option<u16>) -> PacketChannelRequest {
    let mut frame = vec![0; TCP_HEADERS + payload];
    let tcp =
        packet::ReceivedPacket::Tcp { sequence: u32::MAX - 2_000, acknowledgement: 1, window: 9, payload };
    packet::fill(&mut frame, MacAddress([2; 6]), MacAddress([4; 6]), tcp);
    frame.truncate(TCP_HEADERS);
    let pieces = (0..payload.div_ceil(PAGE as usize)).map(|n| PageBuffer {
        address: n as u64 * PAGE,
        length: (payload - n * PAGE as usize).min(PAGE as usize) as u16,
    });
    PacketChannelRequest {
        header: frame,
        pieces: pieces.collect(),
        offload: PendingOffloads { csum_blank: true, segment },
    }
}

fn accepted(request: &PacketChannelRequest, pages: &mut PageOwners) -> DriverDomainPacket {
    accept(request, 0, pages).unwrap()
}

#[test]
fn channel_between_domains_keeps_a_packets_offload_requests() {
    for offload in [
        PendingOffloads { csum_blank: false, segment: None },
        PendingOffloads { csum_blank: true, segment: None },
        PendingOffloads { csum_blank: true, segment: Some(1_448) },
    ] {
        let mut pages = pages();
        let packet = accepted(&PacketChannelRequest { offload, ..request(30_000, None) }, &mut pages);
        assert_eq!((packet.offload, packet.payload(), packet.pages()), (offload, 30_000, 8));
    }
    assert_eq!([0, 1_448, 4_030, 4_031, 63_712].map(slots), [1, 1, 1, 2, 16]);
}

#[test]
fn packet_header_changes_after_the_copy_have_no_effect() {
    let mut asked = request(3_000, Some(1_448));
    let packet = accepted(&asked, &mut pages());
    let before = asked.header.clone();
    asked.header.fill(0xee);
    assert_eq!(packet.header(), before);
}

#[test]
fn page_of_a_channel_packet_is_pinned_until_its_release() {
    let mut pages = pages();
    let packet = accepted(&request(8_192, None), &mut pages);
    assert_eq!(pages.references(), 2);
    assert!(pages.free(1, 0) && !pages.give(1, 1), "a pinned page is freed but not reusable");
    assert_eq!(packet.pieces().len(), 2);
    assert!(packet.pieces().iter().all(|piece| pages.reaches(*piece, 0)));
    packet.release(&mut pages);
    assert!(pages.references() == 0 && pages.give(1, 1));
    assert_eq!(
        accept(&request(8_192, None), 0, &mut pages),
        Err(PacketChannelRequestError::Page),
        "the page has a new owner"
    );
}

#[test]
fn inconsistent_channel_request_is_rejected_without_effect() {
    let good = || request(6_000, Some(1_448));
    let change = |change: fn(&mut PacketChannelRequest)| {
        let mut asked = good();
        change(&mut asked);
        let mut pages = pages();
        let found = accept(&asked, 0, &mut pages);
        assert_eq!(pages.references(), 0, "a rejected request pins no page");
        found.err()
    };
    assert_eq!(accept(&good(), 0, &mut pages()).err(), None);
    assert_eq!(
        change(|it| it.pieces[1].address = 40 * PAGE),
        Some(PacketChannelRequestError::Page),
        "a page of the other guest"
    );
    assert_eq!(
        change(|it| it.pieces[1].address = 900 * PAGE),
        Some(PacketChannelRequestError::Page),
        "a free page"
    );
    assert_eq!(
        change(|it| it.pieces[1].address = u64::MAX),
        Some(PacketChannelRequestError::Page),
        "beyond the memory"
    );
    assert_eq!(
        change(|it| it.pieces[1].address += 3_000),
        Some(PacketChannelRequestError::Length),
        "across a page"
    );
    assert_eq!(change(|it| it.pieces[1].length = 0), Some(PacketChannelRequestError::Length));
    assert_eq!(
        change(|it| it.pieces[1].length += 1),
        Some(PacketChannelRequestError::Length),
        "longer than the headers announce"
    );
    assert_eq!(change(|it| it.pieces = vec![it.pieces[0]; 19]), Some(PacketChannelRequestError::Length));
    assert_eq!(change(|it| it.header.truncate(50)), Some(PacketChannelRequestError::Header));
    assert_eq!(change(|it| it.header = vec![0; HEADERS + 1]), Some(PacketChannelRequestError::Header));
    assert_eq!(
        change(|it| it.header[23] = 17),
        Some(PacketChannelRequestError::Header),
        "UDP is not segmented"
    );
    assert_eq!(
        change(|it| it.header[46] = 0xf0),
        Some(PacketChannelRequestError::Header),
        "TCP options beyond the headers"
    );
    assert_eq!(change(|it| it.offload.segment = Some(0)), Some(PacketChannelRequestError::Segment));
    assert_eq!(
        change(|it| it.offload.segment = Some(40)),
        Some(PacketChannelRequestError::Segment),
        "too many segments"
    );
}

/// Checks the maximum length with packets that are not segmented, as the channel ignores the lengths in their
/// headers.
#[test]
fn packet_channel_refuses_packets_of_invalid_length() {
    let found = |change: &dyn Fn(&mut PacketChannelRequest)| {
        let mut asked = request(1, None);
        change(&mut asked);
        accept(&asked, 0, &mut pages()).err()
    };
    let pieces = |count: usize| found(&|it| it.pieces = vec![it.pieces[0]; count]);
    assert_eq!((pieces(PIECES), pieces(PIECES + 1)), (None, Some(PacketChannelRequestError::Length)));
    let bytes = |total: usize| found(&|it| it.pieces = request(total - TCP_HEADERS, None).pieces);
    assert_eq!((bytes(MAX_FRAME), bytes(MAX_FRAME + 1)), (None, Some(PacketChannelRequestError::Length)));
    let header = |length: usize| found(&|it| it.header.truncate(length));
    assert_eq!((header(14), header(13)), (None, Some(PacketChannelRequestError::Header)));
    assert_eq!(found(&|it| it.pieces[0].length = 0), Some(PacketChannelRequestError::Length));
    assert_eq!(found(&|it| it.pieces = Vec::new()), None, "a packet without payload is accepted");
}

#[test]
fn tcp_segments_have_cwr_in_the_first_and_fin_in_the_last() {
    let mut asked = request(4_000, Some(1_448));
    asked.header[47] = 0x99;
    let flags: Vec<u8> = cut(&accepted(&asked, &mut pages())).iter().map(|cut| cut.header[47]).collect();
    assert_eq!(flags, [0x90, 0x10, 0x19]);
}

proptest! {
    /// Checks that segments have the packet's bytes once and in order, with matching headers.
    #[test]
    fn tcp_segments_reassemble_to_the_original_packet(payload in 1usize..60_000, size in 600u16..3_000) {
        let mut pages = pages();
        let packet = accepted(&request(payload, Some(size)), &mut pages);
        let mut at = 0;
        for segment in cut(&packet) {
            prop_assert_eq!(segment.from, at);
            let mut frame = segment.header.clone();
            prop_assert_eq!(frame[14..34].chunks(2).map(|p| u32::from(p[0]) << 8 | u32::from(p[1])).sum::<u32>() % 0xffff, 0);
            frame.resize(frame.len() + segment.length, 0);
            let packet::ReceivedPacket::Tcp { sequence, payload, .. } = packet::parse(&frame) else { panic!("expected a TCP segment") };
            prop_assert_eq!((sequence, payload), ((u32::MAX - 2_000).wrapping_add(at as u32), segment.length));
            prop_assert!(segment.length <= usize::from(size));
            at += segment.length;
        }
        prop_assert_eq!(at, payload);
        packet.release(&mut pages);
        prop_assert_eq!(pages.references(), 0);
    }

    /// Checks that for any request only the guest's own pages are pinned, and that segmentation is bounded.
    #[test]
    fn arbitrary_channel_requests_do_not_panic(
        header in prop::collection::vec(any::<u8>(), 0..140),
        pieces in prop::collection::vec((0u64..80 * PAGE, any::<u16>()), 0..24),
        segment in any::<Option<u16>>(),
        looks_right in any::<bool>(),
    ) {
        let mut header = header;
        if looks_right && header.len() > 60 {
            header.truncate(TCP_HEADERS.min(header.len()));
            header[12..15].copy_from_slice(&[8, 0, 0x45]);
            header[23] = 6;
            header[46] = (((header.len() - 34) / 4) << 4) as u8;
        }
        let pieces = pieces.into_iter().map(|(address, length)| PageBuffer { address, length }).collect();
        let mut pages = pages();
        if let Ok(packet) = accept(&PacketChannelRequest { header, pieces, offload: PendingOffloads { csum_blank: true, segment } }, 0, &mut pages) {
            prop_assert!(packet.pieces().iter().all(|piece| pages.reaches(*piece, 0)));
            prop_assert!(cut(&packet).len() <= super::SEGMENTS);
            packet.release(&mut pages);
        }
        prop_assert_eq!(pages.references(), 0);
    }
}
