//! Tests of the CDNA rules that protect guests from each other.

use super::bits::{InterruptBitVectors, VECTORS};
use super::card::{CdnaCard, CdnaContextFault, TRANSMIT};
use super::guard::{CdnaEnqueueError, CdnaGuardedRing};
use super::pages::PageOwners;
use super::{PAGE, PageBuffer, RING, SEQUENCES};

/// Creates two guests that own memory pages 0 to 7 and 8 to 15, and a CDNA context and a ring for each.
fn machine() -> (PageOwners, CdnaCard, [CdnaGuardedRing; 2]) {
    let mut pages = PageOwners::new(16);
    (0..16).for_each(|page| assert!(pages.give(page, (page / 8) as u16)));
    let mut card = CdnaCard::default();
    assert_eq!([card.assign(0), card.assign(1)], [Some(0), Some(1)]);
    (pages, card, [CdnaGuardedRing::new(0), CdnaGuardedRing::new(1)])
}

fn page(number: u64) -> PageBuffer {
    PageBuffer { address: number * PAGE, length: 1_514 }
}

#[test]
fn cdna_batch_with_a_foreign_page_is_refused_as_a_whole() {
    let (mut pages, _, [mut guard, _]) = machine();
    let across = PageBuffer { address: 8 * PAGE - 4, length: 8 };
    for (bad, at) in [(page(8), 1), (across, 1), (page(99), 1), (page(u64::MAX / PAGE), 1)] {
        assert_eq!(guard.enqueue(0, &[page(1), bad], 0, &mut pages), Err(CdnaEnqueueError::Page(at)));
    }
    assert_eq!(guard.enqueue(1, &[page(8)], 0, &mut pages), Err(CdnaEnqueueError::Context));
    assert_eq!((pages.references(), guard.room()), (0, RING));
}

#[test]
fn cdna_descriptors_are_taken_once_in_order_across_wraps() {
    let (mut pages, mut card, [mut guard, _]) = machine();
    for n in 0..3 * SEQUENCES {
        let index = guard.enqueue(0, &[page(u64::from(n % 8))], card.consumed(0, TRANSMIT), &mut pages);
        assert!(card.mailbox(0, 0, TRANSMIT, index.unwrap()));
        assert_eq!(card.take(0, TRANSMIT, &guard), Some(page(u64::from(n % 8))));
        assert_eq!(card.take(0, TRANSMIT, &guard), None);
    }
    assert_eq!(card.fault(0), None);
}

/// Forges producer indices at several positions of the ring, also where sequence numbers wrap.
#[test]
fn forged_cdna_producer_index_stops_its_context() {
    for sent in [0, 1, RING - 1, RING, SEQUENCES - 1, SEQUENCES, SEQUENCES + RING + 3] {
        for ahead in [1, 2, RING] {
            let (mut pages, mut card, [mut guard, _]) = machine();
            for _ in 0..sent {
                let consumed = card.consumed(0, TRANSMIT);
                let index = guard.enqueue(0, &[page(0)], consumed, &mut pages).unwrap();
                card.mailbox(0, 0, TRANSMIT, index);
                assert!(card.take(0, TRANSMIT, &guard).is_some());
            }
            card.mailbox(0, 0, TRANSMIT, sent + ahead);
            assert_eq!(card.take(0, TRANSMIT, &guard), None);
            assert_eq!(
                card.fault(0),
                Some(CdnaContextFault::Sequence(sent % SEQUENCES)),
                "{sent} and {ahead}"
            );
        }
    }
}

#[test]
fn invalid_cdna_producer_index_stops_only_its_context() {
    for forged in [RING + 5, u32::MAX, 1 << 31] {
        let (mut pages, mut card, [_, mut guard]) = machine();
        card.mailbox(0, 0, TRANSMIT, forged);
        assert_eq!(card.fault(0), Some(CdnaContextFault::Producer(forged)));
        let index = guard.enqueue(1, &[page(9)], 0, &mut pages).unwrap();
        card.mailbox(1, 1, TRANSMIT, index);
        assert_eq!(card.take(1, TRANSMIT, &guard), Some(page(9)));
    }
}

#[test]
fn cdna_mailbox_of_another_guest_is_not_mapped() {
    let (_, mut card, _) = machine();
    assert!(!card.mailbox(0, 1, TRANSMIT, 1));
    assert!(!card.mailbox(0, 77, TRANSMIT, 1));
    assert!(!card.has(1, TRANSMIT));
    assert_eq!((card.stray_writes, card.fault(1)), (2, None));
}

#[test]
fn freed_cdna_page_is_reusable_only_after_its_last_release() {
    let (mut pages, mut card, [mut guard, _]) = machine();
    let index = guard.enqueue(0, &[page(3)], 0, &mut pages).unwrap();
    card.mailbox(0, 0, TRANSMIT, index);
    assert!(pages.free(3, 0) && !pages.free(3, 0));
    assert!(!pages.give(3, 1));
    assert_eq!(
        guard.enqueue(0, &[page(3)], 0, &mut pages),
        Err(CdnaEnqueueError::Page(0)),
        "a freed page is rejected for its former owner too"
    );
    let reached = card.take(0, TRANSMIT, &guard).unwrap();
    assert!(pages.reaches(reached, 0) && !pages.give(3, 1), "the page is not reusable before its release");
    guard.release(card.consumed(0, TRANSMIT), &mut pages);
    assert!(pages.give(3, 1));
}

#[test]
fn torn_down_cdna_context_keeps_pages_until_quiesced() {
    let (mut pages, mut card, [mut guard, _]) = machine();
    let index = guard.enqueue(0, &[page(1), page(2)], 0, &mut pages).unwrap();
    card.mailbox(0, 0, TRANSMIT, index);
    guard.tear_down();
    assert!(pages.free(1, 0) && !pages.give(1, 1));
    assert_eq!(card.take(0, TRANSMIT, &guard), Some(page(1)), "the card still takes the described buffer");
    card.quiesce(0);
    guard.quiesced(&mut pages);
    assert_eq!((card.take(0, TRANSMIT, &guard), pages.references()), (None, 0));
    assert!(pages.give(1, 1));
    assert_eq!(guard.enqueue(0, &[page(2)], 0, &mut pages), Err(CdnaEnqueueError::Context));
}

#[test]
fn cdna_interrupt_bits_of_all_contexts_survive_a_full_buffer() {
    let mut bits = InterruptBitVectors::default();
    (0..VECTORS + 40).for_each(|n| bits.push(1 << n));
    assert_eq!(bits.take().count(), VECTORS + 40);
    assert_eq!(bits.take().count(), 0);
}

/// Checks that no ring slot, however old, can hold the expected sequence number.
#[test]
fn cdna_sequence_number_space_is_twice_the_ring_size() {
    assert_eq!((RING, SEQUENCES), (256, 512));
}
