//! Runs cases on a host, one after the other, and returns their results.

use crate::case::{Attack, AttackCase, AttackGroup, FrameFate, VirtioPacket};
use crate::control;
use crate::device::AttackedDevice;
use crate::family::AttackedFamily;
use crate::field::{FieldValues, encode};
use crate::guest::{AttackingGuest, GuestStart};
use crate::host_process::{HostSetup, address};
use crate::judge::Arena;
use crate::neighbours::Neighbours;
use crate::remedy::Remedy;
use crate::socket::{self, AttackedSockets};
use crate::surroundings;
use anyhow::{Context, Result, bail, ensure};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;
use vfio_client::VfioUserHal;
use vhost_client::{VirtioNet, VirtioNetConfig};
use virtio::VirtioFeatures;

/// Bytes of memory of an attacking guest.
const MEMORY: u64 = 16 << 20;
/// Number of rounds of frames that the neighbours exchange during a flood.
const FLOOD_ROUNDS: u64 = 25;
/// Number of rounds after which a dropped frame would have arrived: the host has polled the sender's rings in each.
const DROP_ROUNDS: u64 = 3;
/// Descriptors of an attacking virtio guest's rings.
const DESCRIPTORS: u16 = 256;

/// Result of a case on a host.
#[derive(Debug, serde::Serialize)]
pub struct CaseResult {
    /// Name of the case's group.
    pub group: &'static str,
    /// Name of the case.
    pub case: &'static str,
    /// Family of the attacked VF.
    pub family: AttackedFamily,
    /// Rule that the host must keep.
    pub rule: &'static str,
    /// Action of the host against the attack, and setting of the administrator.
    pub remedy: Remedy,
    /// Failure, or `None` if the host kept the rule.
    pub failure: Option<String>,
}

/// Runs cases on a host of a `softiov` program. After a failure the next case gets a new host. `done` is called after each
/// case.
///
/// # Errors
/// A host does not start, or does not serve well-behaved guests.
pub fn run(
    program: &Path,
    cases: &[(&AttackGroup, &AttackCase)],
    mut done: impl FnMut(&CaseResult),
) -> Result<Vec<CaseResult>> {
    let mut shared: Option<Arena> = None;
    let mut results = Vec::new();
    for (group, case) in cases {
        let mut used = match shared.take_if(|_| case.host == HostSetup::Shared) {
            Some(arena) => arena,
            None => Arena::start(program, case.host)?,
        };
        let failure = attack_and_judge(&mut used, case).err().map(|error| format!("{error:#}"));
        if failure.is_none() && case.host == HostSetup::Shared {
            shared = Some(used);
        }
        let AttackCase { name, family, rule, remedy, .. } = **case;
        let result = CaseResult { group: group.name, case: name, family, rule, remedy, failure };
        done(&result);
        results.push(result);
    }
    Ok(results)
}

fn attack_and_judge(arena: &mut Arena, case: &AttackCase) -> Result<()> {
    let before = arena.host.resources()?;
    arena.neighbours(case.family).take_marks();
    let attacked = attack(arena, case);
    // A host that has ended explains an attack's error.
    arena.judge(case.family, &before)?;
    attacked
}

/// Carries out an attack, and checks the host before the attacker leaves.
fn attack(arena: &mut Arena, case: &AttackCase) -> Result<()> {
    let family = case.family;
    let sockets = AttackedSockets {
        family,
        own: arena.host.socket(family, 0),
        neighbour: arena.host.socket(family, 1),
    };
    match case.attack {
        Attack::Socket(steps) => {
            let _connection = socket::attack(&sockets, steps)?;
            arena.judge_during()
        }
        Attack::Ring(steps, fate) => {
            let _connection = socket::attack(&sockets, steps)?;
            check_fate(arena.neighbours(family), fate)?;
            arena.judge_during()
        }
        Attack::Control(steps) => {
            let _connections = control::attack(&arena.host.control_socket(), steps)?;
            arena.judge_during()
        }
        Attack::Surroundings(steps) => {
            let _surroundings = surroundings::attack(arena, &sockets, steps)?;
            arena.judge_during()
        }
        Attack::Guest(start, steps) => {
            let mut guest = begin(&sockets, start)?;
            guest.run(steps)?;
            guest.settle();
            check_bus(&guest)?;
            arena.judge_during()
        }
        Attack::Frames(start, steps, fate) => {
            let mut guest = begin(&sockets, start)?;
            guest.run(steps)?;
            guest.settle();
            check_fate(arena.neighbours(family), fate)?;
            arena.judge_during()
        }
        Attack::Packets(packets, fate) => {
            let _guest = send_packets(&sockets.own, packets)?;
            check_fate(arena.neighbours(family), fate)?;
            arena.judge_during()
        }
        Attack::GuestFlood(start, steps) => {
            let mut guest = begin(&sockets, start)?;
            flood(arena, family, move || guest.run(steps))
        }
        Attack::SocketFlood(steps) => flood(arena, family, move || socket::attack(&sockets, steps).map(drop)),
    }
}

