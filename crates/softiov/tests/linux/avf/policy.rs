//! Checks policy changes while a stock iavf runs. Link, spoof check and rate take effect at once; for others the PF
//! resets the VF, and the driver reads the new policy when it restarts. The PF driver's own tests cover each refusal.

use super::recovery::exchange;
use super::{AvfInterface, linked};
use crate::guest::eventually;
use crate::report::LinuxCheckOutcome;
use crate::spoofing::command_of_the_guide;
use crate::world::{ALICE_AVF, BOB_AVF, LinuxTestbed, PORT_VLAN};
use anyhow::{Context, Error, Result, ensure};
use daemon::control::status::{LinkState, VfStatus};
use daemon::settings::VfSettings;
use std::time::Instant;

/// Ethernet address that no function has.
const OTHER_MAC: &str = "02:82:57:60:00:87";
/// Id of a VLAN other than [`PORT_VLAN`], the checks' port VLAN.
const VLAN: u8 = 77;
const FRAMES: u32 = 20;
/// IPv4 multicast group that no other check uses.
const GROUP: &str = "239.82.5.9";

/// Checks that a VF's link is down, up, or follows the port, as the policy says, and that frames pass whenever the link
/// is up.
pub(crate) fn link_state_is_the_administrators(world: &mut LinuxTestbed) -> Result<LinuxCheckOutcome> {
    let [alice, bob] = &linked(world)?;
    for (state, up) in [(LinkState::Disable, false), (LinkState::Enable, true), (LinkState::Auto, true)] {
        world.set_link(ALICE_AVF, state)?;
        alice.wait_carrier(up)?;
        if up {
            alice.reach(bob).with_context(|| format!("{state:?}"))?;
            bob.ping(alice, 1400, 5).with_context(|| format!("{state:?}"))?;
        }
    }
    Ok(LinuxCheckOutcome::Passed)
}

/// Checks a running guest that is put on a port VLAN, sends and receives untagged there, and is taken off it again.
pub(crate) fn port_vlan_comes_and_goes(world: &mut LinuxTestbed) -> Result<LinuxCheckOutcome> {
    let [alice, bob] = &linked(world)?;
    bob.join_vlan(PORT_VLAN)?;
    let address = alice.vlan_address(PORT_VLAN);
    alice.check(&format!("ip addr add {address}/24 dev IF"))?;
    let vlan = VfSettings { vlan: Some(PORT_VLAN.into()), qos: Some(5), ..VfSettings::default() };
    let status = after_reset(world, vlan)?;
    ensure!(status.vlans == [u16::from(PORT_VLAN)], "the host says {status:?}");
    alice.wait_carrier(true)?;
    alice.guest.reach(&bob.vlan_address(PORT_VLAN))?;
    for size in [56, 1400, 8000] {
        bob.guest.ping(&address, size, 5)?;
    }
    alice.iperf(&bob.vlan_address(PORT_VLAN), 8)?;
    bob.iperf(&address, 8)?;
    alice
        .guest
        .cannot_reach(&alice.name, &bob.address())
        .context("untagged frames must not leave a port VLAN")?;

    after_reset(world, VfSettings { vlan: Some(0), ..VfSettings::default() })?;
    alice.wait_carrier(true)?;
    alice.check(&format!("ip addr del {address}/24 dev IF; ip neigh flush all"))?;
    alice.reach(bob).context("the guest must be reachable after its port VLAN was removed")?;
    Ok(LinuxCheckOutcome::Passed)
}

