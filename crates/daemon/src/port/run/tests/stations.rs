//! Tests that a successor process knows the stations beyond the uplink: it gives their addresses to no VF.

use super::held_addresses::{CHOSEN, ClaimingPort, make_record_newer};
use crate::port::WireRegistry;
use crate::port::engine::uplink::FarWireEnd;
use crate::state::{self, SavedState, SavedStateError, SavedStations};
use crate::vault::PortFileDescriptorStore;
use i82576::{MacAddress, Time};
use rustix::fs::{MemfdFlags, memfd_create};
use std::fs::File;
use std::io::Write;
use std::os::fd::AsFd;
use std::time::Duration;

/// Port of three VFs whose uplink is a wire. The station at its other end has the address [`CHOSEN`].
struct WiredPort {
    port: ClaimingPort,
    station: FarWireEnd,
}

impl WiredPort {
    fn open() -> Self {
        let port =
            ClaimingPort::open_with("uplink.wire = \"far\"\n[[port]]\nvfs = 1\nuplink.wire = \"far\"\n");
        let station = FarWireEnd::new("far", &port.world.host.1.wires);
        let mut wired = Self { port, station };
        // The card drops frames until it has a link.
        let world = &mut wired.port.world;
        let mut has_link =
            || (world.round_after(Duration::from_millis(1)), world.port.engine.card().link()).1;
        assert!((0..100).any(|_| has_link()));
        wired
    }

    /// Opens a port, and has the station send a broadcast.
    fn with_a_station() -> Self {
        let mut port = Self::open();
        let frame = [&[0xff; 6][..], &CHOSEN, &[8, 0], &[0; 46]].concat();
        assert!(port.station.send(&frame));
        port.port.world.round_until(|world| world.port.engine.station_version() > 0);
        port
    }

    /// Replaces the port by its successor, to which no station has sent a frame.
    fn succeed(mut self) -> ClaimingPort {
        self.port.world.host.1.wires = WireRegistry::default();
        self.port.world.succeed();
        self.port
    }
}

#[test]
fn successor_refuses_addresses_of_stations() {
    let mut port = WiredPort::with_a_station();
    let now = port.port.world.port_time();
    assert!(port.port.world.port.note_all(now));
    let mut port = port.succeed();
    port.world.round();
    assert!(!port.claim(1), "the station has sent to the host process before");
}

#[test]
fn host_after_a_crash_refuses_addresses_of_stations() {
    let mut port = WiredPort::with_a_station();
    // The port is busy, and saves the stations in a round.
    _ = port.port.world.round_after(Duration::from_secs(10));
    let mut port = port.succeed();
    port.reset(1);
    assert!(!port.claim(1), "the station has sent to the host process before");
}

#[test]
fn stations_outlive_a_rest_and_two_crashes() {
    let mut port = WiredPort::with_a_station();
    let now = port.port.world.port_time();
    assert!(port.port.world.port.note_all(now));
    port.port.world.round();
    let mut port = port.succeed();
    port.world.round();
    port.world.host.1.wires = WireRegistry::default();
    port.world.succeed();
    port.reset(1);
    assert!(!port.claim(1));
}

/// Checks that no process begins with stations after one whose record of them is `record`.
fn successors_serve(record: &[u8]) {
    let port = WiredPort::with_a_station();
    let world = &port.port.world;
    let memory = memfd_create("stations", MemfdFlags::CLOEXEC).unwrap();
    File::from(memory.try_clone().unwrap()).write_all(record).unwrap();
    PortFileDescriptorStore::new(&world.vault, &world.config.name).keep_named("stations", memory.as_fd());
    check_no_successor_knows_the_station(port);
}

/// Replaces the process of a port twice, and has VF 1 claim the station's address of the last one.
fn check_no_successor_knows_the_station(port: WiredPort) {
    let mut port = port.succeed();
    port.world.round();
    port.world.host.1.wires = WireRegistry::default();
    port.world.succeed();
    port.reset(1);
    assert!(port.claim(1), "a process knows a station that its predecessor did not know");
}

/// Returns the memory of a record whose valid copy has these bytes.
fn record_of(bytes: &[u8]) -> Vec<u8> {
    let mut memory = vec![0; 4096 + 2 * (256 << 10)];
    memory[0] = 1;
    memory[4096..][..8].copy_from_slice(&bytes.len().to_ne_bytes());
    memory[4104..][..bytes.len()].copy_from_slice(bytes);
    memory
}

/// Returns saved stations with different addresses.
fn stations(count: u32) -> SavedStations {
    let address = |n: u32| MacAddress([2, 0, 0, 1, (n >> 8) as u8, n as u8]);
    SavedStations { stations: (0..count).map(|n| (address(n), true)).collect(), ..SavedStations::default() }
}

#[test]
fn predecessor_without_a_record_of_stations_is_continued() {
    successors_serve(&record_of(&[]));
    successors_serve(&[]);
}

/// A port whose PF a guest drives has no stations, and saves the key 0, by which a station could choose addresses that evict others.
#[test]
fn record_without_stations_gives_the_table_no_key() {
    let mut port = WiredPort::open().port;
    let engine = &mut port.world.port.engine;
    engine.restore_stations(Some(SavedStations::default()), Time::ZERO);
    assert_ne!(engine.save_stations().key, 0);
}

#[test]
fn nonsense_in_the_record_of_stations_is_no_station() {
    let future = SavedStations {
        began: Time::from_nanos(u64::MAX),
        stations: vec![(MacAddress(CHOSEN), true)],
        ..SavedStations::default()
    };
    successors_serve(&record_of(&state::write(&future).unwrap()));
    successors_serve(&record_of(&[0xa5; 40]));
    successors_serve(&[0xff; 100]);
}

#[test]
fn stations_beyond_the_table_take_no_memory() {
    let read = |count| state::read::<SavedStations>(&state::write(&stations(count)).unwrap());
    assert_eq!(read(2048), Ok(stations(2048)));
    assert_eq!(read(2049), Err(SavedStateError::Body));
    // The key, the time and the number of stations, whose bytes are missing.
    let claimed = postcard::to_allocvec(&(7_u64, 0_u64, 1_u64 << 60)).unwrap();
    let sealed = state::seal(SavedStations::KIND, SavedStations::VERSION, &claimed);
    assert_eq!(state::read::<SavedStations>(&sealed), Err(SavedStateError::Body));
    successors_serve(&record_of(&sealed));
}

/// A program that cannot read the record replaces it before it serves a guest.
#[test]
fn record_of_stations_is_replaced_during_a_rollback() {
    let mut port = WiredPort::with_a_station();
    let now = port.port.world.port_time();
    assert!(port.port.world.port.note_all(now));
    make_record_newer(&port.port, "stations", b"SoftIOV\nstns");
    check_no_successor_knows_the_station(port);
}