/// Attaches to the attacked VF, and brings it into the state in which an attack begins.
fn begin(sockets: &AttackedSockets, start: GuestStart) -> Result<AttackingGuest<VfioUserHal>> {
    let hal = VfioUserHal::attach(&sockets.own, MEMORY).context("the attacking guest cannot attach")?;
    let device = AttackedDevice::Vf(hal.family());
    AttackingGuest::begin(hal, device, start, address(sockets.family, 1))
}

/// Checks that the host still answers the attacking guest: no access to a register ends the connection.
fn check_bus(guest: &AttackingGuest<VfioUserHal>) -> Result<()> {
    guest
        .hal
        .broken()
        .map_or(Ok(()), |error| bail!("the host ended the attacking guest's connection: {error}"))
}

fn send_packets(socket: &Path, packets: &[VirtioPacket]) -> Result<VirtioNet> {
    let features = VirtioFeatures::CSUM.with(VirtioFeatures::HOST_TSO4).with(VirtioFeatures::HOST_TSO6);
    let config = VirtioNetConfig { features, descriptors: DESCRIPTORS };
    let mut net = VirtioNet::attach(socket, &config).context("the attacking guest cannot attach")?;
    let values = FieldValues {
        own_mac: address(AttackedFamily::Virtio, 0),
        neighbour_mac: address(AttackedFamily::Virtio, 1),
        ..FieldValues::default()
    };
    for VirtioPacket { header, packet } in packets {
        ensure!(net.transmit(&encode(packet, &values), header), "the packet does not fit into the ring");
        net.flush();
    }
    Ok(net)
}

fn check_fate(neighbours: &mut Neighbours, fate: FrameFate) -> Result<()> {
    match fate {
        FrameFate::Delivered => neighbours.wait_for_mark(),
        FrameFate::Dropped => {
            neighbours.exchange(DROP_ROUNDS)?;
            ensure!(neighbours.take_marks() == 0, "a neighbour received a frame that the host must drop");
            Ok(())
        }
        FrameFate::Either => Ok(()),
    }
}

/// Repeats a piece of a flood on a thread while the neighbours exchange frames. The flood has begun before the first frame.
fn flood(
    arena: &mut Arena,
    family: AttackedFamily,
    mut piece: impl FnMut() -> Result<()> + Send,
) -> Result<()> {
    let (over, pieces) = (AtomicBool::new(false), AtomicU64::new(0));
    thread::scope(|scope| {
        let flooding = scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                piece()?;
                pieces.fetch_add(1, Ordering::Relaxed);
            }
            Ok(())
        });
        while pieces.load(Ordering::Relaxed) == 0 && !flooding.is_finished() {
            thread::sleep(Duration::from_micros(100));
        }
        let exchanged = arena.neighbours(family).exchange(FLOOD_ROUNDS).context("during the flood");
        let judged = exchanged.and_then(|()| arena.judge_during());
        over.store(true, Ordering::Relaxed);
        let flooded = flooding.join().unwrap_or_else(|_| bail!("the flood's thread panicked"));
        judged.and(flooded)
    })
}

/// Returns the cases whose group or name is one of the given, or all.
#[must_use]
pub fn select<'a>(groups: &'a [AttackGroup], only: &[String]) -> Vec<(&'a AttackGroup, &'a AttackCase)> {
    let wanted = |group: &AttackGroup, case: &AttackCase| {
        only.is_empty() || only.iter().any(|name| name == group.name || name == case.name)
    };
    let all = groups.iter().flat_map(|group| group.cases.iter().map(move |case| (group, case)));
    all.filter(|(group, case)| wanted(group, case)).collect()
}