/// Checks that a guest is a member only of VLANs that it has joined and that the policy's list allows. A change of the
/// list takes effect without a reset, and a reset keeps the memberships.
pub(crate) fn vlans_are_those_on_the_list(world: &mut LinuxTestbed) -> Result<LinuxCheckOutcome> {
    let [alice, bob] = &linked(world)?;
    let list = |vlans: &str| VfSettings { vlans: Some(vlans.into()), ..VfSettings::default() };
    let resets = world.change(ALICE_AVF, list("90-110"))?.mailbox.resets;
    alice.reach(bob)?;
    let refused = refusals(&world.vf(ALICE_AVF)?, "vlan-not-allowed");
    for vlan in [PORT_VLAN, VLAN] {
        alice.join_vlan(vlan)?;
        bob.join_vlan(vlan)?;
    }
    alice.guest.reach(&bob.vlan_address(PORT_VLAN))?;
    alice.guest.cannot_reach(&format!("{}.{VLAN}", alice.name), &bob.vlan_address(VLAN))?;
    let status = world.vf(ALICE_AVF)?;
    ensure!(
        status.vlans == [0, u16::from(PORT_VLAN)] && refusals(&status, "vlan-not-allowed") > refused,
        "the host says {status:?}"
    );
    world.change(ALICE_AVF, list("any"))?;
    for vlan in [PORT_VLAN, VLAN] {
        alice
            .guest
            .reach(&bob.vlan_address(vlan))
            .context("a VLAN that is on the list again must be reachable")?;
    }
    let only = world.change(ALICE_AVF, list(&VLAN.to_string()))?;
    ensure!(only.mailbox.resets == resets, "a list of VLANs resets the VF: {only:?}");
    alice.guest.reach(&bob.vlan_address(VLAN)).context("a VLAN that stays on the list must be reachable")?;
    alice.guest.cannot_reach(&format!("{}.{PORT_VLAN}", alice.name), &bob.vlan_address(PORT_VLAN))?;
    // The driver requests both VLANs in one message.
    after_reset(world, VfSettings { trust: Some(true), ..VfSettings::default() })?;
    alice
        .guest
        .reach(&bob.vlan_address(VLAN))
        .context("a VLAN on the list must be reachable after a reset")?;
    alice.guest.cannot_reach(&format!("{}.{PORT_VLAN}", alice.name), &bob.vlan_address(PORT_VLAN))?;
    world.change(ALICE_AVF, list("any"))?;
    alice
        .guest
        .reach(&bob.vlan_address(PORT_VLAN))
        .context("a VLAN that is on the list again must be reachable after a reset")?;
    Ok(LinuxCheckOutcome::Passed)
}

/// Checks that an address set by the administrator is assigned to the running guest and stays: only a trusted guest may
/// choose another address.
pub(crate) fn address_is_the_administrators(world: &mut LinuxTestbed) -> Result<LinuxCheckOutcome> {
    let [alice, bob] = &linked(world)?;
    let own = world.vf(ALICE_AVF)?.mac;
    let has = |mac: &str| {
        eventually(|| {
            let seen = alice.check("cat /sys/class/net/IF/address")?;
            ensure!(seen.trim() == mac, "alice has {seen} and should have {mac}");
            Ok(())
        })
    };
    // Alice's neighbour table is flushed too: iavf does not notify her kernel, which would keep its cached frame
    // headers.
    let reaches = || {
        [bob, alice].into_iter().try_for_each(|end| end.check("ip neigh flush all").map(drop))?;
        alice.reach(bob)
    };
    // Without an administrator's address, the guest chooses one and returns to its own.
    for mac in [OTHER_MAC, &own] {
        alice.check(&format!("ip link set IF address {mac}"))?;
        world.wait_vf(ALICE_AVF, &format!("have {mac}"), |vf| vf.mac == mac)?;
        reaches()?;
    }
    after_reset(world, VfSettings { mac: Some(OTHER_MAC.into()), ..VfSettings::default() })?;
    has(OTHER_MAC)?;
    reaches()?;
    alice.guest.check_fails(&format!("ip link set {} address {own}", alice.name))?;
    has(OTHER_MAC)?;

    after_reset(world, VfSettings { trust: Some(true), ..VfSettings::default() })?;
    // The driver refuses while it is busy with the reset.
    eventually(|| alice.check(&format!("ip link set IF address {own}")))
        .context("a trusted guest must be able to change its address")?;
    world.wait_vf(ALICE_AVF, &format!("have {own}"), |vf| vf.mac == own)?;
    reaches()?;
    Ok(LinuxCheckOutcome::Passed)
}

