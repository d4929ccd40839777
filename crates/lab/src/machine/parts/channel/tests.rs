//! What crosses the channel crosses it whole, and hostile requests reach nothing.

use super::offload::cut;
use super::{HEADERS, Packet, Refused, Request, accept, slots};
use crate::machine::parts::cdna::pages::Pages;
use crate::machine::parts::cdna::{Buffer, PAGE};
use guest::packet::{self, TCP_HEADERS};
use i82576::MacAddress;
use proptest::prelude::{any, prop, prop_assert, prop_assert_eq, proptest};
use split::{LONGEST, Offload, PIECES};

/// Two guests of 32 pages.
fn pages() -> Pages {
    let mut pages = Pages::new(64);
    (0..64).for_each(|page| assert!(pages.give(page, (page / 32) as u16)));
    pages
}

/// A packet of the first guest's with so much payload.
fn request(payload: usize, segment: Option<u16>) -> Request {
    let mut frame = vec![0; TCP_HEADERS + payload];
    let tcp = packet::Packet::Tcp { sequence: u32::MAX - 2_000, acknowledgement: 1, window: 9, payload };
    packet::fill(&mut frame, MacAddress([2; 6]), MacAddress([4; 6]), tcp);
    frame.truncate(TCP_HEADERS);
    let pieces = (0..payload.div_ceil(PAGE as usize)).map(|n| Buffer {
        address: n as u64 * PAGE,
        length: (payload - n * PAGE as usize).min(PAGE as usize) as u16,
    });
    Request { header: frame, pieces: pieces.collect(), offload: Offload { blank: true, segment } }
}

fn accepted(request: &Request, pages: &mut Pages) -> Packet {
    accept(request, 0, pages).unwrap()
}

#[test]
fn what_is_left_to_be_done_survives_the_channel() {
    for offload in [
        Offload { blank: false, segment: None },
        Offload { blank: true, segment: None },
        Offload { blank: true, segment: Some(1_448) },
    ] {
        let mut pages = pages();
        let packet = accepted(&Request { offload, ..request(30_000, None) }, &mut pages);
        assert_eq!((packet.offload, packet.payload(), packet.pages()), (offload, 30_000, 8));
    }
    assert_eq!([0, 1_448, 4_030, 4_031, 63_712].map(slots), [1, 1, 1, 2, 16]);
}

#[test]
fn headers_are_believed_as_they_were_copied() {
    let mut asked = request(3_000, Some(1_448));
    let packet = accepted(&asked, &mut pages());
    let before = asked.header.clone();
    asked.header.fill(0xee);
    assert_eq!(packet.header(), before);
}

#[test]
fn a_page_is_held_until_the_packet_has_gone() {
    let mut pages = pages();
    let packet = accepted(&request(8_192, None), &mut pages);
    assert_eq!(pages.references(), 2);
    assert!(pages.free(1, 0) && !pages.give(1, 1), "freed, and nobody else's yet");
    assert_eq!(packet.pieces().len(), 2);
    assert!(packet.pieces().iter().all(|piece| pages.reaches(*piece, 0)));
    packet.release(&mut pages);
    assert!(pages.references() == 0 && pages.give(1, 1));
    assert_eq!(accept(&request(8_192, None), 0, &mut pages), Err(Refused::Page), "it is another's now");
}

#[test]
fn a_request_that_is_not_what_it_says_reaches_nothing() {
    let good = || request(6_000, Some(1_448));
    let change = |change: fn(&mut Request)| {
        let mut asked = good();
        change(&mut asked);
        let mut pages = pages();
        let found = accept(&asked, 0, &mut pages);
        assert_eq!(pages.references(), 0, "nothing is held");
        found.err()
    };
    assert_eq!(accept(&good(), 0, &mut pages()).err(), None);
    assert_eq!(change(|it| it.pieces[1].address = 40 * PAGE), Some(Refused::Page), "another's");
    assert_eq!(change(|it| it.pieces[1].address = 900 * PAGE), Some(Refused::Page), "nobody's");
    assert_eq!(change(|it| it.pieces[1].address = u64::MAX), Some(Refused::Page), "beyond all memory");
    assert_eq!(change(|it| it.pieces[1].address += 3_000), Some(Refused::Length), "across a page");
    assert_eq!(change(|it| it.pieces[1].length = 0), Some(Refused::Length));
    assert_eq!(change(|it| it.pieces[1].length += 1), Some(Refused::Length), "longer than its headers say");
    assert_eq!(change(|it| it.pieces = vec![it.pieces[0]; 19]), Some(Refused::Length));
    assert_eq!(change(|it| it.header.truncate(50)), Some(Refused::Header));
    assert_eq!(change(|it| it.header = vec![0; HEADERS + 1]), Some(Refused::Header));
    assert_eq!(change(|it| it.header[23] = 17), Some(Refused::Header), "UDP is not cut");
    assert_eq!(change(|it| it.header[46] = 0xf0), Some(Refused::Header), "more options than there are");
    assert_eq!(change(|it| it.offload.segment = Some(0)), Some(Refused::Segment));
    assert_eq!(change(|it| it.offload.segment = Some(40)), Some(Refused::Segment), "150 of them");
}

