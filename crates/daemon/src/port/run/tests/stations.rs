//! Tests that a successor process knows the stations beyond the uplink: it gives their addresses to no VF.

use super::PortFixture;
use super::held_addresses::{CHOSEN, ClaimingPort};
use crate::port::WireRegistry;
use crate::port::engine::uplink::FarWireEnd;
use std::time::Duration;

/// Port of three VFs whose uplink is a wire. The station at its other end has the address [`CHOSEN`].
struct WiredPort {
    port: ClaimingPort,
    station: FarWireEnd,
}

impl WiredPort {
    fn open() -> Self {
        let port = ClaimingPort::open_with("uplink.wire = \"far\"\n");
        let station = FarWireEnd::new("far", &port.world.host.1.wires);
        Self { port, station }
    }

    /// Opens a port, and has the station send a broadcast.
    fn with_a_station() -> Self {
        let mut port = Self::open();
        let frame = [&[0xff; 6][..], &CHOSEN, &[8, 0], &[0; 46]].concat();
        assert!(port.station.send(&frame));
        let received = |world: &PortFixture| world.port.engine.uplink_status(world.port_time()).unwrap().rx.packets;
        port.port.world.round_until(|world| received(world) > 0);
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
