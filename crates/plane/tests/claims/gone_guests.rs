//! Addresses of ports whose guests start again, are away, or have gone.

use super::{STATION, address, guarded, has, port, refused, tables, uplink};
use core::time::Duration;
use plane::guard::GuardedPlane;
use plane::switch::{ExactFilter, SwitchTables};
use units::{MacAddress, Time};

/// Returns tables as [`tables`] does, of a family that has reset port 1 `resets` times.
fn after_resets(resets: u32, addresses: &[(u8, MacAddress)]) -> SwitchTables<{ super::PORTS }> {
    let mut tables = tables(addresses);
    (0..resets).for_each(|_| tables.resets.count(port(1)));
    tables
}

/// A port that is reset gets its addresses back, but none that was taken from it.
#[test]
fn address_that_was_taken_back_is_kept_over_no_reset() {
    for is_revoked in [false, true] {
        let mut plane = guarded();
        uplink(&mut plane, STATION);
        assert!(plane.grant_address(port(1), STATION));
        plane.set_tables(tables(&[(1, STATION)]));
        assert!(!is_revoked || plane.revoke_address(port(1), STATION));
        plane.set_tables(after_resets(1, &[(1, address(1))]));
        assert_eq!(plane.may_request(port(1), STATION), !is_revoked);
    }
}

#[test]
fn added_address_is_kept_over_a_reset_for_two_epochs() {
    let [main, added] = [0x11, 0x12].map(address);
    let reset = || {
        let mut plane = guarded();
        plane.set_tables(tables(&[(1, main), (1, added)]));
        plane.set_tables(after_resets(1, &[(1, main)]));
        plane.set_tables(after_resets(1, &[(1, main), (2, added)]));
        assert!(!has(&plane, 2, added), "the guest of port 1 starts again");
        plane
    };
    let mut plane = reset();
    plane.set_tables(after_resets(1, &[(1, main), (1, added), (2, added)]));
    assert!(has(&plane, 1, added) && !has(&plane, 2, added));
    plane.set_tables(after_resets(1, &[(1, main), (2, added)]));
    assert!(has(&plane, 2, added), "the guest of port 1 has given the address up");
    let mut plane = reset();
    let changes = [150, 300].map(|s| plane.review_claims(Time::ZERO + Duration::from_secs(s)));
    assert_eq!((changes, has(&plane, 2, added)), ([false, true], true));
    let mut plane = reset();
    plane.release_claims(port(1));
    assert!(has(&plane, 2, added));
}

#[test]
fn addresses_of_a_gone_guest_cost_the_tables_nothing() {
    let mut plane = guarded();
    plane.set_tables(tables(&[
        (1, address(0x11)),
        (1, address(0x12)),
        (2, address(0x22)),
        (3, address(0x33)),
    ]));
    // Ports 1 and 2 reset.
    plane.set_tables(tables(&[(3, address(0x33))]));
    assert_eq!(plane.absent_addresses(), 3);
    plane.release_claims(port(1));
    assert_eq!(plane.absent_addresses(), 1);
    plane.release_claims(port(3));
    assert_eq!(plane.absent_addresses(), 1);
    plane.release_claims(port(2));
    assert_eq!(plane.absent_addresses(), 0);
}

#[test]
fn resets_give_a_kept_address_no_more_time() {
    let [main, added] = [0x11, 0x12].map(address);
    let mut plane = guarded();
    plane.set_tables(tables(&[(1, main), (1, added)]));
    let mut resets = 0;
    for s in [150, 300] {
        resets += 1;
        plane.set_tables(after_resets(resets, &[(1, main), (2, added)]));
        assert!(!has(&plane, 2, added));
        plane.review_claims(Time::ZERO + Duration::from_secs(s));
    }
    assert!(has(&plane, 2, added), "two epochs after the first reset");
}

#[test]
fn address_of_a_client_that_stays_away_is_free_after_two_epochs() {
    let own = address(0x11);
    let away = || {
        let mut plane = guarded();
        plane.set_tables(tables(&[(1, own)]));
        plane.keep_claims_for_return(port(1));
        plane.set_tables(tables(&[]));
        assert!(!plane.may_learn(port(2), own), "the client of port 1 may come back");
        plane
    };
    let mut plane = away();
    for s in [150, 300] {
        plane.review_claims(Time::ZERO + Duration::from_secs(s));
    }
    assert!(plane.may_learn(port(2), own));
    // A client that has come back has its address for as long as before.
    let mut plane = away();
    plane.set_tables(tables(&[(1, own)]));
    plane.set_tables(tables(&[]));
    for s in [150, 300, 450] {
        plane.review_claims(Time::ZERO + Duration::from_secs(s));
    }
    assert!(!plane.may_learn(port(2), own));
}

#[test]
fn released_ports_get_their_addresses_back_from_no_decision() {
    let [first, second, host] = [address(0x11), address(0x12), super::HOST];
    let mut plane = guarded();
    plane.set_tables(tables(&[(1, first), (2, second), (4, host)]));
    assert_eq!(refused(&plane, 4), 1, "each release decides on the address of the host again");
    plane.release_claims(port(1));
    plane.release_claims(port(2));
    plane.set_tables(tables(&[(4, host)]));
    plane.set_tables(tables(&[(3, first), (4, host), (5, second)]));
    assert!(has(&plane, 3, first) && has(&plane, 5, second));
}

#[test]
fn addresses_kept_over_resets_are_limited() {
    let mut plane = guarded();
    let chosen = |n: u32| MacAddress([2, 1, 0, 0, 0, n as u8]);
    for n in 0..100 {
        plane.set_tables(after_resets(n, &[(1, address(1)), (1, chosen(n))]));
    }
    let mut last = after_resets(99, &[]);
    last.exact = ExactFilter::with_room(101);
    last.exact.add(address(1), port(1).only());
    (0..100).for_each(|n| last.exact.add(chosen(n), port(2).only()));
    assert_eq!(plane.absent_addresses(), 32, "new tables cost by them");
    plane.set_tables(last);
    assert_eq!(refused(&plane, 2), 32);
}
