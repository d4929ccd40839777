//! Addresses that several ports claim, or use, at once.

use super::{HOST, ROUTER, STATION, address, guarded, has, port, refused, tables, uplink};
use plane::guard::GuardedPlane;

#[test]
fn free_address_claimed_by_two_ports_at_once_is_one_port_s() {
    let mut plane = guarded();
    let free = address(0x11);
    plane.set_tables(tables(&[(1, free), (2, free), (4, free)]));
    assert_eq!([1, 2, 4].map(|n| has(&plane, n, free)), [true, false, false]);
    assert_eq!([1, 2, 4].map(|n| refused(&plane, n)), [0, 1, 1]);
    plane.set_tables(tables(&[(2, free), (4, free)]));
    assert_eq!([2, 4].map(|n| has(&plane, n, free)), [false; 2], "port 1 resets");
    plane.release_claims(port(1));
    assert_eq!([2, 4].map(|n| has(&plane, n, free)), [true, false]);
}

#[test]
fn address_that_its_holder_gives_up_is_one_port_s() {
    let mut plane = guarded();
    let [given_up, other] = [0x11, 0x12].map(address);
    plane.set_tables(tables(&[(3, given_up)]));
    plane.set_tables(tables(&[(1, given_up), (2, given_up), (3, other)]));
    assert_eq!([1, 2, 3].map(|n| has(&plane, n, given_up)), [true, false, false]);
}

#[test]
fn trusted_port_and_virtual_routers_share_an_address_at_once() {
    let mut plane = guarded();
    let free = address(0x11);
    plane.set_tables(tables(&[(1, free), (7, free), (2, ROUTER), (3, ROUTER)]));
    assert!(has(&plane, 1, free) && has(&plane, 7, free), "port 7 is trusted");
    assert!(has(&plane, 2, ROUTER) && has(&plane, 3, ROUTER));
    uplink(&mut plane, STATION);
    plane.set_tables(tables(&[(1, STATION), (2, STATION)]));
    assert!(!has(&plane, 1, STATION) && !has(&plane, 2, STATION));
}

#[test]
fn address_of_an_unguarded_port_may_be_that_of_others() {
    let mut plane = guarded();
    uplink(&mut plane, STATION);
    let all = [STATION, HOST, address(0x11), address(3)];
    let free = [address(0x22), address(7)];
    plane.set_tables(tables(&[(1, address(0x11))]));
    // Port 1 loses its address to port 7, which is trusted.
    plane.set_tables(tables(&all.map(|mac| (7, mac))));
    assert_eq!(all.map(|mac| plane.revoke_address(port(7), mac)), [true; 4]);
    assert_eq!(free.map(|mac| plane.revoke_address(port(7), mac)), [false; 2]);
}
