//! Checks policy changes while a guest with stock igbvf runs: some take effect at once, some the driver sees, and some
//! only when it sets its interface up again. `dpdk` tests policies that igbvf never requests, and the PF driver's own
//! tests cover each refusal.

use crate::guest::{ScenarioGuest, eventually};
use crate::report::LinuxCheckOutcome;
use crate::world::{ALICE, BOB, CAROL, CAROL_MAC, CAROL_OUTSIDE, LinuxTestbed, PORT_VLAN};
use anyhow::{Context, Result, ensure};
use daemon::control::status::{LinkState, VfStatus};
use daemon::settings::{MirrorRule, StormControlSettings};
use daemon::settings::{PortSettings, VfSettings};
use std::collections::BTreeMap;
use std::time::Instant;

/// Ethernet address that no function has.
const OTHER_MAC: &str = "02:82:57:60:00:77";
/// Id of a VLAN other than [`PORT_VLAN`], the checks' port VLAN.
const VLAN: u8 = 77;
/// Address of an IPv4 multicast group without other members. The group's Ethernet address follows.
const GROUP: &str = "239.82.5.7";
const GROUP_MAC: &str = "01:00:5e:52:05:07";

/// Checks that a VF's link is down, up, or follows the port, as the policy says, and that frames pass whenever the link
/// is up.
pub(crate) fn link_state_is_the_administrators(world: &mut LinuxTestbed) -> Result<LinuxCheckOutcome> {
    let (alice, bob) = (world.alice()?, world.bob()?);
    let states = [(LinkState::Disable, false), (LinkState::Enable, true), (LinkState::Disable, false)];
    for (state, up) in states.into_iter().chain([(LinkState::Auto, true)]) {
        world.set_link(ALICE, state)?;
        alice.wait_carrier(up)?;
        let seen = alice.check("ethtool eth0 | grep 'Link detected'")?;
        ensure!(seen.contains(if up { "yes" } else { "no" }), "{state:?}: {seen}");
        if up {
            alice.reach(&bob.address()).with_context(|| format!("{state:?}"))?;
            bob.ping(&alice.address(), 1400, 5).with_context(|| format!("{state:?}"))?;
        }
    }
    Ok(LinuxCheckOutcome::Passed)
}

/// Checks a running guest that is put on a port VLAN and taken off it again, without notice to the guest. In between,
/// the guest is not a member of the VLANs that it had joined.
pub(crate) fn port_vlan_comes_and_goes(world: &mut LinuxTestbed) -> Result<LinuxCheckOutcome> {
    let (alice, bob) = (world.alice()?, world.bob()?);
    for guest in [alice, bob] {
        guest.join_vlan("eth0", VLAN)?;
        guest.join_vlan("eth0", PORT_VLAN)?;
    }
    alice.reach(&bob.vlan_address(VLAN))?;

    alice.check(&format!(
        "ip link del eth0.{PORT_VLAN}; ip addr add {}/24 dev eth0",
        alice.vlan_address(PORT_VLAN)
    ))?;
    let vlan = VfSettings { vlan: Some(PORT_VLAN.into()), qos: Some(5), ..VfSettings::default() };
    let status = world.change(ALICE, vlan)?;
    ensure!(
        status.vlans == [u16::from(PORT_VLAN)] && status.settings.qos == Some(5),
        "the host says {status:?}"
    );
    alice.reach(&bob.vlan_address(PORT_VLAN))?;
    for size in [56, 1400, 8000] {
        bob.ping(&alice.vlan_address(PORT_VLAN), size, 5)?;
    }
    alice.iperf(&bob.vlan_address(PORT_VLAN), "-n 8M")?;
    alice.cannot_reach("eth0", &bob.address()).context("untagged frames must not leave a port VLAN")?;
    alice
        .cannot_reach(&format!("eth0.{VLAN}"), &bob.vlan_address(VLAN))
        .context("a VLAN within the port VLAN must not reach its members")?;

    world.change(ALICE, VfSettings { vlan: Some(0), ..VfSettings::default() })?;
    alice.check(&format!("ip addr del {}/24 dev eth0; ip neigh flush all", alice.vlan_address(PORT_VLAN)))?;
    alice.reach(&bob.address()).context("the guest must be reachable after its port VLAN was removed")?;
    alice.reach(&bob.vlan_address(VLAN)).context("the guest must be reachable in its own VLAN again")?;
    Ok(LinuxCheckOutcome::Passed)
}

