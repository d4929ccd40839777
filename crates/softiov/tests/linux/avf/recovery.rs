//! Checks restarts of a stock iavf: every way to take its interface down and up, and resets by the PF. `survival` tests
//! hosts that end.

use super::{AvfInterface, linked};
use crate::guest::BOOT;
use crate::report::LinuxCheckOutcome;
use crate::stream::IperfStream;
use crate::world::{ALICE_AVF, BOB_AVF, LinuxTestbed};
use anyhow::{Context, Result, ensure};
use daemon::control::status::VfStatus;

const TIMES: u32 = 3;

/// Checks that the administrator can reset both ports several times under TCP in both directions: drivers are notified
/// and restart, and the connections survive.
pub(crate) fn resets_are_outlived(world: &mut LinuxTestbed) -> Result<LinuxCheckOutcome> {
    let [alice, bob] = &linked(world)?;
    let mut streams =
        [IperfStream::open(alice.guest, &bob.address())?, IperfStream::open(bob.guest, &alice.address())?];
    for round in 0..TIMES {
        for (port, vf) in [("pf3", ALICE_AVF), ("pf4", BOB_AVF)] {
            let before = world.vf(vf)?.mailbox.resets;
            world.reset_port(port)?;
            let is_back = |vf: &VfStatus| vf.active && vf.link && vf.mailbox.resets > before;
            world.wait_vf(vf, "be back after a reset", is_back)?;
        }
        streams.iter_mut().try_for_each(IperfStream::moves).with_context(|| format!("reset {round}"))?;
    }
    for stream in streams {
        stream.close()?;
    }
    alice.ping(bob, 1400, 10)?;
    Ok(LinuxCheckOutcome::Passed)
}

/// Checks that the interface returns after each of: interface down and up, driver unbound and bound.
pub(crate) fn interface_comes_back(world: &mut LinuxTestbed) -> Result<LinuxCheckOutcome> {
    let [mut alice, bob] = linked(world)?;
    const REBIND: &str = "cd /sys/bus/pci/drivers/iavf && device=$(ls -d *:*) && echo $device > unbind &&
        [ ! -e /sys/class/net/IF ] && echo $device > bind";
    for disturbance in ["ip link set IF down", REBIND] {
        for _ in 0..TIMES {
            alice.check(disturbance)?;
            alice.set_up_again().context(disturbance)?;
            alice.reach(&bob).context(disturbance)?;
        }
        exchange(&alice, &bob)?;
    }
    Ok(LinuxCheckOutcome::Passed)
}

/// Checks a guest whose machine resets without notice to the driver, and boots again.
pub(crate) fn guest_reboots(world: &mut LinuxTestbed) -> Result<LinuxCheckOutcome> {
    let pid = |vf: &VfStatus| vf.function.peer.as_ref().map(|peer| peer.pid);
    linked(world)?;
    let before = pid(&world.vf(BOB_AVF)?);
    let bob = world.bob_mut()?;
    bob.linux.reboot()?;
    bob.linux.wait_ready(BOOT)?;
    bob.settle()?;
    let [alice, bob] = &linked(world)?;
    exchange(alice, bob)?;
    let after = pid(&world.vf(BOB_AVF)?);
    ensure!(before.is_some() && before == after, "the VMM was {before:?} and is {after:?}");
    Ok(LinuxCheckOutcome::Passed)
}

/// Checks that long pings and TCP pass between two interfaces, both ways.
pub(crate) fn exchange(alice: &AvfInterface<'_>, bob: &AvfInterface<'_>) -> Result<()> {
    for (from, to) in [(alice, bob), (bob, alice)] {
        from.reach(to)?;
        from.ping(to, 8000, 10)?;
        from.iperf(&to.address(), 8)?;
    }
    Ok(())
}
