//! Tests of a VF's flight recordings after a malicious guest was quarantined, and after resets of the VF (`conduct`
//! tests the quarantine).

use crate::support::eventually;
use crate::support::guest::{VfGuest, exchange};
use crate::support::live::LiveHost;
use daemon::control::client::ask;
use daemon::control::protocol::{ControlAnswer, ControlRequest};
use daemon::settings::{ConductThresholds, PortSettings};
use daemon::{FlightEntry, FlightRecording};
use std::collections::BTreeMap;
use std::fs;
use vfio_user::client::Client;

fn flight(live: &LiveHost, vf: &str) -> FlightRecording {
    match ask(&live.control_socket(), ControlRequest::VfFlight { vf: vf.to_owned() }).unwrap() {
        ControlAnswer::Flight(recording) => recording,
        other => panic!("unexpected answer {other:?}"),
    }
}

fn has(recording: &FlightRecording, what: &str, name: &str) -> bool {
    let is = |entry: &&FlightEntry| entry.what == what && entry.name.as_deref().unwrap_or_default() == name;
    recording.entries.iter().any(|entry| is(&entry))
}

/// Makes the host quarantine VF 0 at its first spoofed frame.
fn quarantine(live: &LiveHost) {
    let (mut a, mut b) = (VfGuest::under_qemu(live, 0), VfGuest::under_qemu(live, 1));
    exchange(&mut a, &mut b, 3);
    let limit = ConductThresholds { warn: Some(0), throttle: Some(0), quarantine: Some(1) };
    let limits = BTreeMap::from([("spoofing".to_owned(), limit)]);
    live.change_port(PortSettings { limits, ..PortSettings::default() }).unwrap();
    let frame = [&b.vf.mac().0[..], &[2, 6, 6, 6, 6, 6, 0x88, 0xb5], &[0; 60]].concat();
    eventually("the VF is quarantined", || {
        let _ = a.vf.transmit(&mut a.machine, &frame, &Default::default());
        a.vf.flush(&mut a.machine);
        a.vf.clean(&mut a.machine);
        live.show(0).conduct.quarantine.is_some()
    });
}

#[test]
fn quarantine_writes_a_flight_recording_with_its_reason() {
    let live = LiveHost::keeping("");
    quarantine(&live);
    let folder = live.state_dir().join("flight");
    let mut files = Vec::new();
    eventually("the flight recording is in a file", || {
        let found = fs::read_dir(&folder).into_iter().flatten().map(|entry| entry.unwrap().path());
        files = found.filter(|path| path.extension().is_some()).collect();
        !files.is_empty()
    });
    let recording: FlightRecording = serde_json::from_slice(&fs::read(&files[0]).unwrap()).unwrap();
    assert_eq!((recording.vf.as_str(), recording.because.as_deref()), ("pf0vf0", Some("spoofing")));
    for (what, name) in [
        ("a client has connected", ""),
        ("write", "configuration space"),
        ("write", "VMBMEM[0] reset"),
        ("write", "TDT[0]"),
        ("a driver runs the VF", ""),
        ("dropped", "spoofed"),
        ("offence", "spoofing"),
    ] {
        assert!(has(&recording, what, name), "{what} {name} in {recording:#?}");
    }
    let order: Vec<u64> = recording.entries.iter().map(|entry| entry.before_ns).collect();
    assert!(order.is_sorted_by(|a, b| a >= b), "not in order of time");
    assert!(!has(&flight(&live, "pf0vf1"), "dropped", "spoofed"), "the neighbour's recording has it too");
}

#[test]
fn unusable_flight_recordings_folder_stops_no_guest() {
    let live = LiveHost::keeping("");
    fs::create_dir_all(live.state_dir()).unwrap();
    fs::write(live.state_dir().join("flight"), "a file in its place").unwrap();
    quarantine(&live);
    assert!(has(&flight(&live, "pf0vf0"), "offence", "spoofing"));
    assert!(live.show(1).link, "the neighbour has no link");
}

#[test]
fn flight_recording_survives_resets_and_a_client_disconnect() {
    let live = LiveHost::start();
    let mut guest = VfGuest::under_qemu(&live, 0);
    guest.machine.vmm.done(Client::reset).unwrap();
    assert!(has(&flight(&live, "pf0vf0"), "reset by the client", ""));
    live.reset_port().unwrap();
    drop(guest);
    eventually("the client's end is recorded", || {
        has(&flight(&live, "pf0vf0"), "the client has closed the connection", "")
    });
    let recording = flight(&live, "pf0vf0");
    for (what, name) in
        [("a client has connected", ""), ("write", "VMBMEM[0] reset"), ("reset by the client", "")]
    {
        assert!(has(&recording, what, name), "{what} {name} in {recording:#?}");
    }
}