/// Checks that a guest joins the VLANs on the policy's list and no others.
pub(crate) fn vlans_are_those_on_the_list(world: &mut LinuxTestbed) -> Result<LinuxCheckOutcome> {
    let (alice, bob) = (world.alice()?, world.bob()?);
    world.change(ALICE, VfSettings { vlans: Some("90-110".into()), ..VfSettings::default() })?;
    let refused = refusals(&world.vf(ALICE)?, "vlan-not-allowed");
    for vlan in [PORT_VLAN, VLAN] {
        alice.join_vlan("eth0", vlan)?;
        bob.join_vlan("eth0", vlan)?;
    }
    alice.reach(&bob.vlan_address(PORT_VLAN))?;
    alice.cannot_reach(&format!("eth0.{VLAN}"), &bob.vlan_address(VLAN))?;
    let status = world.vf(ALICE)?;
    ensure!(
        status.vlans == [0, u16::from(PORT_VLAN)] && refusals(&status, "vlan-not-allowed") > refused,
        "the host says {status:?}"
    );
    world.change(ALICE, VfSettings { vlans: Some("any".into()), ..VfSettings::default() })?;
    alice.reach(&bob.vlan_address(VLAN)).context("a VLAN on the list must be reachable")?;
    Ok(LinuxCheckOutcome::Passed)
}

/// Checks that an address set by the administrator is assigned when the guest sets its interface up again. Until then,
/// the card drops frames with the old address as spoofed.
pub(crate) fn address_reaches_the_guest_with_a_reset(world: &mut LinuxTestbed) -> Result<LinuxCheckOutcome> {
    let (alice, bob) = (world.alice()?, world.bob()?);
    let own = world.vf(ALICE)?.mac;
    let set = |mac: &str| world.change(ALICE, VfSettings { mac: Some(mac.into()), ..VfSettings::default() });
    let has = |mac: &str| {
        let seen = alice.check("cat /sys/class/net/eth0/address")?;
        ensure!(seen.trim() == mac, "alice has {seen} and should have {mac}");
        Ok(())
    };
    set(OTHER_MAC)?;
    has(&own).context("a running driver must keep its address")?;
    let spoofed = world.vf(ALICE)?.drops.tx_spoofed;
    alice.cannot_reach("eth0", &bob.address())?;
    ensure!(
        world.vf(ALICE)?.drops.tx_spoofed > spoofed,
        "frames with the old address were not counted as spoofed"
    );

    alice.check("ip link set eth0 down")?;
    alice.settle()?;
    has(OTHER_MAC)?;
    bob.check("ip neigh flush all")?;
    alice.reach(&bob.address())?;
    alice
        .check_fails(&format!("ip link set eth0 address {own}"))
        .context("the guest must not change the administrator's address")?;

    // Zeros leave the choice to the guest, which begins with the VF's first address.
    set("00:00:00:00:00:00")?;
    alice.check("rmmod igbvf && modprobe igbvf")?;
    alice.settle()?;
    has(&own)?;
    bob.check("ip neigh flush all")?;
    alice.reach(&bob.address())?;
    Ok(LinuxCheckOutcome::Passed)
}

/// Checks that a trusted guest can change the address that the administrator has set.
pub(crate) fn trusted_guest_changes_its_address(world: &mut LinuxTestbed) -> Result<LinuxCheckOutcome> {
    let (bob, carol) = (world.bob()?, world.carol()?);
    let trust = |trust| world.change(CAROL, VfSettings { trust: Some(trust), ..VfSettings::default() });
    let change = format!("ip link set eth0 address {OTHER_MAC}");
    carol.check_fails(&change)?;
    trust(true)?;
    carol.check(&change)?;
    let status = world.vf(CAROL)?;
    ensure!(status.mac == OTHER_MAC && refusals(&status, "address-fixed") > 0, "the host says {status:?}");
    bob.check("ip neigh flush all")?;
    carol.reach(&bob.address())?;
    carol.check(&format!("ip link set eth0 address {CAROL_MAC}"))?;
    trust(false)?;
    carol.check_fails(&change)?;
    bob.check("ip neigh flush all")?;
    carol.reach(&bob.address())?;
    Ok(LinuxCheckOutcome::Passed)
}

