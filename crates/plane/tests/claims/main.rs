//! Claims of ports to addresses: those of stations beyond the uplink and of the host are refused.

mod at_once;
mod continued;
mod gone_guests;

use plane::frame::{Frame, HEADROOM};
use plane::guard::{ClaimCounts, GuardedPlane, PortGuard, SharedAddresses};
use plane::pacing::TransmitPacing;
use plane::switch::{StormState, SwitchTables};
use plane::uplink::UplinkMode;
use plane::{
    DeliveryError, DeliveryFlags, ForwardingPlane, FrameOrigin, FrameSink, PortCounters, PortIndex, PortSet,
    UnpluggedWire,
};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use units::{MacAddress, Time};

const PORTS: usize = 8;
type TestPlane = ForwardingPlane<PORTS>;

const STATION: MacAddress = address(0x77);
const HOST: MacAddress = address(0xaa);
/// Key of the stations' table.
const KEY: u64 = 0x5eed_0f57_a710_0001;
const ROUTER: MacAddress = MacAddress([0, 0, 0x5e, 0, 1, 9]);

const fn address(n: u8) -> MacAddress {
    MacAddress([2, 0, 0, 0, 0, n])
}

const fn port(n: u8) -> PortIndex {
    PortIndex::of_field(n as u32)
}

/// Receives nothing, and records for which ports frames came.
#[derive(Default)]
struct ReachedPorts(Vec<u8>);

impl FrameSink for ReachedPorts {
    type Findings = ();

    fn deliver(
        &mut self,
        port: PortIndex,
        frame: &mut Frame<'_>,
        _: DeliveryFlags,
        (): &mut (),
    ) -> Result<usize, DeliveryError> {
        self.0.push(port.get());
        Ok(frame.length())
    }
}

/// Returns the tables of a family whose ports have these addresses.
fn tables(addresses: &[(u8, MacAddress)]) -> SwitchTables<PORTS> {
    let mut tables = SwitchTables::closed(16);
    let all = PortSet::new(0xff);
    (tables.shared, tables.replicate, tables.loopback) = (true, true, true);
    (tables.all, tables.enabled, tables.guests, tables.check_source) = (all, all, all, all);
    (tables.untagged, tables.broadcast) = (all, all);
    addresses.iter().for_each(|(n, mac)| tables.exact.add(*mac, port(*n).only()));
    tables
}

fn guard(n: u8) -> PortGuard {
    PortGuard { assigned: Some(address(n)), checks_claims: true, ..PortGuard::default() }
}

/// Returns a plane whose ports are all guarded; port 7 is trusted.
fn guarded() -> TestPlane {
    let mut plane = TestPlane::new(
        tables(&[]),
        TransmitPacing::new(None),
        StormState::default(),
        [PortCounters::default(); PORTS],
    );
    plane.uplink = UplinkMode { link: true, receives: true, ..UplinkMode::default() };
    let mut guards: Vec<_> = (0..PORTS as u8).map(guard).collect();
    guards[7].checks_claims = false;
    plane.set_guards(&guards, &[HOST], KEY);
    plane
}

/// Sends a frame, and returns the ports that received it.
fn send(plane: &mut TestPlane, origin: FrameOrigin, to: MacAddress, from: MacAddress) -> Vec<u8> {
    let mut buffer = [&[0; HEADROOM], &to.0[..], &from.0, &[8, 0], &[0; 46]].concat();
    let mut reached = ReachedPorts::default();
    plane.forward(origin, &mut Frame::new(&mut buffer).unwrap(), &mut reached, &mut UnpluggedWire);
    reached.0
}

fn uplink(plane: &mut TestPlane, from: MacAddress) {
    send(plane, FrameOrigin::Uplink, MacAddress::BROADCAST, from);
}

fn has(plane: &TestPlane, n: u8, mac: MacAddress) -> bool {
    plane.tables().exact.is_of(mac, port(n))
}

fn refused(plane: &TestPlane, n: u8) -> u64 {
    plane.refused_claims(port(n)).refused
}

