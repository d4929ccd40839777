//! Addresses that ports have held in another process, whose state a plane continues.

use super::{TestAddresses, TestLink, address, guarded, has, port, refused, tables};
use core::time::Duration;
use plane::PortIndex;
use plane::guard::GuardedPlane;
use std::sync::Arc;
use units::{MacAddress, Time};

/// Addresses of the guest of port 1, and that of port 2.
const MAIN: MacAddress = address(0x11);
const ADDED: MacAddress = address(0x12);
const OTHER: MacAddress = address(0x22);

/// Returns the addresses that ports 1 and 2 hold in a process that ends.
fn held() -> Vec<(PortIndex, MacAddress)> {
    let mut plane = guarded();
    plane.set_tables(tables(&[(1, MAIN), (1, ADDED), (2, OTHER)]));
    plane.held_addresses()
}

#[test]
fn addresses_of_another_process_are_held_again() {
    let mut plane = guarded();
    plane.hold_again(&held());
    plane.set_tables(tables(&[(3, MAIN), (3, ADDED), (3, OTHER)]));
    assert_eq!(refused(&plane, 3), 3);
    plane.set_tables(tables(&[(1, MAIN), (3, ADDED), (3, OTHER)]));
    assert!(has(&plane, 1, MAIN) && !has(&plane, 3, ADDED) && !has(&plane, 3, OTHER));
    plane.set_tables(tables(&[(1, MAIN), (1, ADDED), (2, OTHER)]));
    assert!(has(&plane, 1, ADDED) && has(&plane, 2, OTHER));
}

#[test]
fn address_not_requested_again_is_free_after_two_epochs() {
    let mut plane = guarded();
    plane.hold_again(&held());
    plane.set_tables(tables(&[(1, MAIN), (3, ADDED), (3, OTHER)]));
    let changes = [150, 300].map(|s| plane.review_claims(Time::ZERO + Duration::from_secs(s)));
    assert_eq!((changes, has(&plane, 3, ADDED)), ([false, true], true));
    assert!(!has(&plane, 3, OTHER), "a port without an address holds those that it had");
    plane.release_claims(port(2));
    assert!(has(&plane, 3, OTHER), "its client has left");
}

#[test]
fn addresses_of_another_process_are_known_on_the_wire() {
    let link = Arc::new(TestLink::default());
    let [mut a, mut b] = [0, 1].map(|n| {
        let mut plane = guarded();
        if n == 0 {
            plane.hold_again(&held());
        }
        plane.share_addresses(Some(Arc::new(TestAddresses(n, Arc::clone(&link)))));
        plane
    });
    b.set_tables(tables(&[(3, ADDED)]));
    assert!(!has(&b, 3, ADDED), "the other port has not made tables yet");
    a.set_tables(tables(&[(1, MAIN), (1, ADDED)]));
    assert!(has(&a, 1, ADDED));
}

#[test]
fn number_of_changes_grows_with_held_addresses() {
    let mut plane = guarded();
    let before = plane.held_changes();
    plane.set_tables(tables(&[(1, MAIN)]));
    let after = plane.held_changes();
    assert_ne!(after, before);
    plane.set_tables(tables(&[(1, MAIN)]));
    let same = plane.held_changes();
    plane.set_tables(tables(&[(1, MAIN)]));
    assert_eq!(plane.held_changes(), same);
    plane.set_tables(tables(&[(1, MAIN), (2, OTHER)]));
    assert_ne!(plane.held_changes(), same);
}