/// Checks that, with the VF's spoof check off, frames with a foreign source address arrive.
pub(crate) fn spoofing_is_let_through_without_the_check(
    world: &mut LinuxTestbed,
) -> Result<LinuxCheckOutcome> {
    let (bob, carol) = (world.bob()?, world.carol()?);
    bob.join_vlan("eth0", VLAN)?;
    carol.join_vlan("eth0", VLAN)?;
    let foreign = format!("ip link set eth0.{VLAN} down; ip link set eth0.{VLAN} address {OTHER_MAC} up");
    carol.check(&foreign)?;
    for check in [false, true] {
        world.change(CAROL, VfSettings { spoofchk: Some(check), ..VfSettings::default() })?;
        let before = (world.vf(CAROL)?.drops.tx_spoofed, world.vf(BOB)?.rx.broadcast);
        carol.broadcast(VLAN, 10)?;
        let after = (world.vf(CAROL)?.drops.tx_spoofed, world.vf(BOB)?.rx.broadcast);
        let (spoofed, heard) = (after.0 - before.0, after.1 - before.1);
        let expected = if check { spoofed >= 10 && heard < 5 } else { spoofed == 0 && heard >= 10 };
        ensure!(
            expected,
            "check {check}: of 10 frames {spoofed} were dropped as spoofed and {heard} received"
        );
    }
    Ok(LinuxCheckOutcome::Passed)
}

/// Checks that a guest receives a group's frames from its join to its leave. (All VFs share the card's group table:
/// members of any group also receive frames of groups that other VFs have joined.)
pub(crate) fn groups_are_joined_and_left(world: &mut LinuxTestbed) -> Result<LinuxCheckOutcome> {
    let (alice, bob) = (world.alice()?, world.bob()?);
    let heard = || -> Result<u64> {
        let before = world.vf(BOB)?.rx.multicast;
        alice.check_fails(&format!("ping -q -c 20 -i 0.02 -W 1 -I eth0 {GROUP}"))?;
        Ok(world.vf(BOB)?.rx.multicast - before)
    };
    let before = heard()?;
    bob.check(&format!("ip maddr add {GROUP_MAC} dev eth0"))?;
    let joined = heard()?;
    bob.check(&format!("ip maddr del {GROUP_MAC} dev eth0"))?;
    let left = heard()?;
    // Neighbour discovery is multicast too, a frame or two of it.
    ensure!(
        before < 5 && joined >= 20 && left < 5,
        "of 20 frames bob received {before} before he joined, {joined} as a member, {left} when he had left"
    );
    Ok(LinuxCheckOutcome::Passed)
}

/// Checks that a VF with a rate limit never sends more, whatever its guest attempts.
pub(crate) fn rate_is_never_exceeded(world: &mut LinuxTestbed) -> Result<LinuxCheckOutcome> {
    const MBPS: u32 = 8;
    let (alice, bob) = (world.alice()?, world.bob()?);
    alice.reach(&bob.address())?;
    world.change(ALICE, VfSettings { max_tx_rate: Some(MBPS), ..VfSettings::default() })?;
    let (begun, before) = (Instant::now(), world.vf(ALICE)?.tx);
    alice.iperf(&bob.address(), "-n 1M")?;
    alice.iperf(&bob.address(), "-u -b 100M -l 1400 -n 1M")?;
    let (after, elapsed) = (world.vf(ALICE)?.tx, begun.elapsed());
    // A rate counts frame check sequences, which the host's counters leave out.
    let bytes = after.bytes - before.bytes + 4 * (after.packets - before.packets);
    let most = elapsed.as_secs_f64() * f64::from(MBPS) * 125_000.0 + 65_536.0;
    ensure!(bytes > 1 << 20, "only {bytes} bytes were sent");
    ensure!((bytes as f64) < most, "{bytes} bytes in {elapsed:?}, and {MBPS} Mb/s are {most:.0} at most");
    world.change(ALICE, VfSettings { max_tx_rate: Some(0), ..VfSettings::default() })?;
    alice.iperf(&bob.address(), "-n 24M").context("traffic must pass without the limit")?;
    Ok(LinuxCheckOutcome::Passed)
}