#[test]
fn address_of_an_uplink_station_is_refused() {
    let mut plane = guarded();
    uplink(&mut plane, STATION);
    plane.set_tables(tables(&[(1, STATION), (1, address(0x11))]));
    assert!(!has(&plane, 1, STATION) && has(&plane, 1, address(0x11)));
    assert_eq!(plane.refused_claims(port(1)), ClaimCounts { refused: 1, last: Some(STATION) });
    assert_eq!(send(&mut plane, FrameOrigin::Port(port(2)), STATION, address(2)), [0u8; 0]);
    plane.set_tables(tables(&[(1, STATION)]));
    assert_eq!(refused(&plane, 1), 1, "a claim is counted once");
    assert!(!plane.may_learn(port(2), STATION) && plane.may_learn(port(2), address(0x22)));
    assert!(!plane.may_learn(port(2), STATION));
    assert_eq!(refused(&plane, 2), 1);
}

#[test]
fn granted_address_of_a_station_is_the_port_s() {
    let mut plane = guarded();
    uplink(&mut plane, STATION);
    assert!(!plane.grant_address(port(1), HOST) && plane.grant_address(port(1), STATION));
    plane.set_tables(tables(&[(1, STATION), (2, STATION)]));
    assert!(has(&plane, 1, STATION) && !has(&plane, 2, STATION));
    assert_eq!(refused(&plane, 1), 0);
}

/// Addresses of two planes on one link.
#[derive(Debug, Default)]
struct TestLink {
    held: [Mutex<Vec<MacAddress>>; 2],
    claims: AtomicU64,
    releases: AtomicU64,
}

/// Addresses of a link, as one of its planes sees them.
#[derive(Debug)]
struct TestAddresses(usize, Arc<TestLink>);

impl SharedAddresses for TestAddresses {
    fn claim(&self, address: MacAddress) -> bool {
        self.1.claims.fetch_add(1, Ordering::Relaxed);
        !self.1.held[1 - self.0].lock().unwrap().contains(&address)
    }

    fn is_held_elsewhere(&self, address: MacAddress) -> bool {
        self.1.held[1 - self.0].lock().unwrap().contains(&address)
    }

    fn releases(&self) -> u64 {
        self.1.releases.load(Ordering::Relaxed)
    }

    fn hold(&self, addresses: &[MacAddress]) {
        *self.1.held[self.0].lock().unwrap() = addresses.to_vec();
        self.1.releases.fetch_add(1, Ordering::Relaxed);
    }
}

#[test]
fn address_held_by_a_port_of_another_plane_is_refused() {
    let link = Arc::new(TestLink::default());
    let plane = |n| {
        let mut plane = guarded();
        plane.share_addresses(Some(Arc::new(TestAddresses(n, Arc::clone(&link)))));
        plane
    };
    let (mut a, mut b) = (plane(0), plane(1));
    let own = address(0x11);
    a.set_tables(tables(&[(1, own), (2, ROUTER)]));
    b.set_tables(tables(&[(1, own), (2, address(0x22)), (3, ROUTER), (7, own)]));
    assert!(!has(&b, 1, own) && has(&b, 2, address(0x22)) && has(&b, 3, ROUTER) && has(&b, 7, own));
    assert_eq!(b.refused_claims(port(1)), ClaimCounts { refused: 1, last: Some(own) });
    assert!(!b.may_learn(port(4), own) && !a.may_learn(port(4), address(0x22)));
    // A reset of the guest does not give its address away, and a guest that has moved brings it.
    a.set_tables(tables(&[]));
    b.set_tables(tables(&[(1, own)]));
    assert!(!has(&b, 1, own));
    assert!(b.grant_address(port(4), own));
    b.set_tables(tables(&[(1, own), (4, own)]));
    assert!(!has(&b, 1, own) && has(&b, 4, own));
    b.release_claims(port(4));
    a.release_claims(port(1));
    b.set_tables(tables(&[(1, own)]));
    assert!(has(&b, 1, own));
    a.set_tables(tables(&[(1, own)]));
    assert!(!has(&a, 1, own));
}

#[test]
fn request_is_refused_as_the_tables_would_refuse_it() {
    let mut plane = guarded();
    let (own, free) = (address(0x11), address(0x22));
    uplink(&mut plane, STATION);
    plane.set_tables(tables(&[(1, own)]));
    // Port 1 resets.
    plane.set_tables(tables(&[]));
    for mac in [STATION, HOST, own, address(3)] {
        assert!(!plane.may_request(port(2), mac), "{mac}");
    }
    assert_eq!(plane.refused_claims(port(2)), ClaimCounts { refused: 4, last: Some(address(3)) });
    for mac in [free, ROUTER, address(2), MacAddress([1, 0, 0x5e, 0, 0, 1])] {
        assert!(plane.may_request(port(2), mac), "{mac}");
    }
    assert!(plane.may_request(port(1), own) && plane.may_request(port(7), STATION));
    assert_eq!(refused(&plane, 2), 4);
}

