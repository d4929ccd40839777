//! Tests of saved states of earlier versions, which are files of hexadecimal digits beside this one, and of the
//! encoding of today's version as text, one type per line. Today's program must read them all. A change of the encoding
//! without a new version fails.
//!
//! A new version needs its number in the type (`SavedState::VERSION`), a conversion from earlier versions
//! (`SavedState::from_earlier`), and its own files: `BLESS=1 cargo test -p daemon --test states -- kept` writes missing
//! ones. A port's state and its software's contain a card's, and change with it.

use crate::avf::rich_avf;
use crate::conversation::{CardTestAction, perform};
use crate::world::{CardWithDrivers, through};
use daemon::config::file::CardFamily;
use daemon::control::status::VmmInterventions;
use daemon::state::port::{ClientState, ConfiguredPolicies, GuestPfState, HostPfState};
use daemon::state::{
    self, AvfPortState, CardState, HeldAddresses, I82576PortState, MixedPortState, PausedVirtioPortState,
    PortCounterTotals, PortSoftwareState, SavedPausedPacket, SavedState, SavedStations, VhostClientState,
    VirtioPortState,
};
use driver::conduct::{QuarantineCause, VfConductMonitor};
use driver::pf::SavedPortPolicy;
use i82576::{MacAddress, PoolIndex, Time};
use iovm::VirtualFunctionState;
use pcie::VfSet;
use pcie::msix::MsiXTableState;
use policy::{InterruptBounds, Offence, PortPolicy, PortVlan, VfLinkPolicy, VfMirrorRule, VfPolicy, VlanSet};
use serde_json::json;
use serde_reflection::{Samples, Tracer, TracerConfig};
use std::fmt::Write;
use std::path::PathBuf;

/// Names of enumerations that are private to the card's crate and part of its saved state. The tracer, which makes the
/// schema, reports a missing name.
const PRIVATE: [&str; 6] = ["Form", "HashFunction", "Ip", "L4", "Stage", "TcpTimer"];
/// Hexadecimal digits per line of a stored state.
const LINE: usize = 120;

fn file(kind: &str, version: u32, extension: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(format!("tests/states/{kind}-v{version}.{extension}"))
}