/// Checks that a guest that requests longer frames than its policy allows receives none of them; ordinary frames pass.
pub(crate) fn mtu_is_limited(world: &mut LinuxTestbed) -> Result<LinuxCheckOutcome> {
    let (alice, bob) = (world.alice()?, world.bob()?);
    world.change(ALICE, VfSettings { max_mtu: Some(1500), ..VfSettings::default() })?;
    let long =
        |guest: &ScenarioGuest| guest.check("ip link set eth0 mtu 9000").and_then(|_| guest.settle_link());
    long(alice)?;
    long(bob)?;
    alice.reach(&bob.address())?;
    bob.ping(&alice.address(), 1400, 10)?;
    bob.cannot_ping(&alice.address(), 8000).context("frames longer than alice's limit must not pass")?;
    let status = world.vf(ALICE)?;
    ensure!(
        refusals(&status, "mtu-limit") > 0 && status.settings.max_mtu == Some(1500),
        "the host says {status:?}"
    );

    world.change(ALICE, VfSettings { max_mtu: Some(0), ..VfSettings::default() })?;
    alice.check("ip link set eth0 mtu 1500")?;
    long(alice)?;
    alice.reach(&bob.address())?;
    bob.ping(&alice.address(), 8000, 10).context("traffic must pass without the limit")?;
    Ok(LinuxCheckOutcome::Passed)
}

/// Checks that no vector of a VF interrupts more often than the policy allows, whatever its driver writes.
pub(crate) fn interrupts_have_a_ceiling(world: &mut LinuxTestbed) -> Result<LinuxCheckOutcome> {
    // Below the rate of an emulated guest: each ping is an interrupt.
    const CEILING: u32 = 125;
    let (alice, bob) = (world.alice()?, world.bob()?);
    bob.check("ethtool -C eth0 rx-usecs 10")?;
    world.change(BOB, VfSettings { max_interrupts: Some(CEILING), ..VfSettings::default() })?;
    let (begun, before) = (Instant::now(), bob.interrupts()?);
    alice.ping(&bob.address(), 56, 300)?;
    let (after, elapsed) = (bob.interrupts()?, begun.elapsed());
    bob.check("ethtool -C eth0 rx-usecs 3")?;
    let most = (elapsed.as_secs_f64() * f64::from(CEILING) * 1.05) as u64 + 10;
    for ((name, before), (_, after)) in before.iter().zip(&after) {
        let interrupts = after - before;
        ensure!(interrupts <= most, "{name}: {interrupts} interrupts in {elapsed:?}, {most} were allowed");
    }
    world.change(BOB, VfSettings { max_interrupts: Some(0), ..VfSettings::default() })?;
    Ok(LinuxCheckOutcome::Passed)
}

/// Checks that a guest that floods its network is quarantined: its link goes down, and up again when the administrator
/// releases the VF.
pub(crate) fn flood_is_quarantined_until_released(world: &mut LinuxTestbed) -> Result<LinuxCheckOutcome> {
    let [_, _, carol] = world.everyone()?;
    carol.check(&format!("ip link set eth2 up && ip route replace {GROUP}/32 dev eth2"))?;
    let carrier = |up: bool| {
        eventually(|| {
            let seen = carol.check("cat /sys/class/net/eth2/carrier")?;
            ensure!((seen.trim() == "1") == up, "eth2's carrier is {seen}, and the link should be up: {up}");
            Ok(())
        })
    };
    carrier(true)?;
    // Each ping is 44 fragments. BusyBox's ping ends at the first frame that the interface refuses.
    let ping = format!("while :; do ping -q -i 0.01 -s 65000 -I eth2 {GROUP}; sleep 0.1; done");
    let flood = carol.linux.spawn_background(&ping)?;
    let quarantined = world.wait_vf(CAROL_OUTSIDE, "be quarantined", |vf| vf.conduct.quarantine.is_some());
    flood.kill();
    let status = quarantined?;
    ensure!(
        status.conduct.quarantine.as_deref() == Some("storm") && !status.link,
        "the host says {status:?}"
    );
    carrier(false).context("the quarantined VF must lose its link")?;
    let others = [world.vf(ALICE)?, world.vf(CAROL)?];
    ensure!(
        others.iter().all(|vf| vf.link && vf.conduct.quarantine.is_none()),
        "other VFs are affected: {others:?}"
    );

    world.change(CAROL_OUTSIDE, VfSettings { quarantine: Some(false), ..VfSettings::default() })?;
    carrier(true).context("the released VF must have its link")?;
    let sent = world.vf(CAROL_OUTSIDE)?.tx.packets;
    carol.check_fails(&format!("ping -q -c 3 -i 0.02 -W 1 -I eth2 {GROUP}"))?;
    let sends_again = world.vf(CAROL_OUTSIDE)?.tx.packets > sent;
    carol.check(&format!("ip route del {GROUP}/32 dev eth2; ip link set eth2 down"))?;
    ensure!(sends_again, "the released guest sends nothing");
    Ok(LinuxCheckOutcome::Passed)
}

