//! Addresses that ports have held in another process, and stations that it has seen, whose state a plane continues.

use super::{
    HOST, KEY, PORTS, STATION, TestAddresses, TestLink, TestPlane, address, guard, guarded, has, port,
    refused, tables, uplink,
};
use core::time::Duration;
use plane::PortIndex;
use plane::guard::{GuardedPlane, SavedStations};
use plane::switch::ExactFilter;
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
    plane.restore_held_addresses(&held());
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
    plane.restore_held_addresses(&held());
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
            plane.restore_held_addresses(&held());
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
fn version_changes_with_held_addresses() {
    let mut plane = guarded();
    let before = plane.held_version();
    plane.set_tables(tables(&[(1, MAIN)]));
    let after = plane.held_version();
    assert_ne!(after, before);
    plane.set_tables(tables(&[(1, MAIN)]));
    let same = plane.held_version();
    plane.set_tables(tables(&[(1, MAIN)]));
    assert_eq!(plane.held_version(), same);
    plane.set_tables(tables(&[(1, MAIN), (2, OTHER)]));
    assert_ne!(plane.held_version(), same);
}

#[test]
fn address_of_a_port_that_is_gone_is_free_on_the_wire() {
    let link = Arc::new(TestLink::default());
    let [a, mut b] = [0, 1].map(|n| {
        let mut plane = guarded();
        if n == 0 {
            // The new configuration has ports 0 and 1.
            plane.set_guards(&[0, 1].map(guard), &[HOST], KEY);
            plane.restore_held_addresses(&held());
        }
        plane.share_addresses(Some(Arc::new(TestAddresses(n, Arc::clone(&link)))));
        plane
    });
    assert!(a.held_addresses().iter().all(|(holder, _)| *holder == port(1)));
    b.set_tables(tables(&[(3, OTHER), (4, MAIN)]));
    assert!(has(&b, 3, OTHER) && !has(&b, 4, MAIN));
}

#[test]
fn address_of_policy_or_host_is_not_restored_to_another_port() {
    let mut plane = guarded();
    let mut guards: Vec<_> = (0..PORTS as u8).map(guard).collect();
    guards[3].assigned = Some(MAIN);
    plane.set_guards(&guards, &[HOST, OTHER], KEY);
    plane.restore_held_addresses(&held());
    assert_eq!(plane.held_addresses(), [(port(1), ADDED)]);
    plane.set_tables(tables(&[(1, MAIN), (1, ADDED), (2, OTHER), (3, MAIN)]));
    assert!(!has(&plane, 1, MAIN) && has(&plane, 3, MAIN), "policy gives it to port 3");
    assert!(has(&plane, 1, ADDED) && !has(&plane, 2, OTHER), "the host has the address");
}

#[test]
fn restored_addresses_in_the_tables_take_no_room_of_others() {
    // A port keeps 32 addresses at most.
    let [present, absent] = [0x20..0x40, 0x40..0x54].map(|n| n.map(address).collect::<Vec<_>>());
    let with_room = || {
        let mut tables = tables(&[]);
        tables.exact = ExactFilter::with_room(64);
        present.iter().for_each(|mac| tables.exact.add(*mac, port(1).only()));
        tables
    };
    let mut plane = guarded();
    plane.set_tables(with_room());
    let held: Vec<_> = present.iter().chain(&absent).map(|mac| (port(1), *mac)).collect();
    plane.restore_held_addresses(&held);
    let mut tables = with_room();
    absent.iter().for_each(|mac| tables.exact.add(*mac, port(3).only()));
    plane.set_tables(tables);
    assert_eq!(refused(&plane, 3), absent.len() as u64);
}

/// Returns the time `seconds` after the start of the processes.
fn after(seconds: u64) -> Time {
    Time::ZERO + Duration::from_secs(seconds)
}

/// Returns a plane of a process that starts after 200 s. The predecessor has seen a station at its start, and saved it after 160 s.
fn successor_of_a_plane_with_a_station() -> TestPlane {
    let mut plane = guarded();
    uplink(&mut plane, STATION);
    plane.review_claims(after(160));
    let saved = plane.save_stations();
    assert_eq!((saved.key, &saved.stations[..]), (KEY, &[(STATION, false)][..]));
    let mut successor = guarded();
    successor.restore_stations(&saved, after(200));
    successor
}

#[test]
fn address_of_another_process_s_station_is_refused() {
    let mut plane = successor_of_a_plane_with_a_station();
    plane.set_tables(tables(&[(1, STATION), (1, MAIN)]));
    assert!(!has(&plane, 1, STATION) && has(&plane, 1, MAIN));
    assert!(!plane.may_request(port(2), STATION) && !plane.may_learn(port(3), STATION));
    assert_eq!([1, 2, 3].map(|n| refused(&plane, n)), [1; 3]);
}

#[test]
fn silent_station_of_another_process_is_forgotten_in_time() {
    let mut plane = successor_of_a_plane_with_a_station();
    plane.set_tables(tables(&[(1, STATION)]));
    assert!(!plane.review_claims(after(309)) && !has(&plane, 1, STATION));
    assert!(plane.review_claims(after(310)) && has(&plane, 1, STATION));
}

#[test]
fn station_of_another_process_is_seen_again() {
    let mut plane = successor_of_a_plane_with_a_station();
    let version = plane.station_version();
    uplink(&mut plane, STATION);
    assert_ne!(plane.station_version(), version, "the table is saved again");
    plane.set_tables(tables(&[(1, STATION)]));
    assert!(!plane.review_claims(after(310)) && plane.review_claims(after(460)));
}

#[test]
fn held_address_stays_its_port_s_beside_a_saved_station() {
    let mut plane = guarded();
    plane.restore_held_addresses(&[(port(1), STATION)]);
    let saved = SavedStations { key: KEY, began: after(0), stations: vec![(STATION, true)] };
    plane.restore_stations(&saved, after(1));
    plane.set_guards(&(0..PORTS as u8).map(guard).collect::<Vec<_>>(), &[HOST], KEY);
    plane.set_tables(tables(&[(1, STATION), (2, STATION)]));
    assert!(has(&plane, 1, STATION) && !has(&plane, 2, STATION));
}