/// Checks that frames with a foreign source address are dropped and counted, unless the policy switches the check off.
pub(crate) fn spoofing_is_checked(world: &mut LinuxTestbed) -> Result<LinuxCheckOutcome> {
    let [alice, bob] = &linked(world)?;
    let own = world.vf(ALICE_AVF)?.mac;
    after_reset(world, VfSettings { mac: Some(own), ..VfSettings::default() })?;
    alice.reach(bob)?;
    for end in [alice, bob] {
        end.join_vlan(VLAN)?;
    }
    alice.guest.reach(&bob.vlan_address(VLAN)).context("frames with alice's own address must pass")?;
    // The PF refuses the address that the driver requests, but the guest's kernel sends with it all the same.
    alice.check(&format!("ip link set IF.{VLAN} down; ip link set IF.{VLAN} address {OTHER_MAC} up"))?;
    for check in [false, true] {
        world.change(ALICE_AVF, VfSettings { spoofchk: Some(check), ..VfSettings::default() })?;
        let counts =
            || -> Result<_> { Ok((world.vf(ALICE_AVF)?.drops.tx_spoofed, world.vf(BOB_AVF)?.rx.broadcast)) };
        let before = counts()?;
        broadcast(alice, VLAN)?;
        let all = u64::from(FRAMES);
        // The last frames may still be pending.
        eventually(|| {
            let after = counts()?;
            let (spoofed, heard) = (after.0 - before.0, after.1 - before.1);
            let expected =
                if check { spoofed >= all && heard < all / 2 } else { spoofed == 0 && heard >= all };
            ensure!(
                expected,
                "check {check}: of {FRAMES} frames {spoofed} were dropped as spoofed and {heard} received"
            );
            Ok(())
        })?;
    }
    alice.ping(bob, 56, 5).context("frames with alice's own address must pass")?;
    Ok(LinuxCheckOutcome::Passed)
}

/// Checks that a guest that floods its network is quarantined: its driver sees a reset, after which the link stays
/// down. The link returns when the administrator releases the VF.
pub(crate) fn flood_is_quarantined_until_released(world: &mut LinuxTestbed) -> Result<LinuxCheckOutcome> {
    let [alice, bob] = &linked(world)?;
    alice.reach(bob)?;
    alice.check(&format!("ip route replace {GROUP}/32 dev IF"))?;
    // Each ping is 41 fragments. BusyBox's ping ends at the first frame that the interface refuses.
    let ping = format!("while :; do ping -q -i 0.01 -s 60000 -I {} {GROUP}; sleep 0.1; done", alice.name);
    let flood = alice.guest.linux.spawn_background(&ping)?;
    let quarantined = world.wait_vf(ALICE_AVF, "be quarantined", |vf| vf.conduct.quarantine.is_some());
    flood.kill();
    let status = quarantined?;
    ensure!(
        status.conduct.quarantine.as_deref() == Some("storm") && !status.link,
        "the host says {status:?}"
    );
    alice.wait_carrier(false).context("the quarantined VF must lose its link")?;
    // A reset by the guest does not end the quarantine. The driver refuses while it is busy with the reset before.
    eventually(|| alice.check("ip link set IF down; ip link set IF up"))?;
    ensure!(world.vf(ALICE_AVF)?.conduct.quarantine.is_some(), "a reset by the guest has released it");
    ensure!(world.vf(BOB_AVF)?.link, "the link of the neighbour {BOB_AVF} is down");

    world.change(ALICE_AVF, VfSettings { quarantine: Some(false), ..VfSettings::default() })?;
    alice.wait_carrier(true).context("the released VF must work again")?;
    alice.reach(bob).context("the released VF must work again")?;
    alice.ping(bob, 1400, 5).context("the released VF must work again")?;
    Ok(LinuxCheckOutcome::Passed)
}

/// Checks that only a trusted VF in promiscuous mode receives frames for other addresses.
pub(crate) fn promiscuity_takes_trust(world: &mut LinuxTestbed) -> Result<LinuxCheckOutcome> {
    let [alice, bob] = &linked(world)?;
    // Frames to an unknown address go over the wire to Bob's port.
    alice.check(&format!("ip neigh replace 10.83.0.99 lladdr {OTHER_MAC} dev IF nud permanent"))?;
    let heard = || Ok::<_, Error>(world.vf(BOB_AVF)?.rx.packets);
    for trusted in [false, true] {
        if trusted {
            reset_by(world, BOB_AVF, VfSettings { trust: Some(true), ..VfSettings::default() })?;
        }
        for wants in [true, false] {
            let asked = || Ok::<_, Error>(world.vf(BOB_AVF)?.mailbox.requests.get("promiscuity").copied());
            let before = asked()?;
            bob.check(&format!("ip link set IF promisc {}", if wants { "on" } else { "off" }))?;
            eventually(|| {
                ensure!(asked()? > before, "the driver does not request promiscuity");
                Ok(())
            })?;
            let before = heard()?;
            alice.guest.check_fails(&format!("ping -q -c {FRAMES} -i 0.02 -W 1 10.83.0.99"))?;
            // The last frames may still be pending.
            eventually(|| {
                let (heard, all) = (heard()? - before, u64::from(FRAMES));
                let expected = if trusted && wants { heard >= all } else { heard < all / 2 };
                ensure!(expected, "trusted {trusted}, wants {wants}: of {FRAMES} frames {heard} were heard");
                Ok(())
            })?;
        }
    }
    alice.check("ip neigh del 10.83.0.99 dev IF")?;
    Ok(LinuxCheckOutcome::Passed)
}