/// Nothing is to be cut, so what its headers say of its length counts for nothing.
#[test]
fn a_packet_may_be_as_long_as_the_channel_takes_and_no_longer() {
    let found = |change: &dyn Fn(&mut Request)| {
        let mut asked = request(1, None);
        change(&mut asked);
        accept(&asked, 0, &mut pages()).err()
    };
    let pieces = |count: usize| found(&|it| it.pieces = vec![it.pieces[0]; count]);
    assert_eq!((pieces(PIECES), pieces(PIECES + 1)), (None, Some(Refused::Length)));
    let bytes = |total: usize| found(&|it| it.pieces = request(total - TCP_HEADERS, None).pieces);
    assert_eq!((bytes(LONGEST), bytes(LONGEST + 1)), (None, Some(Refused::Length)));
    let header = |length: usize| found(&|it| it.header.truncate(length));
    assert_eq!((header(14), header(13)), (None, Some(Refused::Header)));
    assert_eq!(found(&|it| it.pieces[0].length = 0), Some(Refused::Length));
    assert_eq!(found(&|it| it.pieces = Vec::new()), None, "headers alone");
}

#[test]
fn only_the_last_segment_ends_and_only_the_first_reports_congestion() {
    let mut asked = request(4_000, Some(1_448));
    asked.header[47] = 0x99;
    let flags: Vec<u8> = cut(&accepted(&asked, &mut pages())).iter().map(|cut| cut.header[47]).collect();
    assert_eq!(flags, [0x90, 0x10, 0x19]);
}

proptest! {
    /// Segments have the packet's bytes, each once and in order, and headers that say so.
    #[test]
    fn segments_are_the_packet(payload in 1usize..60_000, size in 600u16..3_000) {
        let mut pages = pages();
        let packet = accepted(&request(payload, Some(size)), &mut pages);
        let mut at = 0;
        for segment in cut(&packet) {
            prop_assert_eq!(segment.from, at);
            let mut frame = segment.header.clone();
            prop_assert_eq!(frame[14..34].chunks(2).map(|p| u32::from(p[0]) << 8 | u32::from(p[1])).sum::<u32>() % 0xffff, 0);
            frame.resize(frame.len() + segment.length, 0);
            let packet::Packet::Tcp { sequence, payload, .. } = packet::parse(&frame) else { panic!("no segment") };
            prop_assert_eq!((sequence, payload), ((u32::MAX - 2_000).wrapping_add(at as u32), segment.length));
            prop_assert!(segment.length <= usize::from(size));
            at += segment.length;
        }
        prop_assert_eq!(at, payload);
        packet.release(&mut pages);
        prop_assert_eq!(pages.references(), 0);
    }

    /// Whatever a guest asks for, only its own pages are held, and cutting it is bounded.
    #[test]
    fn any_request_is_survived(
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
        let pieces = pieces.into_iter().map(|(address, length)| Buffer { address, length }).collect();
        let mut pages = pages();
        if let Ok(packet) = accept(&Request { header, pieces, offload: Offload { blank: true, segment } }, 0, &mut pages) {
            prop_assert!(packet.pieces().iter().all(|piece| pages.reaches(*piece, 0)));
            prop_assert!(cut(&packet).len() <= super::SEGMENTS);
            packet.release(&mut pages);
        }
        prop_assert_eq!(pages.references(), 0);
    }
}