/// Checks that a monitoring VF gets a copy of another guest's received frames, from the rule's first moment to its
/// last.
pub(crate) fn watcher_is_sent_copies(world: &mut LinuxTestbed) -> Result<LinuxCheckOutcome> {
    const FRAMES: u32 = 100;
    const SIZE: u32 = 1000;
    let [alice, bob, carol] = world.everyone()?;
    alice.reach(&carol.address())?;
    let captured = || -> Result<[u64; 2]> {
        let count = |what| -> Result<u64> {
            Ok(bob.check(&format!("cat /sys/class/net/eth0/statistics/rx_{what}"))?.trim().parse()?)
        };
        let before = [count("packets")?, count("bytes")?];
        alice.ping(&carol.address(), SIZE, FRAMES)?;
        Ok([count("packets")? - before[0], count("bytes")? - before[1]])
    };
    let watch = |rule| {
        world.change_port(PortSettings {
            mirror: BTreeMap::from([("0".to_owned(), rule)]),
            ..PortSettings::default()
        })
    };
    // Bob is VF 1, and carol VF 2.
    let rule = MirrorRule { to: 1, vfs: vec![2], uplink: None, vlans: None };
    let alone = captured()?;
    watch(Some(rule))?;
    let watching = captured()?;
    watch(None)?;
    let again = captured()?;
    let all = u64::from(FRAMES);
    // Neighbour discovery is for all guests, a frame or two of it. Frames to alice are not mirrored.
    ensure!(
        alone[0] < 20 && again[0] < 20 && (all..all + 20).contains(&watching[0]),
        "of {FRAMES} frames to carol bob saw {alone:?} before, {watching:?} as the watcher, {again:?} after"
    );
    ensure!(watching[1] >= all * u64::from(SIZE), "copies are too short: {watching:?} frames and bytes");
    Ok(LinuxCheckOutcome::Passed)
}

/// Checks that broadcasts beyond the limit reach no guest and are counted for each receiver. The limit is below one
/// broadcast per window, so that their rate does not matter.
pub(crate) fn storms_are_kept_from_guests(world: &mut LinuxTestbed) -> Result<LinuxCheckOutcome> {
    const FRAMES: u32 = 50;
    let [alice, bob, carol] = world.everyone()?;
    alice.reach(&bob.address())?;
    let limit = |broadcast| {
        let storm = StormControlSettings {
            broadcast: Some(broadcast),
            interval: Some(10),
            ..StormControlSettings::default()
        };
        world.change_port(PortSettings { storm: Some(storm), ..PortSettings::default() })
    };
    let flood = || -> Result<[(u64, u64); 2]> {
        let count = |vf| world.vf(vf).map(|status| (status.rx.broadcast, status.drops.rx_storm));
        let before = [count(BOB)?, count(CAROL)?];
        alice.check_fails(&format!("ping -q -c {FRAMES} -i 0.02 -W 1 -s 1400 10.82.0.255"))?;
        let after = [count(BOB)?, count(CAROL)?];
        Ok([0, 1].map(|n| (after[n].0 - before[n].0, after[n].1 - before[n].1)))
    };
    let storms = limit(512)?.storms;
    for (heard, lost) in flood()? {
        ensure!(
            lost >= FRAMES.into() && heard < 20,
            "of {FRAMES} broadcasts {heard} were received and {lost} dropped"
        );
    }
    alice.ping(&bob.address(), 1400, 20).context("unicast frames must pass")?;
    carol.reach(&bob.address()).context("short broadcasts must pass")?;
    let counted = limit(0)?.storms;
    ensure!(counted > storms, "the card counted no storm");
    for (heard, lost) in flood()? {
        ensure!(
            heard >= FRAMES.into() && lost == 0,
            "without a limit {heard} were received and {lost} dropped"
        );
    }
    Ok(LinuxCheckOutcome::Passed)
}

/// Returns how many of a VF's requests the PF has refused for `reason`.
fn refusals(status: &VfStatus, reason: &str) -> u64 {
    status.mailbox.refused.get(reason).copied().unwrap_or(0)
}