/// Checks that a VF with a rate limit never sends more, and sends at full speed again without the limit.
pub(crate) fn rate_is_never_exceeded(world: &mut LinuxTestbed) -> Result<LinuxCheckOutcome> {
    const MBPS: u32 = 8;
    let [alice, bob] = &linked(world)?;
    world.change(ALICE_AVF, VfSettings { max_tx_rate: Some(MBPS), ..VfSettings::default() })?;
    let (begun, before) = (Instant::now(), world.vf(ALICE_AVF)?.tx);
    alice.iperf(&bob.address(), 2)?;
    let (after, elapsed) = (world.vf(ALICE_AVF)?.tx, begun.elapsed());
    let bytes = after.bytes - before.bytes + 4 * (after.packets - before.packets);
    let most = elapsed.as_secs_f64() * f64::from(MBPS) * 125_000.0 + 65_536.0;
    ensure!(bytes > 1 << 20, "only {bytes} bytes were sent");
    ensure!((bytes as f64) < most, "{bytes} bytes in {elapsed:?}, and {MBPS} Mb/s are {most:.0} at most");
    world.change(ALICE_AVF, VfSettings { max_tx_rate: Some(0), ..VfSettings::default() })?;
    exchange(alice, bob)?;
    Ok(LinuxCheckOutcome::Passed)
}

/// Changes a setting that resets Alice's VF, and waits until her driver has restarted the VF.
fn after_reset(world: &LinuxTestbed, change: VfSettings) -> Result<VfStatus> {
    reset_by(world, ALICE_AVF, change)
}

/// Changes a setting that resets a VF, and waits until its driver has restarted the VF.
pub(crate) fn reset_by(world: &LinuxTestbed, vf: &str, change: VfSettings) -> Result<VfStatus> {
    let before = world.vf(vf)?.mailbox.resets;
    world.change(vf, change)?;
    world.wait_vf(vf, "be back after a change", |vf| vf.active && vf.link && vf.mailbox.resets > before)
}

/// Sends a fixed number of broadcasts ([`FRAMES`]) from an interface into a VLAN.
fn broadcast(from: &AvfInterface<'_>, vlan: u8) -> Result<()> {
    from.guest.check_fails(&format!("ping -q -c {FRAMES} -i 0.02 -W 1 10.83.{vlan}.255")).map(drop)
}

/// Returns how many of a VF's requests the PF has refused for `reason`.
fn refusals(status: &VfStatus, reason: &str) -> u64 {
    status.mailbox.refused.get(reason).copied().unwrap_or(0)
}

/// Checks that frames to an address behind a guest's bridge arrive once the guest has requested a filter for that
/// address, as the guide says.
pub(crate) fn a_bridges_address_takes_a_filter(world: &mut LinuxTestbed) -> Result<LinuxCheckOutcome> {
    let [alice, bob] = &linked(world)?;
    let (command, address) = command_of_the_guide()?;
    let command = command.replace("eth0", "IF");
    alice.check(&format!("ip neigh replace 10.83.0.99 lladdr {address} dev IF nud permanent"))?;
    let heard = || -> Result<u64> {
        let before = world.vf(BOB_AVF)?.rx.packets;
        alice.guest.check_fails(&format!("ping -q -c {FRAMES} -i 0.02 -W 1 10.83.0.99"))?;
        Ok(world.vf(BOB_AVF)?.rx.packets - before)
    };
    let without = heard()?;
    bob.check(&command)?;
    // The driver requests it a moment later.
    eventually(|| {
        let with = heard()?;
        ensure!(with >= u64::from(FRAMES), "of {FRAMES} frames {with} were received with a filter");
        Ok(())
    })?;
    bob.check(&command.replace(" add ", " del "))?;
    alice.check("ip neigh del 10.83.0.99 dev IF")?;
    ensure!(without < u64::from(FRAMES) / 2, "of {FRAMES} frames {without} were received without a filter");
    Ok(LinuxCheckOutcome::Passed)
}
