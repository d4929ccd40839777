//! Random bytes as a saved state of every kind and version, without a card: envelopes, bodies, and the kept states of all
//! versions with changes.
//!
//! The first byte of an input selects the kind. Checked: no panic, and an accepted state that is written in the newest
//! version, read again, and is the same then. A virtio port restores from an accepted state, or refuses it.
#![cfg_attr(not(test), no_main)]

use daemon::config::{HostConfig, PortConfig};
use daemon::port::restored_virtio_state;
use daemon::state::{
    self, AvfPortState, CardState, HeldAddresses, I82576PortState, MixedPortState, PortCounterTotals,
    PortSoftwareState, SavedState, SavedStations, VhostClientState, VirtioPortState, decode, read,
};
use iovm::VirtualFunctionState;
use softiov_fuzz::{changed, saved_body};
use std::path::Path;
use std::sync::LazyLock;

softiov_fuzz::target!(run);

/// Returns the body of a kept state.
macro_rules! kept {
    ($name:literal) => {
        saved_body(include_str!(concat!("../../crates/daemon/tests/states/", $name, ".hex")))
    };
}

/// Check of an input as a state of a kind, which has the bodies of the kind's kept states.
type StateCheck = fn(u8, &[Vec<u8>], &[u8]);

/// Kind of saved state: the bodies of its kept states, the versions in order, and the check of an input.
struct StateKind {
    bodies: Vec<Vec<u8>>,
    check: StateCheck,
}

impl StateKind {
    /// Returns the kind of the states of type `T`.
    ///
    /// # Panics
    /// If a version of the type has no kept state: the last body would be read as one of the newest version.
    fn of<T: SavedState>(bodies: Vec<Vec<u8>>, check: StateCheck) -> Self {
        let kind = T::KIND.escape_ascii();
        assert_eq!(bodies.len(), T::VERSION as usize, "kept states and versions of the kind {kind}");
        Self { bodies, check }
    }
}

/// All kinds of saved states.
static KINDS: LazyLock<Vec<StateKind>> = LazyLock::new(|| {
    vec![
        StateKind::of::<CardState>(
            vec![kept!("card-v1"), kept!("card-v2"), kept!("card-v3"), kept!("card-v4")],
            check::<CardState>,
        ),
        StateKind::of::<I82576PortState>(
            vec![kept!("port-v1"), kept!("port-v2"), kept!("port-v3"), kept!("port-v4")],
            check::<I82576PortState>,
        ),
        StateKind::of::<PortSoftwareState>(
            vec![kept!("soft-v1"), kept!("soft-v2")],
            check::<PortSoftwareState>,
        ),
        StateKind::of::<AvfPortState>(
            vec![
                kept!("avfs-v1"),
                kept!("avfs-v2"),
                kept!("avfs-v3"),
                kept!("avfs-v4"),
                kept!("avfs-v5"),
                kept!("avfs-v6"),
            ],
            check::<AvfPortState>,
        ),
        StateKind::of::<VirtioPortState>(vec![kept!("vios-v1")], check_virtio),
        StateKind::of::<MixedPortState>(vec![kept!("mixd-v1")], check::<MixedPortState>),
        StateKind::of::<VirtualFunctionState>(vec![kept!("func-v1")], check::<VirtualFunctionState>),
        StateKind::of::<PortCounterTotals>(vec![kept!("cnts-v1")], check::<PortCounterTotals>),
        StateKind::of::<HeldAddresses>(vec![kept!("adrs-v1")], check::<HeldAddresses>),
        StateKind::of::<VhostClientState>(
            vec![kept!("vhst-v1"), kept!("vhst-v2")],
            check::<VhostClientState>,
        ),
        StateKind::of::<SavedStations>(vec![kept!("stns-v1")], check::<SavedStations>),
    ]
});

/// Configuration of a virtio port.
static VIRTIO: LazyLock<PortConfig> = LazyLock::new(|| {
    let file = HostConfig::parse("[[port]]\nfamily = \"virtio\"\nvfs = 3\n").expect("the text is a file");
    let config = HostConfig::check(file, Path::new("/run/softiov")).expect("the file is valid");
    config.ports.into_iter().next().expect("the file has a port")
});

/// Reads bytes as a state of type `T`, and writes and reads an accepted one again.
fn check<T: SavedState>(kind: u8, bodies: &[Vec<u8>], data: &[u8]) {
    written::<T>(kind, bodies, data);
}

/// Checks bytes as the state of a virtio port, and restores a port from an accepted one.
fn check_virtio(kind: u8, bodies: &[Vec<u8>], data: &[u8]) {
    if let Some(written) = written::<VirtioPortState>(kind, bodies, data)
        && let Some(saved) = restored_virtio_state(&VIRTIO, &written)
    {
        let again = restored_virtio_state(&VIRTIO, &saved);
        assert_eq!(again, Some(saved), "a restored port saves another state");
    }
}

/// Returns what an accepted state writes, after it was read again.
fn written<T: SavedState>(kind: u8, bodies: &[Vec<u8>], data: &[u8]) -> Option<Vec<u8>> {
    let state: T = match kind & 3 {
        0 => read(data),
        1 => decode(data),
        _ => {
            let version = usize::from(kind >> 2) % bodies.len();
            let body = changed(&bodies[version], data);
            match version + 1 {
                newest if newest == bodies.len() => decode(&body),
                earlier => T::from_earlier(earlier as u32, &body),
            }
        }
    }
    .ok()?;
    let written = state::write(&state).ok()?;
    let again =
        state::write(&read::<T>(&written).expect("a written state is read")).expect("it is written again");
    assert_eq!(again, written, "a state changes when it is read");
    Some(written)
}

fn run(data: &[u8]) {
    let Some(([state, kind], data)) = data.split_first_chunk() else { return };
    let StateKind { bodies, check } = &KINDS[usize::from(*state) % KINDS.len()];
    check(*kind, bodies, data);
}
