//! Checks that a Linux guest's network recovers: from a link change or port reset by the PF, and after the guest
//! restarts its interface, its driver or itself. Module `isolation` tests VMMs that end.

use crate::guest::{BOOT, ScenarioGuest, eventually};
use crate::report::LinuxCheckOutcome;
use crate::world::{ALICE, BOB, LinuxTestbed};
use anyhow::{Context, Result, ensure};
use daemon::control::status::LinkState;

const TIMES: u32 = 10;

/// Checks that the guest sees each change when the PF takes a VF's link down and up, and that traffic resumes.
pub(crate) fn link_follows_the_pf(world: &mut LinuxTestbed) -> Result<LinuxCheckOutcome> {
    let (alice, bob) = (world.alice()?, world.bob()?);
    world.set_link(ALICE, LinkState::Disable)?;
    alice.wait_carrier(false)?;
    let status = world.vf(ALICE)?;
    ensure!(status.settings.state == Some(LinkState::Disable) && !status.link, "the host says {status:?}");
    let other = bob.check("cat /sys/class/net/eth0/carrier")?;
    ensure!(other.trim() == "1", "bob's carrier is {other}");
    alice.cannot_reach("eth0", &bob.address())?;

    world.set_link(ALICE, LinkState::Auto)?;
    alice.wait_carrier(true)?;
    alice.reach(&bob.address())?;
    bob.ping(&alice.address(), 1400, 10)?;
    Ok(LinuxCheckOutcome::Passed)
}

/// Checks a reset of the port by the administrator: each guest's driver sees its link go down, restarts, and traffic
/// resumes.
pub(crate) fn port_is_reset(world: &mut LinuxTestbed) -> Result<LinuxCheckOutcome> {
    let guests = [world.alice()?, world.bob()?];
    let losses = |guest: &ScenarioGuest| {
        Ok(guest.check("cat /sys/class/net/eth0/carrier_down_count")?.trim().parse()?)
    };
    let before: Vec<u64> = guests.into_iter().map(losses).collect::<Result<_>>()?;
    world.reset_port("pf0")?;
    for (guest, before) in guests.into_iter().zip(before) {
        eventually(|| {
            ensure!(losses(guest)? > before, "{} has not lost its link", guest.name());
            Ok(())
        })?;
        guest.wait_carrier(true)?;
    }
    exchange(guests[0], guests[1])?;
    Ok(LinuxCheckOutcome::Passed)
}

/// Checks `ip link set eth0 down` and `up`: rings are torn down and set up again.
pub(crate) fn interface_down_and_up(world: &mut LinuxTestbed) -> Result<LinuxCheckOutcome> {
    repeat(world, "ip link set eth0 down")
}

/// Checks `rmmod` and `modprobe`: the driver leaves the function and probes it again, from its configuration space on.
pub(crate) fn driver_unloaded_and_loaded(world: &mut LinuxTestbed) -> Result<LinuxCheckOutcome> {
    repeat(world, "rmmod igbvf && [ ! -e /sys/class/net/eth0 ] && modprobe igbvf")
}

/// Checks a guest whose machine resets without notice to the driver, and boots again.
pub(crate) fn guest_reboots(world: &mut LinuxTestbed) -> Result<LinuxCheckOutcome> {
    world.alice()?;
    let before = world.vf(ALICE)?.function.peer.context("alice's VMM is not connected")?.pid;
    let alice = world.alice_mut()?;
    alice.linux.reboot()?;
    alice.linux.wait_ready(BOOT)?;
    alice.settle()?;
    exchange(world.alice()?, world.bob()?)?;
    let after = world.vf(ALICE)?.function.peer.context("alice's VMM is not connected")?.pid;
    ensure!(before == after, "the VMM was {before} and is {after}: that was no reboot of the guest");
    Ok(LinuxCheckOutcome::Passed)
}

/// Runs a script that disturbs Alice's eth0, several times. Checks each time that eth0 comes back and reaches Bob.
fn repeat(world: &LinuxTestbed, disturbance: &str) -> Result<LinuxCheckOutcome> {
    let (alice, bob) = (world.alice()?, world.bob()?);
    for time in 1..=TIMES {
        alice.check(disturbance)?;
        alice.settle()?;
        alice
            .reach(&bob.address())
            .with_context(|| format!("after {disturbance:?}, time {time} of {TIMES}"))?;
    }
    exchange(alice, bob)?;
    let bobs = world.vf(BOB)?;
    ensure!(bobs.link && bobs.active, "bob was disturbed: {bobs:?}");
    Ok(LinuxCheckOutcome::Passed)
}

/// Checks that long pings and TCP pass between two guests, both ways.
fn exchange(one: &ScenarioGuest, other: &ScenarioGuest) -> Result<()> {
    for (from, to) in [(one, other), (other, one)] {
        from.reach(&to.address())?;
        from.ping(&to.address(), 8000, 10)?;
        from.iperf(&to.address(), "-n 8M")?;
    }
    Ok(())
}
