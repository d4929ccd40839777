//! Checks VLANs between two stock iavf drivers, which negotiate VLAN_V2 with the PF: filters, and tag insertion and
//! stripping by the card. `policy` tests VLANs of the administrator.

use super::{AvfInterface, linked, no_checksum_errors};
use crate::report::LinuxCheckOutcome;
use crate::world::LinuxTestbed;
use anyhow::{Context, Result, ensure};

const VLAN: u8 = 77;
const FRAMES: u32 = 20;

/// Checks that members of a VLAN reach each other whether the card or the kernel inserts and strips tags, in every
/// combination; a former member receives nothing.
pub(crate) fn members_reach_each_other(world: &mut LinuxTestbed) -> Result<LinuxCheckOutcome> {
    let [alice, bob] = &linked(world)?;
    for end in [alice, bob] {
        end.join_vlan(VLAN)?;
        world.wait_vf(end.vf, "be a member", |vf| vf.vlans.contains(&VLAN.into()))?;
        let asked = world.vf(end.vf)?.mailbox.requests;
        ensure!(
            asked.contains_key("add-vlan-v2") && !asked.contains_key("add-vlan"),
            "the driver sent the requests {asked:?}"
        );
    }
    for (strip, insert) in [("off", "off"), ("off", "on"), ("on", "off"), ("on", "on")] {
        alice.check(&format!("ethtool -K IF rxvlan {strip} txvlan {insert}"))?;
        let context = || format!("rxvlan {strip}, txvlan {insert}");
        exchange(alice, bob).with_context(context)?;
        let features = alice.check("ethtool -k IF")?;
        let set = [format!("rx-vlan-offload: {strip}"), format!("tx-vlan-offload: {insert}")];
        ensure!(
            set.iter().all(|feature| features.contains(feature)),
            "{set:?} were set, and now: {features}"
        );
    }
    ensure!(heard(world, alice, bob)? >= FRAMES.into(), "a member does not receive its VLAN's broadcasts");
    bob.check(&format!("ip link del IF.{VLAN}"))?;
    world.wait_vf(bob.vf, "be no member", |vf| vf.vlans == [0])?;
    let heard = heard(world, alice, bob)?;
    ensure!(heard < u64::from(FRAMES) / 4, "a former member received {heard} of {FRAMES} broadcasts");
    alice.ping(bob, 56, 3).context("untagged frames must pass")?;
    Ok(LinuxCheckOutcome::Passed)
}

/// Checks that pings of three sizes and TCP pass in the VLAN, both ways, without a checksum error.
fn exchange(alice: &AvfInterface<'_>, bob: &AvfInterface<'_>) -> Result<()> {
    let addresses = [alice, bob].map(|end| end.vlan_address(VLAN));
    alice.guest.reach(&addresses[1])?;
    for (from, to) in [(alice, &addresses[1]), (bob, &addresses[0])] {
        for size in [56, 1400, 8000] {
            from.guest.ping(to, size, 5)?;
        }
        from.iperf(to, 4)?;
    }
    no_checksum_errors(alice.guest)?;
    no_checksum_errors(bob.guest)
}

/// Sends a fixed number of broadcasts into the VLAN from one interface, and returns how many of them the VF of the
/// other interface receives.
fn heard(world: &LinuxTestbed, from: &AvfInterface<'_>, by: &AvfInterface<'_>) -> Result<u64> {
    let before = world.vf(by.vf)?.rx.broadcast;
    from.guest.check_fails(&format!("ping -q -c {FRAMES} -i 0.02 -W 1 10.83.{VLAN}.255"))?;
    Ok(world.vf(by.vf)?.rx.broadcast - before)
}