#[test]
fn request_claims_nothing_on_the_wire() {
    let link = Arc::new(TestLink::default());
    let (mut a, mut b) = (guarded(), guarded());
    a.share_addresses(Some(Arc::new(TestAddresses(0, Arc::clone(&link)))));
    b.share_addresses(Some(Arc::new(TestAddresses(1, Arc::clone(&link)))));
    a.set_tables(tables(&[(1, address(0x11))]));
    let claims = link.claims.load(Ordering::Relaxed);
    assert!(!b.may_request(port(1), address(0x11)) && b.may_request(port(1), address(0x22)));
    assert_eq!(link.claims.load(Ordering::Relaxed), claims);
}

#[test]
fn assigned_address_is_held_before_its_guest_runs() {
    let link = Arc::new(TestLink::default());
    let (mut a, mut b) = (guarded(), guarded());
    let own = address(0x11);
    let mut guards: Vec<_> = (0..PORTS as u8).map(guard).collect();
    guards[1].assigned = Some(own);
    a.set_guards(&guards, &[HOST], KEY);
    a.share_addresses(Some(Arc::new(TestAddresses(0, Arc::clone(&link)))));
    b.share_addresses(Some(Arc::new(TestAddresses(1, Arc::clone(&link)))));
    b.set_tables(tables(&[(1, own)]));
    assert!(!has(&b, 1, own));
}

#[test]
fn address_held_elsewhere_is_asked_for_once_until_a_release() {
    let link = Arc::new(TestLink::default());
    let (mut a, mut b) = (guarded(), guarded());
    let own = address(0x11);
    a.share_addresses(Some(Arc::new(TestAddresses(0, Arc::clone(&link)))));
    b.share_addresses(Some(Arc::new(TestAddresses(1, Arc::clone(&link)))));
    a.set_tables(tables(&[(1, own)]));
    for _ in 0..100 {
        assert!(!b.may_learn(port(4), own));
    }
    assert_eq!(link.claims.load(Ordering::Relaxed), 2, "one of each plane");
    a.set_tables(tables(&[]));
    a.release_claims(port(1));
    assert!(b.may_learn(port(4), own));
}

#[test]
fn address_of_a_resetting_port_is_given_to_no_other() {
    let mut plane = guarded();
    let own = address(0x11);
    plane.set_tables(tables(&[(1, own)]));
    plane.set_tables(tables(&[]));
    plane.set_tables(tables(&[(2, own)]));
    assert!(!has(&plane, 2, own) && !plane.may_learn(port(3), own) && !plane.grant_address(port(3), own));
    assert_eq!([2, 3].map(|n| refused(&plane, n)), [1, 1]);
    plane.set_tables(tables(&[(1, own), (2, own)]));
    assert!(has(&plane, 1, own) && !has(&plane, 2, own));
    plane.set_tables(tables(&[(2, own)]));
    assert!(!has(&plane, 2, own));
    plane.release_claims(port(1));
    assert!(has(&plane, 2, own), "the release decides on the waiting claim");
}

#[test]
fn address_by_policy_is_given_to_no_other_port() {
    let mut plane = guarded();
    plane.set_tables(tables(&[(2, address(1))]));
    assert!(!has(&plane, 2, address(1)) && !plane.may_learn(port(3), address(1)));
}

#[test]
fn address_of_the_host_is_refused() {
    let mut plane = guarded();
    plane.set_tables(tables(&[(1, HOST), (7, HOST)]));
    assert!(!has(&plane, 1, HOST) && has(&plane, 7, HOST), "a trusted port is not checked");
}

#[test]
fn held_address_is_not_taken_away_by_an_uplink_frame() {
    let mut plane = guarded();
    let own = address(0x11);
    plane.set_tables(tables(&[(1, own)]));
    uplink(&mut plane, own);
    plane.set_tables(tables(&[(1, own), (2, address(2))]));
    assert!(has(&plane, 1, own));
    // A reset of the guest takes the address out of the tables for a while.
    plane.set_tables(tables(&[(2, address(2))]));
    uplink(&mut plane, own);
    plane.set_tables(tables(&[(1, own), (2, address(2))]));
    assert!(has(&plane, 1, own));
    assert_eq!(send(&mut plane, FrameOrigin::Uplink, own, STATION), [1]);
    assert_eq!(refused(&plane, 1), 0);
}

