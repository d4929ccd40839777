//! Checks traffic between a guest and the network beyond the uplink, and an uplink that is removed and returned.

use crate::guest::{ScenarioGuest, eventually};
use crate::report::LinuxCheckOutcome;
use crate::stream::IperfStream;
use crate::wire::WireNamespace;
use crate::world::{BOB, CAROL_OUTSIDE, LinuxTestbed};
use anyhow::{Context, Result, ensure};
use daemon::control::status::LinkState;

const VLAN: u8 = 42;
const AMOUNT: &str = "-n 16M";

/// Checks that pings, fragments and TCP pass in both directions.
pub(crate) fn vf_and_outside_exchange_traffic(world: &mut LinuxTestbed) -> Result<LinuxCheckOutcome> {
    let wire = match &world.wire {
        Ok(wire) => wire,
        Err(why) => return Ok(LinuxCheckOutcome::Skipped(format!("no uplink here: {why}"))),
    };
    let alice = world.alice()?;
    alice.reach(&wire.address())?;
    let local = alice.statistic("lbrx_packets")?;
    exchange(alice, &wire.address(), wire, &alice.address())?;
    let frames = alice.statistic("lbrx_packets")? - local;
    ensure!(frames < 100, "{frames} frames were counted as local, but came over the uplink");
    Ok(LinuxCheckOutcome::Passed)
}

/// Checks that tagged frames leave by one port's uplink and enter by another's; no device in between has the VLAN.
pub(crate) fn vlans_cross_the_uplink(world: &mut LinuxTestbed) -> Result<LinuxCheckOutcome> {
    if let Err(why) = &world.wire {
        return Ok(LinuxCheckOutcome::Skipped(format!("no uplink here: {why}")));
    }
    let (alice, bob, outside) = (world.alice()?, world.bob()?, world.carol()?);
    outside.check("ip link set eth2 up")?;
    outside.join_vlan("eth2", VLAN)?;
    alice.join_vlan("eth0", VLAN)?;
    alice.reach(&outside.vlan_address(VLAN))?;
    for size in [56, 1400, 8000] {
        alice.ping(&outside.vlan_address(VLAN), size, 10)?;
        outside.ping(&alice.vlan_address(VLAN), size, 10)?;
    }
    let before = world.vf(CAROL_OUTSIDE)?.rx.packets;
    alice.iperf(&outside.vlan_address(VLAN), AMOUNT)?;
    alice.iperf(&outside.vlan_address(VLAN), &format!("{AMOUNT} -R"))?;
    let frames = world.vf(CAROL_OUTSIDE)?.rx.packets - before;
    ensure!(frames > 1000, "only {frames} frames came to the other port's VF");

    // Bob has an address in the VLAN, but is no member.
    bob.check(&format!("ip addr add {}/24 dev eth0", bob.vlan_address(VLAN)))?;
    let refused = bob.cannot_reach("eth0", &outside.vlan_address(VLAN));
    bob.check(&format!("ip addr del {}/24 dev eth0", bob.vlan_address(VLAN)))?;
    outside.check(&format!("ip link del eth2.{VLAN}; ip link set eth2 down"))?;
    refused.map(|()| LinuxCheckOutcome::Passed)
}

/// Checks that `ip link set TAP down` takes down the link of a guest whose VF follows the port, and no other.
pub(crate) fn link_follows_the_tap(world: &mut LinuxTestbed) -> Result<LinuxCheckOutcome> {
    let wire = match &world.wire {
        Ok(wire) => wire,
        Err(why) => return Ok(LinuxCheckOutcome::Skipped(format!("no uplink here: {why}"))),
    };
    let (alice, bob) = (world.alice()?, world.bob()?);
    world.set_link(BOB, LinkState::Enable)?;
    bob.wait_carrier(true)?;
    wire.set_tap(0, false)?;
    let seen = alice.wait_carrier(false);
    let others = bob.check("cat /sys/class/net/eth0/carrier");
    wire.set_tap(0, true)?;
    seen?;
    ensure!(others?.trim() == "1", "bob lost his link, which is always up");
    alice.wait_carrier(true)?;
    alice.reach(&wire.address())?;
    Ok(LinuxCheckOutcome::Passed)
}

/// Checks a tap that is deleted and created again under a TCP connection: the guest sees its link go down and up, and
/// the connection survives.
pub(crate) fn tap_is_removed_and_returned(world: &mut LinuxTestbed) -> Result<LinuxCheckOutcome> {
    let wire = match &world.wire {
        Ok(wire) => wire,
        Err(why) => return Ok(LinuxCheckOutcome::Skipped(format!("no uplink here: {why}"))),
    };
    let alice = world.alice()?;
    alice.reach(&wire.address())?;
    let before = world.port()?.uplink_status.context("the uplink is not a tap")?.reattached;
    let mut stream = IperfStream::open(alice, &wire.address())?;
    stream.moves()?;
    wire.remove_tap(0)?;
    let seen = alice.wait_carrier(false);
    // Later checks need the tap in any case.
    wire.return_tap(0)?;
    eventually(|| {
        let tap = world.port()?.uplink_status.context("the uplink is not a tap")?;
        ensure!(tap.reattached == before + 1, "the tap is {tap:?}");
        Ok(())
    })?;
    wire.plug(0)?;
    seen?;
    alice.wait_carrier(true)?;
    stream.moves()?;
    stream.close()?;
    Ok(LinuxCheckOutcome::Passed)
}

fn exchange(guest: &ScenarioGuest, outside: &str, wire: &WireNamespace, inside: &str) -> Result<()> {
    for size in [56, 1400, 8000] {
        guest.ping(outside, size, 10)?;
        wire.ping(inside, size, 10)?;
    }
    guest.iperf(outside, AMOUNT)?;
    guest.iperf(outside, &format!("{AMOUNT} -R"))?;
    let errors = guest.statistic("rx_csum_offload_errors")?;
    ensure!(errors == 0, "{}: rx_csum_offload_errors is {errors}", guest.name());
    Ok(())
}
