//! Checks every way in which the host's process ends, under virtual machines with stock drivers: no QEMU ends, and
//! connections survive if a host returns. Times are printed, not judged.

mod scene;
pub(crate) mod virtio;

use crate::avf;
use crate::guest::{BOOT, COMMAND, ScenarioGuest, eventually};
use crate::report::LinuxCheckOutcome;
use crate::stream::{EVERY_MS, IperfStream, PingSeries};
use crate::world::LinuxTestbed;
use anyhow::{Context, Result, bail, ensure};
use linux_guest::GuestError;
pub(crate) use scene::HostRestartTestbed;
use scene::{OPEN, SHUT, VMM};
use std::time::{Duration, Instant};

const TIMES: u32 = 5;
/// Time after which an idle host has saved all of its state for a successor process.
const IDLE: Duration = Duration::from_millis(500);

/// Checks `softiov upgrade` under traffic, several times: no link goes down, and connections survive.
pub(crate) fn hand_over_is_not_noticed(world: &mut LinuxTestbed) -> Result<LinuxCheckOutcome> {
    with_scene(world, |scene, world| {
        let wire = world.wire.as_ref().ok();
        let [erin, frank] = scene.guests();
        let before = link_losses(scene)?;
        let mut streams = scene.traffic(wire)?;
        let pings = PingSeries::start(erin, &HostRestartTestbed::inner(frank))?;
        let mut longest = Duration::ZERO;
        for _ in 0..TIMES {
            let (host, begun) = (scene.host()?, Instant::now());
            let said = scene.softiov("upgrade")?;
            longest = longest.max(begun.elapsed());
            ensure!(
                said.contains("has taken over") && scene.host()? != host,
                "softiov upgrade did not replace the host: {said}"
            );
            streams.iter_mut().try_for_each(IperfStream::moves)?;
        }
        let answers = pings.stop()?;
        let gap = close(streams)?;
        print!("(command {longest:.1?}, stream {gap:.1} s, {answers:?}) ");
        let after = link_losses(scene)?;
        ensure!(after == before, "links went down: {before:?} times before, {after:?} after");
        // While a busy machine delays the successor, rings fill up, and streams then crowd out pings.
        ensure!(answers.received > 0, "no ping was answered: {answers:?}");
        scene.all_machines_run()
    })
}

/// Checks SIGKILL of an idle host: the successor process restores the complete state. A driver that reads its card at
/// that very moment must restart, so the check requires only one crash without a lost link.
pub(crate) fn crash_while_idle_is_not_noticed(world: &mut LinuxTestbed) -> Result<LinuxCheckOutcome> {
    with_scene(world, |scene, _| {
        let mut unnoticed = 0;
        for _ in 0..TIMES {
            let before = link_losses(scene)?;
            scene.kill_host(IDLE)?;
            let [erin, frank] = scene.guests();
            for (from, to) in [(erin, frank), (frank, erin)] {
                from.reach(&to.address())?;
                from.reach(&HostRestartTestbed::inner(to))?;
                from.ping(&HostRestartTestbed::inner(to), 1400, 10)?;
            }
            unnoticed += u32::from(link_losses(scene)? == before);
        }
        print!("({unnoticed} of {TIMES} unnoticed) ");
        ensure!(unnoticed > 0, "each of {TIMES} crashes has cost a link");
        scene.all_machines_run()
    })
}

/// Checks SIGKILL under traffic in both directions, several times: links come back and connections survive.
pub(crate) fn connections_outlive_crashes(world: &mut LinuxTestbed) -> Result<LinuxCheckOutcome> {
    with_scene(world, |scene, world| {
        let [erin, frank] = scene.guests();
        let mut streams = scene.traffic(world.wire.as_ref().ok())?;
        let mut missed = Vec::new();
        for round in 0..TIMES {
            let pings = PingSeries::start(erin, &frank.address())?;
            scene.kill_host(Duration::from_millis(300 + 37 * u64::from(round)))?;
            for guest in [erin, frank] {
                guest.wait_carrier(true)?;
            }
            erin.reach(&frank.address())?;
            streams.iter_mut().try_for_each(IperfStream::moves)?;
            missed.push(pings.stop()?.missed * EVERY_MS);
        }
        let gap = close(streams)?;
        print!("(no answer for {missed:?} ms, no byte for {gap:.1} s) ");
        scene.all_machines_run()
    })
}