#[test]
fn released_address_is_open_to_the_uplink() {
    let mut plane = guarded();
    let own = address(0x11);
    plane.set_tables(tables(&[(1, own)]));
    plane.set_tables(tables(&[]));
    plane.release_claims(port(1));
    uplink(&mut plane, own);
    plane.set_tables(tables(&[(1, own)]));
    assert!(!has(&plane, 1, own));
}

#[test]
fn station_with_an_address_that_no_port_has_is_noted() {
    let mut plane = guarded();
    let own = address(0x11);
    plane.set_tables(tables(&[(1, own)]));
    // The guest of port 1 has reset its driver, or is gone for good.
    plane.set_tables(tables(&[]));
    uplink(&mut plane, own);
    plane.set_tables(tables(&[(2, own)]));
    assert!(!has(&plane, 2, own));
    plane.set_tables(tables(&[(1, own), (2, own)]));
    assert!(has(&plane, 1, own) && !has(&plane, 2, own), "port 1 gets its address back");
}

#[test]
fn assigned_and_shared_addresses_are_never_refused() {
    let mut plane = guarded();
    [address(1), ROUTER].into_iter().for_each(|mac| uplink(&mut plane, mac));
    plane.set_tables(tables(&[(1, address(1)), (2, ROUTER), (3, ROUTER), (4, address(1))]));
    assert!(has(&plane, 1, address(1)) && has(&plane, 2, ROUTER) && has(&plane, 3, ROUTER));
    assert!(!has(&plane, 4, address(1)), "the proposal is port 1's alone");
}

#[test]
fn refused_address_is_granted_when_its_station_is_gone() {
    let mut plane = guarded();
    uplink(&mut plane, STATION);
    plane.set_tables(tables(&[(1, STATION)]));
    let (mut now, mut changes) = (Time::ZERO, Vec::new());
    for _ in 0..4 {
        now = now + core::time::Duration::from_secs(150);
        changes.push(plane.review_claims(now));
    }
    assert_eq!(changes, [false, true, false, false]);
    assert!(has(&plane, 1, STATION));
    assert_eq!(
        send(&mut plane, FrameOrigin::Port(port(2)), STATION, address(2)),
        [0u8; 0],
        "port 2 has no address"
    );
}

#[test]
fn station_that_goes_on_sending_is_not_forgotten() {
    let mut plane = guarded();
    let mut now = Time::ZERO;
    for _ in 0..5 {
        (0..3).for_each(|_| uplink(&mut plane, STATION));
        now = now + core::time::Duration::from_secs(150);
        plane.review_claims(now);
    }
    plane.set_tables(tables(&[(1, STATION)]));
    assert!(!has(&plane, 1, STATION));
}

#[test]
fn trust_grants_a_refused_address_at_once() {
    let mut plane = guarded();
    uplink(&mut plane, STATION);
    plane.set_tables(tables(&[(1, STATION)]));
    let mut guards: Vec<_> = (0..PORTS as u8).map(guard).collect();
    guards[1].checks_claims = false;
    plane.set_guards(&guards, &[HOST], KEY);
    assert!(has(&plane, 1, STATION));
    plane.set_guards(&(0..PORTS as u8).map(guard).collect::<Vec<_>>(), &[HOST], KEY);
    assert!(has(&plane, 1, STATION), "the port keeps what it has");
}

#[test]
fn flood_of_uplink_stations_locks_no_port_out() {
    let mut plane = guarded();
    plane.set_tables(tables(&[(1, address(0x11))]));
    for n in 0..50_000u32 {
        let [_, b, c, d] = n.to_be_bytes();
        uplink(&mut plane, MacAddress([6, 6, 6, b, c, d]));
    }
    plane.set_tables(tables(&[(1, address(0x11)), (2, address(0x22)), (3, address(3))]));
    assert!(has(&plane, 1, address(0x11)) && has(&plane, 2, address(0x22)) && has(&plane, 3, address(3)));
}
