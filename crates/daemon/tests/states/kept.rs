//! States that earlier versions wrote, kept as files of hexadecimal digits beside this one, and the encoding of today's
//! version as text, a line a type. Every version reads them all; an encoding that changes without a new version fails.
//!
//! A new version needs its number in `CardState`, a way from the versions before (`Saved::from_earlier`), and files of
//! its own: `BLESS=1 cargo test -p daemon --test states -- kept` writes those that are not there yet.

use crate::conversation::{Act, perform};
use crate::world::{World, through};
use daemon::state::{self, CardState, Saved};
use driver::pf::{Cause, InterruptBounds, Link, Mirror, Offence, PortPolicy, PortVlan, VfPolicy, VlanSet};
use serde_reflection::{Samples, Tracer, TracerConfig};
use std::fmt::Write;
use std::path::PathBuf;

/// Enumerations that only the card knows. One that is missing is named when the schema is made.
const PRIVATE: [&str; 2] = ["Form", "TcpTimer"];
/// Digits a line.
const LINE: usize = 120;

fn file(version: u32, extension: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(format!("tests/states/card-v{version}.{extension}"))
}

/// What is kept of a version. Where nothing is yet, and it is asked for, it is written.
fn kept(version: u32, extension: &str, now: impl FnOnce() -> String) -> String {
    let path = file(version, extension);
    if version == CardState::VERSION && !path.exists() && std::env::var_os("BLESS").is_some() {
        std::fs::write(&path, now()).unwrap();
    }
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// A state with something of everything in it.
fn rich() -> Vec<u8> {
    let mut world = World::new();
    let limited = VfPolicy {
        vlans: Some((0..9).collect::<VlanSet>()),
        interrupts: InterruptBounds { least_hz: 500, most_hz: 5_000, adaptive: true },
        max_tx_rate: 2,
        max_mtu: Some(1_500),
        ..VfPolicy::default()
    };
    let tagged = VfPolicy { vlan: Some(PortVlan { id: 7, qos: 2 }), ..VfPolicy::default() };
    let mirror = Mirror { to: crate::world::index(2), vfs: 1, ingress: true, egress: true, vlans: None };
    let mut policy = PortPolicy::default();
    policy.mirrors[1] = Some(mirror);
    let acts = [
        Act::Policy(0, limited.into()),
        Act::Policy(1, tagged.into()),
        Act::PortPolicy(policy.into()),
        Act::Ask(0, 1, 3),
        Act::Ask(0, 3, 5),
        Act::Ask(0, 5, 10),
        Act::Arrive(0, 200),
        Act::Arrive(4, 300),
        Act::Wait(100),
        Act::Message(0, 12, vec![0]),
        Act::Watch(0, 5),
        Act::Wait(1_100_000),
        Act::Watch(0, 900),
        Act::Quarantine(2, true),
        // What leaves slowly is still there.
        Act::SendLarge(0, 5, 6_000),
        Act::Wait(200),
    ];
    for act in &acts {
        perform(&mut world, act);
    }
    state::write(&world.state()).unwrap()
}

fn digits(bytes: &[u8]) -> String {
    let mut text = String::new();
    for line in bytes.chunks(LINE / 2) {
        line.iter().for_each(|byte| write!(text, "{byte:02x}").unwrap());
        text.push('\n');
    }
    text
}

fn bytes(digits: &str) -> Vec<u8> {
    let digits: Vec<u8> = digits.bytes().filter(u8::is_ascii_hexdigit).collect();
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
    digits.chunks_exact(2).map(byte).collect()
}

/// The encoding of today's version, a line a type.
fn schema() -> String {
    let mut tracer = Tracer::new(TracerConfig::default());
    let samples = Samples::new();
    tracer.trace_type::<Link>(&samples).unwrap();
    tracer.trace_type::<Offence>(&samples).unwrap();
    tracer.trace_type::<Cause>(&samples).unwrap();
    tracer.trace_type::<iovm::State>(&samples).unwrap();
    // Each time another variant of the others is looked at.
    while {
        tracer.trace_type_once::<CardState>(&samples).unwrap();
        PRIVATE.iter().filter(|name| tracer.check_incomplete_enum(name).is_some()).count() > 0
    } {}
    let registry = tracer.registry().unwrap();
    registry.iter().map(|(name, format)| format!("{name}: {format:?}\n")).collect()
}

#[test]
fn states_of_every_version_are_read_and_continued() {
    for version in 1..=CardState::VERSION {
        let written = bytes(&kept(version, "hex", || digits(&rich())));
        let state: CardState = state::read(&written).unwrap();
        let restored = state.clone().restore().unwrap();
        let again = CardState::of(&restored.nic, restored.pf.as_ref(), restored.manager.as_ref());
        assert!(state::write(&again).unwrap() == state::write(&state).unwrap(), "version {version}");
        if version == CardState::VERSION {
            through(&written);
        }
    }
}

#[test]
fn the_encoding_of_a_version_does_not_change() {
    let (kept, now) = (kept(CardState::VERSION, "schema", schema), schema());
    let changed: Vec<_> = now.lines().filter(|line| !kept.lines().any(|kept| kept == *line)).collect();
    assert_eq!(
        changed,
        Vec::<&str>::new(),
        "an encoding has changed: it needs a new version (see this file)"
    );
    assert_eq!(now, kept, "a type is gone: that needs a new version (see this file)");
}