/// Checks that all settings of the policy survive SIGKILL: those stored in the state file, and volatile ones.
pub(crate) fn policy_outlives_a_crash(world: &mut LinuxTestbed) -> Result<LinuxCheckOutcome> {
    with_scene(world, |scene, _| {
        const VFS: [&str; 3] = ["pf0vf0", "pf1vf0", "pf1vf1"];
        for change in ["pf1vf0 --vlan 30", "pf1vf1 --vlan 30", "pf0vf0 --max-tx-rate 500 --volatile"] {
            scene.softiov(&format!("vf set {change}"))?;
        }
        let before = VFS.map(|vf| scene.policy(vf)).into_iter().collect::<Result<Vec<_>>>()?;
        ensure!(before[1][0]["vlan"] == 30 && before[0][0]["max_tx_rate"] == 500, "{before:?}");
        scene.kill_host(Duration::ZERO)?;
        let after = VFS.map(|vf| scene.policy(vf)).into_iter().collect::<Result<Vec<_>>>()?;
        for (vf, (before, after)) in VFS.into_iter().zip(before.into_iter().zip(after)) {
            ensure!(after[0] == before[0], "{vf} was {} and is {}", before[0], after[0]);
        }
        let [erin, frank] = scene.guests();
        erin.reach(&HostRestartTestbed::inner(frank))?;
        // A VF alone in the VLAN reaches no other: the policy is enforced, not only shown.
        scene.softiov("vf set pf1vf1 --default vlan")?;
        erin.cannot_reach("eth1", &HostRestartTestbed::inner(frank))?;
        scene.softiov("vf set pf1vf0 --default vlan")?;
        scene.softiov("vf set pf0vf0 --default max_tx_rate")?;
        erin.reach(&HostRestartTestbed::inner(frank))?;
        scene.all_machines_run()
    })
}

/// IPv4 addresses of both guests on the port of the second family.
const AVF: [&str; 2] = ["10.83.1.1", "10.83.1.2"];

/// Configures both guests' interfaces on VFs of the second family, and waits until they reach each other.
fn link_avf(scene: &HostRestartTestbed) -> Result<()> {
    for (guest, address) in scene.guests().into_iter().zip(AVF) {
        avf::set_up(guest, &avf::interface(guest)?, address)?;
    }
    let [erin, _] = scene.guests();
    erin.reach(AVF[1])
}

/// Checks `softiov upgrade` under a stream between VFs of the second family, several times: iavf sees neither a reset
/// nor a link change, and its counters continue.
pub(crate) fn avf_hand_over_is_not_noticed(world: &mut LinuxTestbed) -> Result<LinuxCheckOutcome> {
    with_scene(world, |scene, _| {
        link_avf(scene)?;
        let [erin, _] = scene.guests();
        let mut stream = IperfStream::open(erin, AVF[1])?;
        stream.moves()?;
        let before = scene.guests().map(avf::IavfEvents::of);
        for _ in 0..TIMES {
            // On a busy machine a successor may be too late; then the host resumes, and the upgrade is repeated.
            eventually(|| scene.softiov("upgrade"))?;
            stream.moves()?;
        }
        let gap = stream.close()?;
        for (guest, before) in scene.guests().into_iter().zip(before) {
            avf::IavfEvents::of(guest)?.is_unchanged_since(&before?).context(guest.name().to_owned())?;
        }
        print!("(stream {gap:.1} s) ");
        scene.all_machines_run()
    })
}

/// Checks that a successor process resets the card of the second family after SIGKILL: iavf sets its VF up again, and
/// frames pass.
pub(crate) fn avf_starts_anew(world: &mut LinuxTestbed) -> Result<LinuxCheckOutcome> {
    with_scene(world, |scene, _| {
        link_avf(scene)?;
        let [erin, frank] = scene.guests();
        let begun = Instant::now();
        scene.kill_host(Duration::ZERO)?;
        erin.reach(AVF[1])?;
        frank.ping(AVF[0], 1400, 10)?;
        print!("(after {:.1?}) ", begun.elapsed());
        scene.all_machines_run()
    })
}

/// Checks that a QEMU of another user can connect to a VF that its group may use, and is refused with the reason at
/// another VF.
pub(crate) fn vmm_of_another_user_connects(world: &mut LinuxTestbed) -> Result<LinuxCheckOutcome> {
    with_scene(world, |scene, world| {
        let builder = |name, vf| scene.builder(name, vf).user(VMM + 1, VMM);
        let refused = builder("stranger", SHUT).spawn(world.assets());
        match refused.and_then(|guest| guest.wait_ready(BOOT)) {
            Err(GuestError::Ended { tail, .. }) => {
                ensure!(
                    tail.contains("Permission denied"),
                    "QEMU did not report \"Permission denied\": {tail}"
                );
            }
            Err(other) => return Err(other.into()),
            Ok(()) => bail!("a guest has booted on {SHUT}, which its user may not use"),
        }
        let tenant = ScenarioGuest::spawn(builder("tenant", OPEN), world.assets(), OPEN, 8)?;
        tenant.linux.wait_ready(BOOT)?;
        tenant.settle()?;
        let peer = scene.softiov(&format!("vf show {OPEN}"))?;
        ensure!(peer.contains(&tenant.linux.pid().to_string()), "{peer}");
        // Descriptors of another user's process are handed over too.
        scene.softiov("upgrade")?;
        tenant.wait_carrier(true)?;
        tenant.linux.shutdown(COMMAND)?;
        scene.all_machines_run()
    })
}

