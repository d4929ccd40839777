//! Checks frames with source addresses other than a guest's own.

use crate::guest::eventually;
use crate::report::LinuxCheckOutcome;
use crate::world::{BOB, CAROL, CAROL_MAC, LinuxTestbed};
use anyhow::{Context, Result, ensure};
use daemon::settings::VfSettings;

const GUIDE: &str = include_str!("../../../../docs/user-guide.md");

const FOREIGN_MAC: &str = "02:82:57:60:00:99";
/// Id of a VLAN that no other check uses.
const VLAN: u8 = 77;
const FRAMES: u32 = 10;

/// Checks that the guest can change its address, unless the administrator has set it.
pub(crate) fn addresses_of_the_administrator_stay(world: &mut LinuxTestbed) -> Result<LinuxCheckOutcome> {
    let (alice, bob, carol) = (world.alice()?, world.bob()?, world.carol()?);
    carol.check_fails(&format!("ip link set eth0 address {FOREIGN_MAC}"))?;
    let kept = carol.check("cat /sys/class/net/eth0/address")?;
    ensure!(kept.trim() == CAROL_MAC, "carol's address is {kept}, not the administrator's");
    carol.reach(&bob.address())?;

    let own = world.vf(alice.vf)?.mac;
    alice.check(&format!("ip link set eth0 address {FOREIGN_MAC}"))?;
    world.wait_vf(alice.vf, &format!("have {FOREIGN_MAC}"), |vf| vf.mac == FOREIGN_MAC)?;
    // Neighbours that know the old address must learn the new one.
    bob.check("ip neigh flush all")?;
    alice.reach(&bob.address())?;
    bob.ping(&alice.address(), 56, 5)?;
    alice.check(&format!("ip link set eth0 address {own}"))?;
    bob.check("ip neigh flush all")?;
    alice.reach(&bob.address())?;
    Ok(LinuxCheckOutcome::Passed)
}

/// Checks that frames with a foreign source address are dropped and counted.
///
/// A VLAN interface may have an address of its own. The PF refuses the driver's request for it, but the guest's
/// kernel sends with it all the same.
pub(crate) fn foreign_addresses_are_blocked(world: &mut LinuxTestbed) -> Result<LinuxCheckOutcome> {
    let (bob, carol) = (world.bob()?, world.carol()?);
    bob.join_vlan("eth0", VLAN)?;
    carol.join_vlan("eth0", VLAN)?;
    carol.reach(&bob.vlan_address(VLAN)).context("frames with carol's own address must pass")?;

    let interface = format!("eth0.{VLAN}");
    carol
        .check(&format!("ip link set {interface} down; ip link set {interface} address {FOREIGN_MAC} up"))?;
    let address = carol.check(&format!("cat /sys/class/net/{interface}/address"))?;
    ensure!(address.trim() == FOREIGN_MAC, "carol's {interface} has {address}");
    let blocked = world.vf(CAROL)?.drops.tx_blocked;
    let heard = world.vf(bob.vf)?.rx.broadcast;
    carol.broadcast(VLAN, FRAMES)?;
    carol.cannot_reach(&interface, &bob.vlan_address(VLAN))?;
    let status = world.vf(CAROL)?;
    let newly_blocked = status.drops.tx_blocked - blocked;
    let newly_heard = world.vf(bob.vf)?.rx.broadcast - heard;
    ensure!(
        newly_blocked >= FRAMES.into() && newly_heard < u64::from(FRAMES) / 2,
        "of {FRAMES} and more foreign frames {newly_blocked} were dropped, and bob received {newly_heard}: {status:?}"
    );
    carol.check(&format!("ip link del {interface}"))?;
    carol.ping(&bob.address(), 56, 5).context("frames with carol's own address must pass")?;
    Ok(LinuxCheckOutcome::Passed)
}

/// Returns the user guide's command for a guest with a bridge, and the Ethernet address in the command.
pub(crate) fn command_of_the_guide() -> Result<(&'static str, &'static str)> {
    let command = GUIDE
        .lines()
        .find(|line| line.starts_with("bridge fdb add "))
        .context("the user guide has no command `bridge fdb add`")?;
    Ok((command, command.split(' ').nth(3).context("the guide's command has no address")?))
}

/// Checks that frames to an address behind a guest's bridge arrive once the guest has requested a filter for that
/// address, as the guide says. Switching the spoof check off does not help.
pub(crate) fn a_bridges_address_takes_a_filter(world: &mut LinuxTestbed) -> Result<LinuxCheckOutcome> {
    let (alice, bob) = (world.alice()?, world.bob()?);
    let (command, address) = command_of_the_guide()?;
    alice.check(&format!("ip neigh replace 10.82.0.99 lladdr {address} dev eth0 nud permanent"))?;
    let heard = || -> Result<u64> {
        let before = world.vf(BOB)?.rx.packets;
        alice.check_fails(&format!("ping -q -c {FRAMES} -i 0.02 -W 1 10.82.0.99"))?;
        Ok(world.vf(BOB)?.rx.packets - before)
    };
    world.change(BOB, VfSettings { spoofchk: Some(false), ..VfSettings::default() })?;
    let without = heard()?;
    world.change(BOB, VfSettings { spoofchk: Some(true), ..VfSettings::default() })?;
    bob.check(command)?;
    let with = heard()?;
    bob.check(&command.replace(" add ", " del "))?;
    eventually(|| {
        let after = heard()?;
        ensure!(
            after < u64::from(FRAMES) / 2,
            "of {FRAMES} frames {after} are received when the filter is gone"
        );
        Ok(())
    })?;
    alice.check("ip neigh del 10.82.0.99 dev eth0")?;
    let all = u64::from(FRAMES);
    ensure!(
        without < all / 2 && with >= all,
        "of {FRAMES} frames {without} were received without a filter, {with} with it"
    );
    Ok(LinuxCheckOutcome::Passed)
}
