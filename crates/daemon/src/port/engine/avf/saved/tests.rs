//! Tests of AVF ports that are restored from states of earlier versions, whose card had eight VFs. The restored card
//! has 64 VFs, and keeps the state of the eight. The states are the files of `tests/states`.

use super::{AvfCard, GuestBus, InheritedCard};
use crate::config::file::CardFamily as Name;
use crate::config::{HostConfig, PortConfig};
use crate::confine::ThreadSandboxes;
use crate::port::engine::family::{PortCard, ReportedVfState};
use crate::state::{self, AvfPortState, SavedState as _};
use i82576::Time;
use pcie::{MAX_VFS, VfIndex};
use std::path::Path;

/// Number of VFs that the saved ports in `tests/states` offer.
const OFFERED: usize = 3;
const NOW: Time = Time::from_nanos(1_000_000_000);

fn sample(version: u32) -> Vec<u8> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/states");
    let text = std::fs::read(folder.join(format!("avfs-v{version}.hex"))).unwrap();
    let digits: Vec<u8> = text.into_iter().filter(u8::is_ascii_hexdigit).collect();
    let byte = |pair: &[u8]| u8::from_str_radix(str::from_utf8(pair).unwrap(), 16).unwrap();
    digits.chunks_exact(2).map(byte).collect()
}

/// Returns the configuration of an AVF port with the `lines` of TOML added, and a bus without clients.
fn port(lines: &str) -> (PortConfig, GuestBus) {
    let text = format!("[[port]]\nfamily = \"avf\"\nvfs = {OFFERED}\n{lines}");
    let mut config = HostConfig::check(HostConfig::parse(&text).unwrap(), Path::new("/run/softiov")).unwrap();
    let threads = ThreadSandboxes::prepare(&config).unwrap();
    let bus = GuestBus::new(("pf0", &[Name::Avf; OFFERED]), 1 << 30, &threads.helper).unwrap();
    (config.ports.remove(0), bus)
}

fn facts(card: &dyn PortCard, n: u8) -> ReportedVfState {
    card.vf_status(VfIndex::new(n).unwrap()).unwrap()
}

/// Returns the quarantined VFs of a card, each with the cause.
fn quarantined(card: &dyn PortCard) -> Vec<(u8, String)> {
    let cause = |n| facts(card, n).conduct.quarantine.map(|cause| (n, cause));
    (0..MAX_VFS as u8).filter_map(cause).collect()
}

fn by_administrator(n: u8) -> Vec<(u8, String)> {
    vec![(n, "administrator".to_owned())]
}

/// Returns true if the port offers a VF.
fn is_offered(vf: u8) -> bool {
    usize::from(vf) < OFFERED
}

/// Returns the settings with which the administrator has quarantined a VF of the saved port. A VF that is not offered has none.
fn quarantine_of(vf: u8) -> String {
    if is_offered(vf) { format!("[[port.vf]]\nindex = {vf}\nquarantine = true") } else { String::new() }
}

/// Returns the quarantines of a restored port whose predecessor had VF `vf` in quarantine. That of a VF that is not offered ends: a
/// VF that is added later has another guest.
fn still_quarantined(vf: u8) -> Vec<(u8, String)> {
    if is_offered(vf) { by_administrator(vf) } else { Vec::new() }
}

#[test]
fn avf_state_saved_by_an_earlier_version_keeps_quarantines() {
    for (version, vf) in [(3, 1), (4, 3), (AvfPortState::VERSION, 3)] {
        let (config, mut bus) = port(&quarantine_of(vf));
        let InheritedCard { mut card, functions, .. } =
            AvfCard::resume(&config, &sample(version), &mut bus, NOW).unwrap();
        assert_eq!(functions.len(), OFFERED);
        assert_eq!(quarantined(&*card), still_quarantined(vf), "version {version}");
        assert_eq!(facts(&*card, 0).conduct.throttled, version > 3, "version {version}");
        assert_eq!(card.rid(VfIndex::of_field(63)).as_deref(), Some("00:0a.7"));
        // The predecessor had not handled this request.
        assert_eq!(card.pending_requests(NOW).bits(), 4);
        card.visit(&mut bus, NOW);
        assert!(card.pending_requests(NOW).is_empty());
        let rest = card.save_all(Time::ZERO, functions, &mut bus, NOW).unwrap();
        let AvfPortState { functions, policies, conduct, .. } = state::read(&rest).unwrap();
        assert_eq!([functions.len(), policies.len(), conduct.len()], [MAX_VFS; 3]);
    }
}

#[test]
fn avf_policy_survives_a_new_card() {
    for (version, vf) in [(1, 1), (2, 1), (3, 1), (4, 3), (AvfPortState::VERSION, 3)] {
        let (config, mut bus) = port(&quarantine_of(vf));
        let avf = AvfCard::by_software(&config, true, (&sample(version), Vec::new()), &mut bus, NOW).unwrap();
        assert_eq!(quarantined(&avf), still_quarantined(vf), "version {version}");
        assert!(!facts(&avf, 0).active, "a new card has no active driver");
    }
}

#[test]
fn quarantine_of_a_vf_that_is_not_offered_ends() {
    let (config, mut bus) = port("[[port.vf]]\nindex = 2\nquarantine = true");
    let InheritedCard { card, .. } = AvfCard::resume(&config, &sample(4), &mut bus, NOW).unwrap();
    assert_eq!(quarantined(&*card), by_administrator(2));
}

#[test]
fn quarantine_in_an_earlier_state_ends_by_the_settings() {
    for version in [1, 2, 3] {
        let (config, mut bus) = port("");
        let software = (&sample(version)[..], Vec::new());
        let avf = AvfCard::by_software(&config, true, software, &mut bus, NOW).unwrap();
        assert_eq!(quarantined(&avf), [], "version {version}");
    }
}