/// Checks `vf disconnect` of one VF under traffic: its link goes down, and no other.
pub(crate) fn disconnected_vf_costs_nothing_else(world: &mut LinuxTestbed) -> Result<LinuxCheckOutcome> {
    with_scene(world, |scene, world| {
        let mut streams = scene.traffic(world.wire.as_ref().ok())?;
        let [erin, frank] = scene.guests();
        let doomed = PingSeries::start(erin, &HostRestartTestbed::inner(frank))?;
        let (before, others) = (losses(erin, "eth1")?, losses(frank, "eth1")?);
        scene.softiov("vf disconnect pf1vf0")?;
        wait_loss(erin, "eth1", before)?;
        streams.iter_mut().try_for_each(IperfStream::moves)?;
        doomed.stop()?;
        close(streams)?;
        ensure!(losses(frank, "eth1")? == others, "frank has lost a link");
        scene.all_machines_run()
    })
}

/// Checks SIGTERM under traffic: guests see their links go down, and every other device works. No host runs afterwards.
pub(crate) fn orderly_end_costs_the_link_alone(world: &mut LinuxTestbed) -> Result<LinuxCheckOutcome> {
    with_scene(world, |scene, world| {
        let streams = scene.traffic(world.wire.as_ref().ok())?;
        drop(streams);
        let before = [losses(&scene.erin, "eth0")?, losses(&scene.frank, "eth0")?];
        let begun = Instant::now();
        let status = scene.end_host()?;
        let ended = begun.elapsed();
        ensure!(status.success(), "the host ended with {status}");
        for (guest, before) in scene.guests().into_iter().zip(before) {
            wait_loss(guest, "eth0", before)?;
            // A command that uses another device of the machine, and one that calls the driver of the missing card.
            ensure!(guest.check("uname -r")?.starts_with('6'), "{}", guest.name());
            guest.check("ip link set eth0 down && ip link set eth0 up; ethtool -i eth0")?;
        }
        print!("(after {ended:.1?}) ");
        scene.all_machines_run()
    })?;
    world.survival = None;
    Ok(LinuxCheckOutcome::Passed)
}

/// Runs a check with the host and guests of [`HostRestartTestbed`], which are started if necessary. After a failed check,
/// they are not used again.
fn with_scene(
    world: &mut LinuxTestbed,
    check: impl FnOnce(&mut HostRestartTestbed, &LinuxTestbed) -> Result<()>,
) -> Result<LinuxCheckOutcome> {
    let mut scene = match world.survival.take() {
        Some(scene) => scene,
        None => HostRestartTestbed::start(world.assets(), world.wire.as_ref().ok())?,
    };
    check(&mut scene, world).with_context(|| scene.state(world.wire.as_ref().ok()))?;
    world.survival = Some(scene);
    Ok(LinuxCheckOutcome::Passed)
}

/// Returns the number of times that each guest has lost the link of eth0 and of eth1.
fn link_losses(scene: &HostRestartTestbed) -> Result<Vec<String>> {
    let losses = |guest: &ScenarioGuest| guest.check("cat /sys/class/net/eth[01]/carrier_down_count");
    scene.guests().into_iter().map(losses).collect()
}

/// Returns the number of times that an interface of a guest has lost its link.
fn losses(guest: &ScenarioGuest, interface: &str) -> Result<u32> {
    let count = guest.check(&format!("cat /sys/class/net/{interface}/carrier_down_count"))?;
    Ok(count.trim().parse()?)
}

/// Waits until an interface has lost its link more often than `before`. The carrier is no proof of a link: igbvf reads
/// all ones from a missing card, and treats them as a link two seconds later.
fn wait_loss(guest: &ScenarioGuest, interface: &str, before: u32) -> Result<()> {
    eventually(|| {
        let now = losses(guest, interface)?;
        ensure!(now > before, "{}: {interface} has lost its link {now} times, as before", guest.name());
        Ok(())
    })
}

/// Ends the streams, and returns the longest time without a received byte in one of them, in seconds.
fn close(streams: Vec<IperfStream<'_>>) -> Result<f64> {
    let gaps = streams.into_iter().map(IperfStream::close).collect::<Result<Vec<_>>>()?;
    Ok(gaps.into_iter().fold(0.0, f64::max))
}
