//! Tests of the ring's rules: room, order, events, the final check, and a hostile peer.

use super::{BackRing, FrontRing, RingOverrun, RingPage, SLOT, SLOTS};

fn slot(n: u8) -> [u8; SLOT] {
    [n; SLOT]
}

#[test]
fn ring_requests_and_responses_keep_their_order() {
    let (mut page, mut front, mut back) = (RingPage::default(), FrontRing::default(), BackRing::default());
    (1..=3).for_each(|n| assert!(front.put(&mut page, &slot(n)).is_some()));
    assert_eq!(back.take(&page), None, "the peer has not published yet");
    assert!(front.publish(&mut page));
    for n in 1..=3 {
        assert_eq!(back.take(&page), Some(slot(n)));
        assert!(back.put(&mut page, &slot(n + 100)));
    }
    assert_eq!(back.take(&page), None);
    assert_eq!(front.take(&page), None, "the peer has not published yet");
    assert!(back.publish(&mut page));
    assert_eq!(
        (0..4).map_while(|_| front.take(&page)).map(|(_, s)| s[0]).collect::<Vec<_>>(),
        [101, 102, 103]
    );
}

extern crate alloc;
use alloc::vec::Vec;

#[test]
fn ring_slot_is_reusable_only_once_its_response_is_taken() {
    let (mut page, mut front, mut back) = (RingPage::default(), FrontRing::default(), BackRing::default());
    assert_eq!((0..=SLOTS).filter(|_| front.put(&mut page, &slot(0)).is_some()).count(), SLOTS as usize);
    let _ = front.publish(&mut page);
    assert_eq!(back.take(&page), Some(slot(0)));
    assert_eq!(front.put(&mut page, &slot(0)), None, "a taken request keeps its slot until the response");
    back.put(&mut page, &slot(1));
    let _ = back.publish(&mut page);
    assert_eq!(front.put(&mut page, &slot(0)), None, "an untaken response keeps its slot");
    assert_eq!(front.take(&page), Some((0, slot(1))));
    assert_eq!(front.put(&mut page, &slot(0)), Some(SLOTS));
}

#[test]
fn ring_accepts_no_more_responses_than_requests() {
    let (mut page, mut back) = (RingPage::default(), BackRing::default());
    assert!(!back.put(&mut page, &slot(1)));
}

#[test]
fn requested_ring_event_is_sent_once() {
    let (mut page, mut front, mut back) = (RingPage::default(), FrontRing::default(), BackRing::default());
    front.put(&mut page, &slot(1));
    assert!(front.publish(&mut page), "the back end waits for the first request");
    front.put(&mut page, &slot(2));
    assert!(!front.publish(&mut page), "the back end did not request another event");
    while back.take(&page).is_some() {}
    back.arm_event(&mut page);
    assert_eq!(back.pending(&page), Ok(0));
    front.put(&mut page, &slot(3));
    assert!(front.publish(&mut page));
}

#[test]
fn ring_request_published_before_the_final_check_is_found() {
    let (mut page, mut front, mut back) = (RingPage::default(), FrontRing::default(), BackRing::default());
    front.put(&mut page, &slot(1));
    let _ = front.publish(&mut page);
    while back.take(&page).is_some() {}
    // The front end publishes before the back end requests an event.
    front.put(&mut page, &slot(2));
    assert!(!front.publish(&mut page), "no event was requested");
    back.arm_event(&mut page);
    assert_eq!(back.pending(&page), Ok(1), "the final check finds the request");
}

/// Checks that the back end sees every request or gets an event for it. Tries every order of two publications, an event
/// request and a check.
#[test]
fn ring_loses_no_event_in_any_order_of_operations() {
    for order in 0u32..1 << 4 {
        let (mut page, mut front, mut back) =
            (RingPage::default(), FrontRing::default(), BackRing::default());
        let (mut event, mut asked) = (false, false);
        for step in 0..4 {
            if order >> step & 1 == 0 {
                front.put(&mut page, &slot(1));
                event |= front.publish(&mut page);
            } else if asked {
                while back.take(&page).is_some() {}
            } else {
                back.arm_event(&mut page);
                asked = true;
            }
        }
        let left = back.pending(&page).unwrap();
        let looked_last = order >> 3 & 1 == 1;
        assert!(left == 0 || event || !asked || looked_last, "order {order:04b}");
    }
}

#[test]
fn ring_event_is_sent_after_the_requested_number_of_responses() {
    let (mut page, mut front, mut back) = (RingPage::default(), FrontRing::default(), BackRing::default());
    (0..8).for_each(|n| assert!(front.put(&mut page, &slot(n)).is_some()));
    let _ = front.publish(&mut page);
    front.arm_event(&mut page, 4);
    let mut events = Vec::new();
    for n in 1..=8 {
        back.take(&page);
        back.put(&mut page, &slot(0));
        if back.publish(&mut page) {
            events.push(n);
        }
    }
    assert_eq!(events, [4]);
}

#[test]
fn request_index_beyond_the_ring_is_rejected() {
    let (mut page, mut back) = (RingPage::default(), BackRing::default());
    for claim in [SLOTS + 1, u32::MAX, 1 << 31] {
        page.requests = claim;
        assert_eq!(back.pending(&page), Err(RingOverrun(claim)));
        assert_eq!(back.take(&page), None);
    }
    page.requests = SLOTS;
    assert_eq!((0..).map_while(|_: u32| back.take(&page)).count(), SLOTS as usize);
    page.requests = SLOTS + 1;
    assert_eq!(back.pending(&page), Err(RingOverrun(1)), "no request has a response");
}

#[test]
fn ring_response_without_a_request_is_rejected() {
    let (mut page, mut front) = (RingPage::default(), FrontRing::default());
    front.put(&mut page, &slot(1));
    page.responses = 1;
    assert_eq!(front.pending(&page), Err(RingOverrun(1)), "the request is not published");
    let _ = front.publish(&mut page);
    page.responses = 2;
    assert_eq!(front.take(&page), None);
    page.responses = 1;
    assert!(front.take(&page).is_some());
}

#[test]
fn ring_indices_wrap_at_32_bits() {
    let start = u32::MAX - 2;
    let mut page = RingPage { requests: start, responses: start, ..RingPage::default() };
    let mut front = FrontRing { put: start, published: start, taken: start };
    let mut back = BackRing { put: start, published: start, taken: start };
    (page.request_event, page.response_event) = (start.wrapping_add(1), start.wrapping_add(1));
    for n in 0..8 {
        front.put(&mut page, &slot(n));
        assert!(front.publish(&mut page), "{n}");
        assert_eq!(back.take(&page), Some(slot(n)));
        back.arm_event(&mut page);
        back.put(&mut page, &slot(n));
        assert!(back.publish(&mut page), "{n}");
        assert_eq!(front.take(&page), Some((start.wrapping_add(n.into()), slot(n))));
        front.arm_event(&mut page, 1);
    }
}