/// Returns the text of the stored file of a version. With `BLESS`, a missing file of today's version is written first,
/// from `now`.
fn kept<T: SavedState>(version: u32, extension: &str, now: impl FnOnce() -> String) -> String {
    let path = file(std::str::from_utf8(&T::KIND).unwrap(), version, extension);
    if version == T::VERSION && !path.exists() && std::env::var_os("BLESS").is_some() {
        std::fs::write(&path, now()).unwrap();
    }
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Returns the state of an 82576 card that uses every part of the encoding.
fn rich() -> CardState {
    let mut world = CardWithDrivers::new();
    let limited = VfPolicy {
        vlans: Some((0..9).collect::<VlanSet>()),
        interrupts: InterruptBounds { min_interrupts: 500, max_interrupts: 5_000, adaptive: true },
        max_tx_rate: 2,
        max_mtu: Some(1_500),
        share_mac: true,
        ..VfPolicy::default()
    };
    let tagged = VfPolicy { vlan: Some(PortVlan { id: 7, qos: 2 }), ..VfPolicy::default() };
    let mirror = VfMirrorRule {
        to: crate::world::index(2).into(),
        vfs: VfSet::new(1),
        ingress: true,
        egress: true,
        vlans: None,
    };
    let mut policy = PortPolicy::default();
    policy.mirrors[1] = Some(mirror);
    let acts = [
        CardTestAction::Policy(0, limited.into()),
        CardTestAction::Policy(1, tagged.into()),
        CardTestAction::PortPolicy(policy.into()),
        CardTestAction::Ask(0, 1, 3),
        CardTestAction::Ask(0, 3, 5),
        CardTestAction::Ask(0, 5, 10),
        // Withheld, because the administrator has put the VF on a VLAN.
        CardTestAction::Ask(1, 5, 9),
        CardTestAction::Arrive(0, 200),
        CardTestAction::Arrive(4, 300),
        CardTestAction::Wait(100),
        CardTestAction::Message(0, 12, vec![0]),
        CardTestAction::Watch(0, 5),
        CardTestAction::Wait(1_100_000),
        CardTestAction::Watch(0, 900),
        CardTestAction::Starve(2),
        CardTestAction::Arrive(2, 250),
        CardTestAction::Wait(100),
        CardTestAction::Quarantine(2, true),
        // The rate limit delays this packet, so part of it is still in the card when the state is saved.
        CardTestAction::SendLarge(0, 5, 6_000),
        CardTestAction::Wait(200),
    ];
    for act in &acts {
        perform(&mut world, act);
    }
    world.negotiate();
    world.state()
}

/// Returns the state of an 82576 port, with its card, that uses every part of the encoding.
fn rich_port() -> I82576PortState {
    let function = ClientState {
        interventions: VmmInterventions { reads: 1, posted_writes: 2, synchronous_writes: 3, interrupts: 4 },
        pin: (true, false),
        judged: (true, false),
        warned: true,
    };
    let watched = Time::from_micros(5);
    I82576PortState {
        card: rich(),
        table: None,
        configured: Some(configured()),
        watched,
        functions: vec![function; 3],
    }
}

pub(crate) fn configured() -> ConfiguredPolicies {
    ConfiguredPolicies { port: SavedPortPolicy::default(), vfs: vec![VfPolicy::default(); 3] }
}

/// Returns the state of a port's software that uses every part of the encoding: the host's PF driver, and a PF of a
/// guest.
fn rich_software() -> PortSoftwareState {
    let card = rich();
    let (Some(pf), Some(manager)) = (card.pf, card.manager) else { panic!("the host has the PF") };
    let table = MsiXTableState { entries: vec![[1, 2, 3, 4]; 2], pending: vec![true, false] };
    PortSoftwareState {
        hosted: Some(HostPfState { pf, manager, configured: configured() }),
        guest: Some(GuestPfState { config: vec![7; 256], table }),
    }
}

/// Returns the state of a virtio port that uses every part of the encoding, with the policies of [`rich_avf`].
fn rich_virtio() -> VirtioPortState {
    let AvfPortState { policies, conduct, configured, policy, .. } = rich_avf();
    let port = rich_port();
    let rest = PausedVirtioPortState {
        link: true,
        storms: (3, true),
        watched: port.watched,
        clients: port.functions,
    };
    VirtioPortState { policies, conduct, configured, policy, rest: Some(rest) }
}

/// Returns the state of a port with VFs of two families that uses every part of the encoding.
fn rich_mixed() -> MixedPortState {
    let families = vec![CardFamily::I82576, CardFamily::Avf, CardFamily::Virtio];
    MixedPortState { families, avf: vec![1, 2, 3], virtio: vec![4, 5] }
}

/// Returns the state of a vhost-user client that uses every part of the encoding. Tests of `vhost-user` keep a session.
fn rich_vhost() -> VhostClientState {
    VhostClientState {
        session: vec![1, 2, 3],
        positions: vec![(0, 0x1234), (1, 0x8005_8005)],
        address: Some(MacAddress([2, 0, 0, 0, 0, 7])),
        has_arrived: true,
        paused: Some(SavedPausedPacket { queue: 1, sent: 2, segment_size: 1_000, bytes: vec![1, 2, 3] }),
    }
}

/// Returns the state of a VF that a guest has set up.
fn rich_function() -> VirtualFunctionState {
    let table = MsiXTableState { entries: vec![[1, 2, 3, 4]; 2], pending: vec![true, false] };
    VirtualFunctionState { config: (4..9).zip(1..).collect(), table }
}

/// Returns addresses of the first and the last VF.
fn rich_addresses() -> HeldAddresses {
    HeldAddresses { vfs: vec![(0, MacAddress([2, 0, 0, 0, 0, 1])), (63, MacAddress([2, 0, 0, 0, 0, 2]))] }
}

/// Returns stations of both epochs.
fn rich_stations() -> SavedStations {
    let stations = vec![(MacAddress([2, 0, 0, 0, 0, 1]), true), (MacAddress([2, 0, 0, 0, 0, 2]), false)];
    SavedStations { key: 0x5eed_0f57_a710_0001, began: Time::from_micros(5), stations }
}

/// Returns totals with a value in every counter.
fn rich_totals() -> PortCounterTotals {
    let traffic = json!({"packets": 1, "bytes": 2, "multicast": 3, "broadcast": 4, "dropped": 5});
    let drops = json!({
        "rx_no_descriptors": 1, "rx_disabled": 2, "tx_invalid": 3, "tx_blocked": 4, "tx_spoofed": 5, "tx_link_control": 6,
        "rx_storm": 7, "tx_unclaimed": 8, "dma_faults": 9,
    });
    let interventions = json!({"reads": 1, "posted_writes": 2, "synchronous_writes": 3, "interrupts": 4});
    let function = json!({"rx": traffic, "tx": traffic, "drops": drops, "interventions": interventions});
    let mailbox = json!({
        "requests": {"reset": 1}, "granted": 2, "refused": {"unknown": 3}, "unanswered": 4, "resets": 5, "notices": 6,
    });
    let uplink_drops = json!({
        "too_long": 1, "no_room": 2, "no_link": 3, "malformed": 4, "missed": 5, "impaired": 6, "unrecorded": 7,
    });
    let uplink = json!({"packets": 1, "bytes": 2, "multicast": 3});
    let totals = json!({
        "uplink_name": "tap:softiov0",
        "uplink": {"reattached": 1, "rx": uplink, "tx": uplink, "drops": uplink_drops},
        "storms": 1,
        "pf": function,
        "vfs": {"3": {"function": function, "mailbox": mailbox, "offences": {"mailbox": 7}}},
        "answers": {"visits": 1, "most": 2, "max_ns": 3, "sum_ns": 4, "counts": [[5, 6]]},
    });
    serde_json::from_value(totals).unwrap()
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

/// Returns the encoding of a type's current version as text, one contained type per line.
fn schema<T: SavedState>() -> String {
    let mut tracer = Tracer::new(TracerConfig::default());
    let samples = Samples::new();
    tracer.trace_type::<VfLinkPolicy>(&samples).unwrap();
    tracer.trace_type::<Offence>(&samples).unwrap();
    // The schemas of all other kinds were stored without this type.
    if T::KIND == MixedPortState::KIND {
        tracer.trace_type::<CardFamily>(&samples).unwrap();
    }
    tracer.trace_type::<QuarantineCause>(&samples).unwrap();
    tracer.trace_type::<iovm::VfAssignmentState>(&samples).unwrap();
    // Each pass traces another variant of the private enumerations.
    while {
        tracer.trace_type_once::<T>(&samples).unwrap();
        PRIVATE.iter().filter(|name| tracer.check_incomplete_enum(name).is_some()).count() > 0
    } {}
    let registry = tracer.registry().unwrap();
    registry.iter().map(|(name, format)| format!("{name}: {format:?}\n")).collect()
}

/// Checks that the current encoding of a type equals the stored schema of its version.
fn does_not_change<T: SavedState>() {
    let (kept, now) = (kept::<T>(T::VERSION, "schema", schema::<T>), schema::<T>());
    let changed: Vec<_> = now.lines().filter(|line| !kept.lines().any(|kept| kept == *line)).collect();
    assert_eq!(
        changed,
        Vec::<&str>::new(),
        "an encoding has changed: it needs a new version (see this file)"
    );
    assert_eq!(now, kept, "a type is gone: that needs a new version (see this file)");
}

/// Checks that every stored version of a type can be read, and that the current one encodes to the same bytes again.
fn is_read<T: SavedState>(now: impl Fn() -> T) {
    for version in 1..=T::VERSION {
        let written = bytes(&kept::<T>(version, "hex", || digits(&state::write(&now()).unwrap())));
        let state: T = state::read(&written).unwrap();
        if version == T::VERSION {
            assert!(state::write(&state).unwrap() == written);
        }
    }
}

#[test]
fn saved_states_of_every_version_are_read_and_continued() {
    for version in 1..=CardState::VERSION {
        let written = bytes(&kept::<CardState>(version, "hex", || digits(&state::write(&rich()).unwrap())));
        let state: CardState = state::read(&written).unwrap();
        let restored = state.clone().restore().unwrap();
        let again = CardState::of(&restored.nic, restored.pf.as_ref(), restored.manager.as_ref());
        assert!(state::write(&again).unwrap() == state::write(&state).unwrap(), "version {version}");
        if version == CardState::VERSION {
            through(&written);
            let waiting = PoolIndex::EVERY.map(|pool| restored.nic.waiting(pool).0);
            assert_eq!(waiting.iter().sum::<usize>(), 1, "no frame waits for descriptors");
        }
    }
    is_read::<I82576PortState>(rich_port);
    is_read::<PortSoftwareState>(rich_software);
    is_read::<AvfPortState>(rich_avf);
    is_read::<VirtioPortState>(rich_virtio);
    is_read::<MixedPortState>(rich_mixed);
    is_read::<VirtualFunctionState>(rich_function);
    is_read::<PortCounterTotals>(rich_totals);
    is_read::<HeldAddresses>(rich_addresses);
    is_read::<SavedStations>(rich_stations);
    is_read::<VhostClientState>(rich_vhost);
}

/// Tests that a quarantine by the administrator is read from each version: up to version 3 a single bit stated it.
#[test]
fn quarantine_is_read_from_a_saved_state_of_any_version() {
    for (version, vf) in [(1, 1), (2, 1), (3, 1), (4, 3), (5, 3), (6, 3)] {
        let written = bytes(&std::fs::read_to_string(file("avfs", version, "hex")).unwrap());
        let AvfPortState { conduct, policies, rest, .. } = state::read(&written).unwrap();
        let mut causes = vec![None; policies.len()];
        causes[vf] = Some(QuarantineCause::Administrator);
        let found: Vec<_> = conduct.iter().map(VfConductMonitor::quarantined).collect();
        assert_eq!(found, causes, "version {version}");
        let throttled = conduct.iter().any(VfConductMonitor::throttled);
        assert_eq!((throttled, rest.is_some()), (version >= 4, version >= 3), "version {version}");
    }
}

#[test]
fn encoding_of_a_saved_state_version_does_not_change() {
    does_not_change::<CardState>();
    does_not_change::<I82576PortState>();
    does_not_change::<PortSoftwareState>();
    does_not_change::<AvfPortState>();
    does_not_change::<VirtioPortState>();
    does_not_change::<MixedPortState>();
    does_not_change::<VirtualFunctionState>();
    does_not_change::<PortCounterTotals>();
    does_not_change::<HeldAddresses>();
    does_not_change::<SavedStations>();
    does_not_change::<VhostClientState>();
}

#[test]
fn fuzz_seeds_are_saved_states_of_the_newest_version() {
    let targets = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/fuzz_targets");
    for (target, kind, version) in
        [("state_reader", "card", CardState::VERSION), ("avf_state_reader", "avfs", AvfPortState::VERSION)]
    {
        let source = std::fs::read_to_string(targets.join(format!("{target}.rs"))).unwrap();
        assert!(source.contains(&format!("/{kind}-v{version}.hex")), "{target}");
    }
}
